/** The metadata of what the operator makes: its own, and what users add to it. */
import { GROUP } from '../api/names.ts';
import type { AdditionalMetadata } from '../api/resources.ts';

type Entries = Readonly<Record<string, string>>;

/** Keys of ours mean something to the operator: a user's value for one of them would be believed. */
const withoutOurs = (entries: Entries = {}): Entries =>
  Object.fromEntries(Object.entries(entries).filter(([key]) => !key.startsWith(`${GROUP}/`)));

/** Annotations by which Kubernetes takes a Pod for something else than what it says: less confined, or not from the API server. */
const ON_PODS = [
  /^container\.apparmor\.security\.beta\.kubernetes\.io\//,
  /^(container\.)?seccomp\.security\.alpha\.kubernetes\.io\//,
  /^kubernetes\.io\/config\./,
];
/** Those that provisioners and the volume controller believe. */
const ON_VOLUMES = [/^volume\.([^/]+\.)?kubernetes\.io\//, /^pv\.kubernetes\.io\//];
const without = (entries: Entries, patterns: readonly RegExp[]): Entries =>
  Object.fromEntries(Object.entries(entries).filter(([key]) => !patterns.some((p) => p.test(key))));

/** The operator's own labels win. */
export function metadataWith(
  additional: AdditionalMetadata | undefined,
  labels: Entries,
  on: 'volume' | 'other' = 'other',
): { readonly labels: Entries; readonly annotations?: Entries } {
  const dropped = on === 'volume' ? [...ON_PODS, ...ON_VOLUMES] : ON_PODS;
  const annotations = without(withoutOurs(additional?.annotations), dropped);
  return {
    labels: { ...withoutOurs(additional?.labels), ...labels },
    ...(Object.keys(annotations).length > 0 && { annotations }),
  };
}
