/** Versions of etcd, and the cluster version: the lowest one of the members, computed every few seconds. */
import type { EtcdError } from '../../../src/etcd/errors.ts';
import type { Group, State } from './etcd-group.ts';
import type { Disk, ModelNode } from './etcd-node.ts';
import { etcdError } from './etcd-said.ts';

const CHECK_MS = 4_000;

export const minorOf = (version: string): number => Number(version.split('.')[1]);
const shortOf = (version: string): string => `3.${minorOf(version)}.0`;

/** The error when this version cannot start with the data of that cluster. */
export function mayStart(version: string, { version: agreed }: State): string | undefined {
  if (agreed === undefined) return undefined;
  if (minorOf(version) > minorOf(agreed) + 1) return 'unmarshal should never fail: the data is of two minors before';
  return minorOf(version) < minorOf(agreed)
    ? 'invalid downgrade; server version is lower than determined cluster version'
    : undefined;
}

export function checkVersion(group: Group, live: readonly ModelNode[], now: number): void {
  const { version: agreed, downgradeTo } = group.state;
  if (agreed !== undefined && now - group.versionCheckedAt < CHECK_MS) return;
  group.versionCheckedAt = now;
  const all = [...group.members.keys()].map((id) => live.find(({ disk }) => disk?.id === id)?.version);
  const known = all.filter((version) => version !== undefined);
  // A member that has not published its version may have the lowest; only the first cluster version is set without it.
  if (known.length === 0 || (agreed !== undefined && known.length < all.length)) return;
  const [lowest = 0] = known.map(minorOf).sort((a, b) => a - b);
  if (downgradeTo !== undefined) return checkDowngrade(group, known, lowest, downgradeTo);
  if (agreed === undefined || lowest > minorOf(agreed)) group.commit((state) => void (state.version = `3.${lowest}.0`));
}

/** The cluster version is lowered while all members still run the later minor, and the downgrade ends when all run its target. */
function checkDowngrade(group: Group, known: readonly string[], lowest: number, target: string): void {
  if (group.state.version !== target) {
    if (lowest === minorOf(target) + 1) group.commit((state) => void (state.version = target));
  } else if (known.every((version) => shortOf(version) === target))
    group.commit((state) => void (state.downgradeTo = undefined));
}

/** The storage version of the database follows the cluster version; before 3.6 it is not reported. */
export function storageVersion({ version }: ModelNode, { version: agreed }: State): string | undefined {
  return minorOf(version) < 6 ? undefined : agreed;
}

export function downgrade(
  { version }: ModelNode,
  { group }: Disk,
  action: 'validate' | 'enable' | 'cancel',
  target: string,
): string | EtcdError {
  const { version: agreed, downgradeTo } = group.state;
  if (agreed === undefined) return etcdError('busy');
  const old = minorOf(version) < 6;
  if (action === 'cancel') {
    if (downgradeTo === undefined) return old ? etcdError('noDowngrade') : agreed;
    group.commit((state) => void (state.downgradeTo = undefined));
    return old ? etcdError('timeout') : agreed;
  }
  if (!/^\d+\.\d+(\.\d+)?$/.test(target) || target.split('.')[0] !== '3') return etcdError('badDowngradeVersion');
  if (minorOf(target) !== minorOf(agreed) - 1) return etcdError('badDowngradeVersion');
  if (downgradeTo !== undefined) return etcdError('downgradeInProgress');
  if (action === 'validate') return agreed;
  group.commit((state) => void (state.downgradeTo = shortOf(target)));
  return old ? etcdError('timeout') : agreed; // 3.5 carries it out and never responds
}
