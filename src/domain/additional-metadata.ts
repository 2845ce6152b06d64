/** The metadata of objects that the operator creates: its own, plus spec.additionalMetadata. */
import { GROUP } from '../api/names.ts';
import type { AdditionalMetadata } from '../api/resources.ts';

type Entries = Readonly<Record<string, string>>;

/** The operator reads its own label and annotation keys back: it would act on a user's value for one of them. */
const withoutOurs = (entries: Entries = {}): Entries =>
  Object.fromEntries(Object.entries(entries).filter(([key]) => !key.startsWith(`${GROUP}/`)));

/** Annotations by which the kubelet would confine a Pod less than its spec states, or take it for a static Pod. */
const ON_PODS = [
  /^container\.apparmor\.security\.beta\.kubernetes\.io\//,
  /^(container\.)?seccomp\.security\.alpha\.kubernetes\.io\//,
  /^kubernetes\.io\/config\./,
];
/** Annotations that provisioners and the volume controller act on. */
const ON_VOLUMES = [/^volume\.([^/]+\.)?kubernetes\.io\//, /^pv\.kubernetes\.io\//];
const without = (entries: Entries, patterns: readonly RegExp[]): Entries =>
  Object.fromEntries(Object.entries(entries).filter(([key]) => !patterns.some((p) => p.test(key))));

/** The operator's labels and annotations win over the user's. */
export function metadataWith(
  additional: AdditionalMetadata | undefined,
  labels: Entries,
  { annotations: own = {}, on = 'other' }: { readonly annotations?: Entries; readonly on?: 'volume' | 'other' } = {},
): { readonly labels: Entries; readonly annotations?: Entries } {
  const dropped = on === 'volume' ? [...ON_PODS, ...ON_VOLUMES] : ON_PODS;
  const annotations = { ...without(withoutOurs(additional?.annotations), dropped), ...own };
  return {
    labels: { ...withoutOurs(additional?.labels), ...labels },
    ...(Object.keys(annotations).length > 0 && { annotations }),
  };
}
