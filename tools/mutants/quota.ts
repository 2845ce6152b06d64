/** Faults in what is said about a quota that is larger than its volume. */
import { faults, type Mutant } from './mutant.ts';

const quota = faults('src/cluster/asked.ts', [
  ['a quota that leaves no room, and nobody says so', 'BigInt(quota) * 1_000_000_000n <= nano', 'quota >= 0'],
  ['a quota that fits, and is told as one that does not', '* 1_000_000_000n <= nano', '* 1_000_000_000n < nano'],
  [
    'a size of a fraction that counts as its whole number',
    'BigInt(quota) * 1_000_000_000n <= nano',
    'BigInt(quota) <= nano',
  ],
]);
const quotaSaid = faults('src/cluster/status.ts', [
  ['a warning that stays after the quota was lowered', '...(quota.length === 0 ? [QUOTA_FITS_VOLUME] : []),', ''],
]);

export const quotas: readonly Mutant[] = [...quota, ...quotaSaid];
