/** The condition VersionChangeReady: what keeps members from getting another minor, before any of them is touched. */
import { type ConditionUpdate, conditionOf } from '../../../domain/conditions.ts';
import { PREFLIGHT_RECHECK_MS, VERSION_PROBE_MS } from '../../../domain/timing.ts';
import { type ClusterFacts, isFormed, wanted } from '../observed.ts';
import { MAX_HASHED_BYTES } from './preflight.ts';
import { versionStartBlockedBy } from './state.ts';
import { versionChecks } from './version-change.ts';
import { isMinorChangeAhead, versionUnsettled } from './version-facts.ts';

export const VERSION_CHANGE_READY = 'VersionChangeReady';
const ready = conditionOf(VERSION_CHANGE_READY);

const isLarge = (o: ClusterFacts): boolean =>
  o.members.some(({ self }) => (self?.databaseBytes ?? 0) > MAX_HASHED_BYTES);

/** Present only while a change is blocked, or about to begin. A paused cluster is asked when it is resumed. */
export function versionConditions(o: ClusterFacts): readonly ConditionUpdate[] {
  if (!isFormed(o) || wanted(o).replicas === 0) return [];
  const found = versionChecks(o);
  const { version } = wanted(o);
  const [first] = found;
  if (first) {
    const message = `no member gets etcd ${version} yet: ${found.map((each) => each.message).join('; ')}`;
    return [ready('False', first.reason, message)];
  }
  if (!isMinorChangeAhead(o)) return [];
  const hashes = isLarge(o)
    ? ' The data of the members was not compared: hashing more than 64Mi would stop writes for too long.'
    : '';
  return [ready('True', 'ChecksPassed', `all members can get etcd ${version}.${hashes}`)];
}

export function versionRequeueMs(o: ClusterFacts): number | undefined {
  if (!isFormed(o)) return undefined;
  if (versionUnsettled(o) !== undefined) return VERSION_PROBE_MS;
  if (!isMinorChangeAhead(o) || versionStartBlockedBy(o)) return undefined;
  return versionChecks(o).length > 0 ? PREFLIGHT_RECHECK_MS : undefined;
}
