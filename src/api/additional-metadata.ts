/** The metadata of what the operator makes: its own, and what users add to it. */
import { GROUP } from './names.ts';
import type { AdditionalMetadata } from './resources.ts';

type Entries = Readonly<Record<string, string>>;

/** Keys of ours mean something to the operator: a user's value for one of them would be believed. */
const withoutOurs = (entries: Entries = {}): Entries =>
  Object.fromEntries(Object.entries(entries).filter(([key]) => !key.startsWith(`${GROUP}/`)));

/** The operator's own labels win. */
export function metadataWith(
  additional: AdditionalMetadata | undefined,
  labels: Entries,
): { readonly labels: Entries; readonly annotations?: Entries } {
  const annotations = withoutOurs(additional?.annotations);
  return {
    labels: { ...withoutOurs(additional?.labels), ...labels },
    ...(Object.keys(annotations).length > 0 && { annotations }),
  };
}
