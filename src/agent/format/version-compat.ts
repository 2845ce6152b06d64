/**
 * Which snapshots a version of etcd can serve, as tests of all of them have shown: older ones, however old, and no
 * newer one. Except for 3.5, which does not check and serves what 3.6 wrote. It would also serve what 3.7 wrote, and
 * then be stuck: neither 3.6 nor 3.7 starts with the result.
 */

import { AgentFailure } from '../failure.ts';
import type { DatabaseFacts } from './bolt.ts';

const ordinal = (version: string): number => {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major * 1000 + minor;
};

export function checkVersionCompat({ storageVersion }: Pick<DatabaseFacts, 'storageVersion'>, version: string): void {
  if (storageVersion === undefined) return; // written by 3.5 or earlier
  const newest = ordinal(version) === ordinal('3.5') ? ordinal('3.6') : ordinal(version);
  if (ordinal(storageVersion) <= newest) return;
  throw new AgentFailure(
    'SnapshotTooNew',
    `the snapshot was written by etcd ${storageVersion}, and etcd ${version} cannot read it: set spec.version to ${storageVersion} or later`,
  );
}
