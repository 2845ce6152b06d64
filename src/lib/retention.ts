/**
 * Which stored snapshots are kept. Each rule of a policy keeps some, and those that no rule keeps are removed:
 *
 * - `keepLast: n` keeps the newest n, `maxAge` all that are not older;
 * - `hourly: n`, `daily`, `weekly`, `monthly` and `yearly` keep the newest of each of the last n periods that have one. Periods
 *   are those of the calendar in UTC; a week starts on Monday. Periods without a snapshot do not count: a month without
 *   snapshots does not use up the number.
 *
 * A policy without a rule keeps everything. These are kept whatever the rules are: the newest good snapshot; one that a restore
 * drill restored; one from the future, because some clock is wrong (it does not count towards the number of a rule); and one
 * that is not known to be good, as long as no newer one (and not from the future) is. The last never replaces a good one either,
 * and is otherwise kept as long as if it were good. Good ones that are certain are kept as if there were no others: what may be
 * forged never takes their place.
 */
export interface Stored {
  readonly key: string;
  /** Milliseconds since 1970. */
  readonly takenAt: number;
  /** Known to be complete. */
  readonly good: boolean;
  /** It is what was stored, for certain. */
  readonly certain?: boolean;
  /** A restore drill restored it: while no newer one is known to be restorable, it may be the last that is. */
  readonly restorable?: boolean;
}

type Rule = 'keepLast' | 'maxAge' | 'hourly' | 'daily' | 'weekly' | 'monthly' | 'yearly';

/** Numbers of snapshots; `maxAge` is in milliseconds. */
export type RetentionPolicy = { readonly [Name in Rule]?: number | undefined };

export interface Verdicts<T> {
  /** Newest first, each with all rules that keep it. */
  readonly keep: readonly { readonly entry: T; readonly because: readonly string[] }[];
  /** Oldest first: when the removal is interrupted, the newer ones still exist. */
  readonly remove: readonly T[];
}

const DAY_MS = 86_400_000;
/** 1 January 1970 was a Thursday. */
const MONDAY_OFFSET_DAYS = 3;

const PERIODS: readonly (readonly [Rule, (time: number) => number])[] = [
  ['hourly', (time) => Math.floor(time / 3_600_000)],
  ['daily', (time) => Math.floor(time / DAY_MS)],
  ['weekly', (time) => Math.floor((time / DAY_MS + MONDAY_OFFSET_DAYS) / 7)],
  ['monthly', (time) => new Date(time).getUTCFullYear() * 12 + new Date(time).getUTCMonth()],
  ['yearly', (time) => new Date(time).getUTCFullYear()],
];

export function retain<T extends Stored>(history: readonly T[], policy: RetentionPolicy, now: number): Verdicts<T> {
  const newestFirst = [...history].sort((a, b) => b.takenAt - a.takenAt || (a.key < b.key ? 1 : -1));
  const reasonsOf = judged(newestFirst, policy, now);
  const verdicts = newestFirst.map((entry, place) => ({ entry, because: reasonsOf(entry, place) }));
  return {
    keep: verdicts.filter(({ because }) => because.length > 0),
    remove: verdicts.flatMap(({ entry, because }) => (because.length > 0 ? [] : [entry])).reverse(),
  };
}

/** The reasons that keep an entry; `place` is its index from the newest. */
function judged<T extends Stored>(
  newestFirst: readonly T[],
  policy: RetentionPolicy,
  now: number,
): (entry: T, place: number) => readonly string[] {
  if (!Object.values(policy).some((rule: number | undefined) => (rule ?? 0) > 0)) return () => ['no policy'];
  const isGood = ({ good }: Stored): boolean => good;
  const isPast = ({ takenAt }: Stored): boolean => takenAt <= now;
  const past = newestFirst.filter(isPast);
  const isCertain = ({ good, certain = false }: Stored): boolean => good && certain;
  const forCertain = kept(past.filter(isCertain), policy, now);
  const [forGood, forAny] = [kept(past.filter(isGood), policy, now), kept(past, policy, now)];
  const rulesFor = (entry: T): readonly string[] => [
    ...new Set([...((entry.good ? forGood : forAny).get(entry) ?? []), ...(forCertain.get(entry) ?? [])]),
  ];
  const latest = past.find(isGood);
  const newestGood = [newestFirst.find(isGood), latest, past.find(isCertain)];
  const latestPlace = latest ? newestFirst.indexOf(latest) : newestFirst.length;
  return (entry, place) => [
    ...rulesFor(entry),
    ...(newestGood.includes(entry) ? ['newest good'] : []),
    ...(entry.restorable === true ? ['restored by a drill'] : []),
    ...(isPast(entry) ? [] : ['from the future']),
    ...(!entry.good && place < latestPlace ? ['nothing newer is good'] : []),
  ];
}

/** The entries that the rules of the policy keep. */
function kept<T extends Stored>(
  newestFirst: readonly T[],
  policy: RetentionPolicy,
  now: number,
): ReadonlyMap<T, readonly string[]> {
  const reasons = new Map<T, string[]>();
  const keep = (rule: string, entries: readonly T[]): void => {
    for (const entry of entries) reasons.set(entry, [...(reasons.get(entry) ?? []), rule]);
  };
  keep('keepLast', newestFirst.slice(0, policy.keepLast ?? 0));
  keep(
    'maxAge',
    newestFirst.filter(({ takenAt }) => now - takenAt <= (policy.maxAge || -1)),
  );
  for (const [rule, periodOf] of PERIODS) keep(rule, newestOfEach(newestFirst, periodOf).slice(0, policy[rule] ?? 0));
  return reasons;
}

/** The newest of each period that has one, newest first. */
function newestOfEach<T extends Stored>(newestFirst: readonly T[], periodOf: (time: number) => number): readonly T[] {
  const periods = Map.groupBy(newestFirst, ({ takenAt }) => periodOf(takenAt));
  return [...periods.values()].flatMap(([newest]) => newest ?? []);
}
