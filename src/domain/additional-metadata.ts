/** The metadata of objects that the operator creates: its own, plus spec.additionalMetadata. */
import { GROUP } from '../api/names.ts';
import type { AdditionalMetadata } from '../api/resources.ts';

type Entries = Readonly<Record<string, string>>;

/** The operator reads its own label and annotation keys back: it would act on a user's value for one of them. */
const withoutOurs = (entries: Entries = {}): Entries =>
  Object.fromEntries(Object.entries(entries).filter(([key]) => !key.startsWith(`${GROUP}/`)));

/** Annotations by which the kubelet would confine a Pod less than its spec states, or take it for a static Pod. */
const ON_PODS = String.raw`^(container[.]apparmor[.]security[.]beta[.]kubernetes[.]io|(container[.])?seccomp[.]security[.]alpha[.]kubernetes[.]io)/|^kubernetes[.]io/config[.]`;
/** Annotations that provisioners and the volume controller act on. */
const ON_VOLUMES = String.raw`^volume[.]([^/]+[.])?kubernetes[.]io/|^pv[.]kubernetes[.]io/`;

/** Annotations that are not copied to every object. Without a backslash, so that CEL reads it too. */
export const DROPPED_PATTERN = `${ON_PODS}|${ON_VOLUMES}`;
const without = (entries: Entries, pattern: string): Entries =>
  Object.fromEntries(Object.entries(entries).filter(([key]) => !new RegExp(pattern).test(key)));

/** The keys that are not copied to every object. */
export function droppedKeys({ labels = {}, annotations = {} }: AdditionalMetadata = {}): readonly string[] {
  const kept = { ...withoutOurs(labels), ...without(withoutOurs(annotations), DROPPED_PATTERN) };
  return Object.keys({ ...labels, ...annotations }).filter((key) => !(key in kept));
}

/** The operator's labels and annotations win over the user's. */
export function metadataWith(
  additional: AdditionalMetadata | undefined,
  labels: Entries,
  { annotations: own = {}, on = 'other' }: { readonly annotations?: Entries; readonly on?: 'volume' | 'other' } = {},
): { readonly labels: Entries; readonly annotations?: Entries } {
  const annotations = {
    ...without(withoutOurs(additional?.annotations), on === 'volume' ? DROPPED_PATTERN : ON_PODS),
    ...own,
  };
  return {
    labels: { ...withoutOurs(additional?.labels), ...labels },
    ...(Object.keys(annotations).length > 0 && { annotations }),
  };
}
