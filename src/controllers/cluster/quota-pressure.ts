/** The condition QuotaPressure: etcd will refuse writes soon, and what helps. Figures are in steps: no write of the status at rest. */
import { quotaOf } from '../../api/defaults.ts';
import { DEFAULT_SIZE } from '../../api/storage.ts';
import { type ConditionUpdate, findCondition } from '../../domain/conditions.ts';
import { mebibytes } from '../../domain/defragmentation.ts';
import { growthRemedy } from '../../domain/space.ts';
import { quantityBytes } from '../../lib/quantity.ts';
import { type ClusterFacts, isVoter, type MemberView, type SelfReport } from './observed.ts';

export const QUOTA_PRESSURE = 'QuotaPressure';

/** Of the quota. Below half of it, a trend is mostly that of a cluster that starts, before its first compaction. */
const NEARLY_FULL = 0.8;
const MIN_USED = 0.5;
/** What is reported is withdrawn only when it is less by this much. */
const SLACK = 0.05;
const HORIZON_HOURS = 24;
const STEPS = [24, 12, 8, 4, 2, 1] as const;

type Measured = MemberView & { readonly self: SelfReport };

/** The voter with the largest share of its quota in use. The file may be larger: etcd uses its free pages first. */
function fullest({ members }: ClusterFacts): Measured | undefined {
  const measured = members.filter((m): m is Measured => isVoter(m) && m.self !== undefined);
  return measured.toSorted((a, b) => share(b) - share(a))[0];
}
const share = ({ self, object }: Measured): number => self.databaseBytesInUse / quotaOf(object);

/** Rounded down to a step; the previous step stays until it is clearly wrong. */
export function coarseHours(hours: number, before: number | undefined): number {
  const step = STEPS.find((each) => each <= hours) ?? 0;
  const next = before === undefined ? undefined : (STEPS.findLast((each) => each > before) ?? HORIZON_HOURS);
  const isClose = before !== undefined && next !== undefined && hours >= before * 0.75 && hours <= next * 1.25;
  return isClose ? before : step;
}

const FORECAST = /in about (\d+) hours|in less than an hour/;
const written = (hours: number): string => (hours === 0 ? 'in less than an hour' : `in about ${hours} hours`);

export function pressureConditions(o: ClusterFacts): readonly ConditionUpdate[] {
  const before = findCondition(o.cluster.status?.conditions, QUOTA_PRESSURE);
  const m = fullest(o);
  if (!m) return before ? [before] : []; // no member responds: nothing is known
  const slack = before ? SLACK : 0;
  const used = share(m);
  if (used < MIN_USED - slack) return [];
  const isNearlyFull = used >= NEARLY_FULL - (before?.reason === 'NearlyFull' ? SLACK : 0);
  if (o.spaceTrend === undefined && before?.reason === 'FillsUp' && !isNearlyFull) return [before]; // the operator was restarted
  const forecast = forecastOf(o, m, before?.message);
  if (!isNearlyFull && forecast === undefined) return [];
  const quota = quotaOf(m.object);
  const volume = quantityBytes(o.cluster.spec.storage?.size ?? DEFAULT_SIZE);
  const what = isNearlyFull
    ? `keys and history take more than ${100 * NEARLY_FULL} % of the quota of ${mebibytes(quota)}`
    : `keys and history take more than ${100 * MIN_USED} % of the quota of ${mebibytes(quota)}, and grow`;
  const until = forecast === undefined ? '' : `; at the present rate etcd refuses writes ${forecast}`;
  const remedy = `Keep less history (options.autoCompactionRetention), ${growthRemedy(m.self.databaseBytesInUse, quota, volume)}`;
  const reason = isNearlyFull ? 'NearlyFull' : 'FillsUp';
  return [{ type: QUOTA_PRESSURE, status: 'True', reason, message: `${what}${until}. ${remedy}` }];
}

/** `undefined`: not within a day. */
function forecastOf({ spaceTrend }: ClusterFacts, m: Measured, before: string | undefined): string | undefined {
  const found = FORECAST.exec(before ?? '');
  if (!spaceTrend) return found?.[0];
  if (spaceTrend.bytesPerHour <= 0) return undefined;
  const hours = Math.max(0, quotaOf(m.object) - m.self.databaseBytesInUse) / spaceTrend.bytesPerHour;
  if (hours > HORIZON_HOURS * (found ? 1.5 : 1)) return undefined;
  return written(coarseHours(hours, found ? Number(found[1] ?? 0) : undefined));
}
