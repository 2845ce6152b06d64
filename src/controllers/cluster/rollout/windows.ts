/** Maintenance windows: when edits may be rolled out. Repairs, CA rotations and requested restarts do not wait for them. */
import type { EtcdClusterSpec } from '../../../api/etcd-cluster.ts';
import type { Blocked } from '../../../domain/disruption.ts';
import { MAX_REQUEUE_MS } from '../../../domain/timing.ts';
import { lastUntil, nextAfter, parseCron } from '../../../lib/cron.ts';
import { parseDuration } from '../../../lib/duration.ts';
import { iso } from '../../../lib/time.ts';
import type { ClusterFacts } from '../observed.ts';

type Window = NonNullable<NonNullable<EtcdClusterSpec['updateStrategy']>['maintenanceWindows']>[number];

const NONE: readonly Window[] = [];
const windowsOf = ({ cluster }: ClusterFacts): readonly Window[] =>
  cluster.spec.updateStrategy?.maintenanceWindows ?? NONE;

interface Opening {
  readonly isOpen: boolean;
  /** When it opens next; absent when it never does. */
  readonly next?: number;
  /** Why it never opens. */
  readonly invalid?: string;
}

function openingOf({ schedule, duration, timeZone }: Window, now: number): Opening {
  const parsed = parseCron(schedule, timeZone);
  if (!parsed.ok) return { isOpen: false, invalid: `schedule "${schedule}": ${parsed.message}` };
  const lengthMs = parseDuration(duration);
  if (lengthMs === undefined) return { isOpen: false, invalid: `duration "${duration}" is none, such as 2h` };
  const last = lastUntil(parsed.cron, now);
  const next = nextAfter(parsed.cron, now);
  return { isOpen: last !== undefined && now < last + lengthMs, ...(next !== undefined && { next }) };
}

interface Judged {
  readonly now: number;
  readonly openings: readonly Opening[];
}
const judged = new WeakMap<readonly Window[], Judged>();

/** Once per reconcile, which asks four times for each member: a search goes through up to eight years. */
function openingsOf(o: ClusterFacts): readonly Opening[] {
  const windows = windowsOf(o);
  const known = judged.get(windows);
  if (known?.now === o.now) return known.openings;
  const openings = windows.map((window) => openingOf(window, o.now));
  judged.set(windows, { now: o.now, openings });
  return openings;
}

const nextOpening = (openings: readonly Opening[]): number | undefined => {
  const times = openings.flatMap(({ next }) => next ?? []);
  return times.length === 0 ? undefined : Math.min(...times);
};

export const WAITING_FOR_WINDOW = 'WaitingForWindow';

/** `undefined` while a window is open, and without windows. */
export function windowBlockedBy(o: ClusterFacts): Blocked | undefined {
  const openings = openingsOf(o);
  if (openings.length === 0 || openings.some(({ isOpen }) => isOpen)) return undefined;
  const next = nextOpening(openings);
  const when =
    next === undefined ? 'no maintenance window opens any more' : `the next maintenance window opens at ${iso(next)}`;
  const invalid = openings.flatMap((each) => each.invalid ?? []).map((text) => `; maintenanceWindows: ${text}`);
  return { reason: WAITING_FOR_WINDOW, message: [when, ...invalid].join('') };
}

/** When an edit that waits has to be looked at again. */
export function windowOpensInMs(o: ClusterFacts): number | undefined {
  const next = windowBlockedBy(o) && nextOpening(openingsOf(o));
  return next === undefined ? undefined : Math.min(next - o.now, MAX_REQUEUE_MS);
}
