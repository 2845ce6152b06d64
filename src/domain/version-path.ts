/** From which versions etcd can be changed to which on its own data: one minor up or down, any patch release of the same minor. */
import { versionNumber } from '../lib/version.ts';
import type { Blocked } from './disruption.ts';

const MINOR = 1_000;
/** `3.6.16` → 3006: minors compare as numbers. */
export const minorOf = (version: string): number => Math.floor(versionNumber(version) / MINOR);
export const minorName = (minor: number): string => `${Math.floor(minor / MINOR)}.${minor % MINOR}`;
/** As etcd writes the cluster version and the storage version of a minor. */
export const clusterVersionOf = (minor: number): string => `${minorName(minor)}.0`;

/** The release of each minor that messages recommend. Later ones are as good. */
const RECOMMENDED: Readonly<Record<number, string>> = { 3005: '3.5.35', 3006: '3.6.16', 3007: '3.7.3' };
const releaseOf = (minor: number): string => RECOMMENDED[minor] ?? `the newest release of ${minorName(minor)}`;

/** A version that has to be reached first. Absent: no way leads there, or no release of that minor is known. */
export interface PathRefused extends Blocked {
  readonly via?: string;
}

interface Floor {
  readonly patch: string;
  readonly bug: string;
}

/** By minor, the first release that can be upgraded to the next minor, and the bug of earlier ones. */
const FLOORS: Readonly<Record<number, Floor>> = {
  3005: {
    patch: '3.5.32',
    bug: 'etcd 3.6 may refuse to start with too many learners, or count removed members again, because earlier releases of 3.5 do not write every membership change where 3.6 reads it',
  },
  3006: { patch: '3.6.11', bug: 'earlier releases of 3.6 may not work together with members of 3.7' },
};

/** etcd before 3.5 changed the format of its log without a way back. */
const OLDEST = 3005;

/** `via`: the minor of a version that leads there. */
const refused = (reason: string, message: string, via: number | undefined): PathRefused => {
  const release = RECOMMENDED[via ?? 0];
  return { reason, message, ...(release !== undefined && { via: release }) };
};

/** Why members that run these versions cannot be changed to the target; `undefined` when they can. */
export function pathRefused(running: readonly string[], target: string): PathRefused | undefined {
  const minors = running.map(minorOf);
  const [to, lowest, highest] = [minorOf(target), Math.min(...minors), Math.max(...minors)];
  if (minors.length === 0 || (lowest === to && highest === to)) return undefined;
  if (to > lowest + 1) {
    const via = highest > lowest ? highest : lowest + 1;
    return refused(
      'MinorSkipped',
      `members run etcd ${minorName(lowest)}, which cannot be upgraded to ${target} directly: etcd is upgraded one minor at a time. Set version to ${releaseOf(via)} first`,
      via,
    );
  }
  if (to < highest && (to < highest - 1 || to < OLDEST)) {
    const via = highest - 1;
    const next = via >= OLDEST ? `Set version to ${releaseOf(via)} first, or restore` : 'Restore';
    return refused(
      'DowngradeImpossible',
      `members run etcd ${minorName(highest)}, whose data etcd ${minorName(to)} cannot read: etcd is downgraded one minor at a time, and not below 3.5. ${next} a snapshot that was taken with ${minorName(to)} into a new cluster`,
      via >= OLDEST && to >= OLDEST ? via : undefined,
    );
  }
  return belowFloor(running, to, target);
}

/** Members that were upgraded already have shown that it works: only a change that has not started is refused. */
function belowFloor(running: readonly string[], to: number, target: string): PathRefused | undefined {
  if (running.some((version) => minorOf(version) >= to)) return undefined;
  const old = running.filter(
    (version) => versionNumber(version) < versionNumber(FLOORS[minorOf(version)]?.patch ?? ''),
  );
  const [first] = old;
  const floor = first === undefined ? undefined : FLOORS[minorOf(first)];
  return (
    floor &&
    refused(
      'PatchTooOld',
      `etcd ${first} cannot be upgraded to ${target} safely: ${floor.bug} (fixed in ${floor.patch}). Set version to ${releaseOf(minorOf(floor.patch))} first`,
      minorOf(floor.patch),
    )
  );
}

/** More would be a circle. */
const MAX_STOPS = 20;

/** The versions that all members have to reach one after the other, the target last; or why there is no such way. */
export function versionPath(running: readonly string[], target: string, most = MAX_STOPS): readonly string[] | Blocked {
  const refusal = pathRefused(running, target);
  if (!refusal) return [target];
  const { via, ...blocked } = refusal;
  if (via === undefined || most === 0) return blocked;
  const before = versionPath(running, via, most - 1);
  const after = versionPath([via], target, most - 1);
  if (!isPath(before)) return before;
  return isPath(after) ? [...before, ...after] : after;
}

const isPath = (found: readonly string[] | Blocked): found is readonly string[] => Array.isArray(found);
