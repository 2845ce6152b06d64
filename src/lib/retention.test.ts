import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type RetentionPolicy, retain, type Stored } from './retention.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const NOW = Date.parse('2026-03-18T12:00:00Z'); // a Wednesday

const at = (time: string, good = true): Stored => ({ key: time, takenAt: Date.parse(time), good });
const keptKeys = (history: readonly Stored[], policy: RetentionPolicy, now = NOW): readonly string[] =>
  retain(history, policy, now).keep.map(({ entry }) => entry.key);

/** Newest first: one each midnight. */
const days = (count: number): readonly Stored[] =>
  Array.from({ length: count }, (_, i) => at(new Date(NOW - 12 * HOUR - i * DAY).toISOString()));
const names = (entries: readonly Stored[]): readonly string[] => entries.map(({ key }) => key);

describe('each rule', () => {
  test('a policy without rules keeps everything, and so does one whose rules are all zero', () => {
    expect(keptKeys(days(50), {})).toHaveLength(50);
    expect(keptKeys(days(50), { keepLast: 0, maxAge: 0, daily: 0 })).toHaveLength(50);
  });

  test('keepLast keeps the newest', () => {
    expect(keptKeys(days(50), { keepLast: 3 })).toEqual(names(days(3)));
    expect(keptKeys(days(2), { keepLast: 3 })).toEqual(names(days(2)));
  });

  test('of two that were taken at the same time, the one with the later key is the newer', () => {
    const [a, b] = ['a', 'b'].map((key) => ({ ...at('2026-03-18T10:00:00Z'), key })) as [Stored, Stored];
    expect(keptKeys([a, b], { keepLast: 1 })).toEqual(['b']);
    expect(keptKeys([b, a], { keepLast: 1 })).toEqual(['b']);
  });

  test('a snapshot that was taken at this moment is not from the future, and a maxAge of 0 does not keep it', () => {
    const [now, later] = [at('2026-03-18T12:00:00Z'), at('2026-03-18T12:00:01Z')];
    const reasons = (history: readonly Stored[], policy: RetentionPolicy) =>
      retain(history, policy, NOW).keep.map(({ because }) => because);
    expect(reasons([now], { maxAge: 0, keepLast: 1 })).toEqual([['keepLast', 'newest good']]);
    expect(reasons([later, now], { keepLast: 1 })).toEqual([
      ['newest good', 'from the future'],
      ['keepLast', 'newest good'],
    ]);
  });

  test('maxAge keeps what is not older, and the newest however old', () => {
    expect(keptKeys(days(50), { maxAge: 2.5 * DAY })).toEqual(names(days(3)));
    expect(keptKeys(days(50), { maxAge: 2.5 * DAY - 1 })).toEqual(names(days(2)));
    expect(keptKeys(days(50), { maxAge: HOUR })).toEqual(names(days(1)));
  });

  test.each<[keyof RetentionPolicy, readonly string[], readonly string[]]>([
    [
      'hourly',
      ['2026-03-18T11:59:59Z', '2026-03-18T11:00:00Z', '2026-03-18T10:59:59Z', '2026-03-18T09:00:00Z'],
      ['2026-03-18T11:59:59Z', '2026-03-18T10:59:59Z'],
    ],
    [
      'daily',
      ['2026-03-18T01:00:00Z', '2026-03-18T00:00:00Z', '2026-03-17T23:59:59Z', '2026-03-16T01:00:00Z'],
      ['2026-03-18T01:00:00Z', '2026-03-17T23:59:59Z'],
    ],
    [
      'weekly',
      [
        '2026-03-17T01:00:00Z',
        '2026-03-16T00:00:00Z',
        '2026-03-15T23:59:59Z',
        '2026-03-09T00:00:00Z',
        '2026-03-08T23:00:00Z',
      ],
      ['2026-03-17T01:00:00Z', '2026-03-15T23:59:59Z'],
    ],
    [
      'monthly',
      ['2026-03-02T00:00:00Z', '2026-03-01T00:00:00Z', '2026-02-28T23:59:59Z', '2026-01-31T00:00:00Z'],
      ['2026-03-02T00:00:00Z', '2026-02-28T23:59:59Z'],
    ],
    [
      'yearly',
      ['2026-03-02T00:00:00Z', '2026-01-01T00:00:00Z', '2025-12-31T23:59:59Z', '2024-12-31T00:00:00Z'],
      ['2026-03-02T00:00:00Z', '2025-12-31T23:59:59Z'],
    ],
  ])('%s keeps the newest of each of the last periods', (rule, history, kept) => {
    expect(
      keptKeys(
        history.map((time) => at(time)),
        { [rule]: 2 },
      ),
    ).toEqual(kept);
  });

  test('a period without a snapshot does not count', () => {
    const history = ['2026-03-18T01:00:00Z', '2026-01-02T01:00:00Z', '2025-06-01T01:00:00Z'].map((time) => at(time));
    expect(keptKeys(history, { daily: 2 })).toEqual(['2026-03-18T01:00:00Z', '2026-01-02T01:00:00Z']);
  });

  test('a snapshot may be kept by several rules, and all of them are reported', () => {
    const { keep, remove } = retain(days(40), { keepLast: 2, daily: 3, weekly: 2, monthly: 2 }, NOW);
    expect(keep.map(({ entry, because }) => [entry.key.slice(0, 10), because.join('+')])).toEqual([
      ['2026-03-18', 'keepLast+daily+weekly+monthly+newest good'],
      ['2026-03-17', 'keepLast+daily'],
      ['2026-03-16', 'daily'],
      ['2026-03-15', 'weekly'],
      ['2026-02-28', 'monthly'],
    ]);
    expect(remove).toHaveLength(35);
    expect(remove[0]?.key.slice(0, 10)).toBe('2026-02-07');
  });
});

describe('whatever the rules are', () => {
  test('a snapshot that is not good does not replace a good one', () => {
    const history = [at('2026-03-18T03:00:00Z', false), at('2026-03-18T02:00:00Z'), at('2026-03-17T02:00:00Z')];
    expect(keptKeys(history, { keepLast: 1 })).toEqual(['2026-03-18T03:00:00Z', '2026-03-18T02:00:00Z']);
    expect(keptKeys(history, { daily: 2 })).toHaveLength(3);
  });

  test('nothing is removed when no snapshot is good', () => {
    expect(
      keptKeys(
        days(20).map((entry) => ({ ...entry, good: false })),
        { keepLast: 1 },
      ),
    ).toHaveLength(20);
  });

  test('a snapshot that is not good is removed when a newer one is good and no rule would keep it', () => {
    const history = [at('2026-03-18T03:00:00Z'), at('2026-03-17T02:00:00Z', false), at('2026-03-16T02:00:00Z', false)];
    expect(keptKeys(history, { keepLast: 2 })).toEqual(['2026-03-18T03:00:00Z', '2026-03-17T02:00:00Z']);
  });

  test('a snapshot that a restore drill restored is kept, however old, and does not count for keepLast', () => {
    const [newest, second, third, ...older] = days(20);
    const proven = older.map((entry, i) => (i === 10 ? { ...entry, restorable: true } : entry));
    const history = [newest, second, third, ...proven].flatMap((entry) => entry ?? []);
    expect(keptKeys(history, { keepLast: 3 })).toEqual(names([...history.slice(0, 3), history[13] as Stored]));
    expect(retain(history, { keepLast: 3 }, NOW).keep.at(-1)?.because).toEqual(['restored by a drill']);
  });

  test('a certain one is kept as if there were no others, also as the newest', () => {
    const entry = (key: string, ageHours: number, certain = false): Stored => ({
      key,
      takenAt: NOW - ageHours * 3_600_000,
      good: true,
      certain,
    });
    const history = [entry('first', 9, true), entry('second', 8, true), entry('forged', 7), entry('more', 1)];
    const kept = (policy: RetentionPolicy) => names(retain(history, policy, NOW).keep.map((each) => each.entry));
    expect(kept({ keepLast: 1 })).toEqual(['more', 'second']);
    expect(kept({ keepLast: 2 })).toEqual(['more', 'forged', 'second', 'first']);
    expect(kept({ maxAge: 3_600_000 })).toEqual(['more', 'second']);
    expect(
      names(retain([...history, { ...entry('damaged', 0, true), good: false }], { keepLast: 1 }, NOW).remove),
    ).toEqual(['first', 'forged']);
  });

  test('a snapshot from the future is kept, and does not count for keepLast', () => {
    const history = [at('2027-01-01T00:00:00Z'), at('2026-03-18T02:00:00Z'), at('2026-03-17T02:00:00Z')];
    expect(keptKeys(history, { keepLast: 1 })).toEqual(['2027-01-01T00:00:00Z', '2026-03-18T02:00:00Z']);
    expect(keptKeys([...history, { key: 'x', takenAt: Infinity, good: false }], { keepLast: 1 })).toHaveLength(3);
  });
});

const count = fc.option(fc.nat(5), { nil: undefined });
const policies: fc.Arbitrary<RetentionPolicy> = fc.record({
  keepLast: count,
  maxAge: fc.option(fc.nat(400 * DAY), { nil: undefined }),
  hourly: count,
  daily: count,
  weekly: count,
  monthly: count,
  yearly: count,
});
/** Dense and sparse, some at the same time, some in the future. */
const times = fc
  .oneof(fc.nat(2 * DAY), fc.nat(40 * DAY), fc.nat(1500 * DAY), fc.constantFrom(0, DAY, 7 * DAY))
  .map((age) => NOW + DAY - age);
const histories: fc.Arbitrary<readonly Stored[]> = fc
  .array(fc.record({ takenAt: times, good: fc.boolean(), restorable: fc.boolean() }), { maxLength: 40 })
  .map((entries) => entries.map((entry, i) => ({ ...entry, key: `s${i}` })));

describe('for any history and any policy', () => {
  const holds = (promise: (history: readonly Stored[], policy: RetentionPolicy) => void): void =>
    fc.assert(fc.property(histories, policies, promise), { numRuns: 1000 });
  const sorted = (entries: readonly Stored[]): readonly string[] => [...names(entries)].sort();

  test('everything is either kept or removed', () => {
    holds((history, policy) => {
      const { keep, remove } = retain(history, policy, NOW);
      expect(sorted([...keep.map(({ entry }) => entry), ...remove])).toEqual(sorted(history));
    });
  });

  test('the newest good snapshot is kept, and so is the newest good one that is not from the future', () => {
    holds((history, policy) => {
      const removed = retain(history, policy, NOW).remove;
      for (const among of [history, history.filter(({ takenAt }) => takenAt <= NOW)]) {
        const good = among.filter((entry) => entry.good);
        const newest = Math.max(...good.map(({ takenAt }) => takenAt));
        if (good.length > 0)
          expect(good.some((entry) => entry.takenAt === newest && !removed.includes(entry))).toBe(true);
      }
    });
  });

  test('snapshots that a restore drill restored are kept, and do not replace others', () => {
    holds((history, policy) => {
      const { remove } = retain(history, policy, NOW);
      expect(remove.filter(({ restorable }) => restorable === true)).toEqual([]);
      const unproven = history.map((entry) => ({ ...entry, restorable: false }));
      const removed = names(retain(unproven, policy, NOW).remove);
      expect(names(remove)).toEqual(removed.filter((key) => history.find((e) => e.key === key)?.restorable !== true));
    });
  });

  test('snapshots that are not known to be good change nothing for those that are', () => {
    holds((history, policy) => {
      const good = history.filter((entry) => entry.good);
      const removed = retain(history, policy, NOW).remove.filter((entry) => entry.good);
      expect(names(removed)).toEqual(names(retain(good, policy, NOW).remove));
    });
  });

  test('others change nothing for those that are certain', () => {
    const marked = histories.map((history) => history.map((entry, i) => ({ ...entry, certain: i % 3 === 0 })));
    fc.assert(
      fc.property(marked, policies, (history, policy) => {
        const certain = history.filter((entry) => entry.certain && entry.good);
        const removed = names(retain(history, policy, NOW).remove);
        expect(
          names(retain(certain, policy, NOW).keep.map(({ entry }) => entry)).filter((key) => removed.includes(key)),
        ).toEqual([]);
      }),
      { numRuns: 1000 },
    );
  });

  // A second implementation, one entry at a time: an entry is removed only if every rule is satisfied by enough others.
  const periods: readonly [keyof RetentionPolicy, (time: number) => string][] = [
    ['hourly', (time) => new Date(time).toISOString().slice(0, 13)],
    ['daily', (time) => new Date(time).toISOString().slice(0, 10)],
    ['weekly', (time) => new Date(time - ((new Date(time).getUTCDay() + 6) % 7) * DAY).toISOString().slice(0, 10)],
    ['monthly', (time) => new Date(time).toISOString().slice(0, 7)],
    ['yearly', (time) => new Date(time).toISOString().slice(0, 4)],
  ];
  test('no rule keeps what is removed', () => {
    holds((history, policy) => {
      const { remove } = retain(history, policy, NOW);
      if (Object.values(policy).every((rule: number | undefined) => !rule)) {
        expect(remove).toEqual([]);
        return;
      }
      const good = history.filter((entry) => entry.good && entry.takenAt <= NOW);
      for (const entry of remove) {
        const newer = good.filter((other) => other !== entry && other.takenAt >= entry.takenAt);
        expect(entry.takenAt).toBeLessThanOrEqual(NOW);
        expect(newer.length).toBeGreaterThanOrEqual(Math.max(1, entry.good ? (policy.keepLast ?? 0) : 1));
        if (policy.maxAge) expect(NOW - entry.takenAt).toBeGreaterThan(policy.maxAge);
        if (!entry.good) continue;
        for (const [rule, periodOf] of periods) {
          const mine = periodOf(entry.takenAt);
          const others = new Set(newer.map(({ takenAt }) => periodOf(takenAt)));
          expect(others.has(mine) || others.size >= (policy[rule] ?? 0)).toBe(true);
        }
      }
    });
  });

  test('a second run removes nothing more', () => {
    holds((history, policy) => {
      const { keep } = retain(history, policy, NOW);
      expect(
        retain(
          keep.map(({ entry }) => entry),
          policy,
          NOW,
        ).remove,
      ).toEqual([]);
    });
  });

  test('a removal that was interrupted anywhere has the same result when it is repeated', () => {
    fc.assert(
      fc.property(histories, policies, fc.nat(40), (history, policy, done) => {
        const { keep, remove } = retain(history, policy, NOW);
        const left = history.filter((entry) => !remove.slice(0, done).includes(entry));
        expect(retain(left, policy, NOW).keep.map(({ entry }) => entry.key)).toEqual(
          keep.map(({ entry }) => entry.key),
        );
      }),
      { numRuns: 1000 },
    );
  });

  test('the order in which a store lists snapshots does not matter', () => {
    fc.assert(
      fc.property(
        histories.chain((history) =>
          fc.tuple(fc.constant(history), fc.shuffledSubarray([...history], { minLength: history.length })),
        ),
        policies,
        ([history, shuffled], policy) => {
          expect(retain(shuffled, policy, NOW)).toEqual(retain(history, policy, NOW));
        },
      ),
      { numRuns: 500 },
    );
  });

  test('an additional or larger rule never removes more', () => {
    fc.assert(
      fc.property(
        histories,
        policies,
        fc.constantFrom<keyof RetentionPolicy>('keepLast', 'daily', 'weekly', 'maxAge'),
        fc.integer({ min: 1, max: 9 }),
        (history, policy, rule, more) => {
          if (Object.values(policy).every((value: number | undefined) => !value)) return;
          const larger = { ...policy, [rule]: (policy[rule] ?? 0) + more };
          const removed = names(retain(history, policy, NOW).remove);
          expect(names(retain(history, larger, NOW).remove).every((key) => removed.includes(key))).toBe(true);
        },
      ),
      { numRuns: 500 },
    );
  });
});

test('a hundred thousand snapshots are handled within 5 s', () => {
  const many = Array.from({ length: 100_000 }, (_, i) => ({
    key: `s${i}`,
    takenAt: NOW - i * 600_000,
    good: i % 7 !== 0,
  }));
  const began = performance.now();
  retain(many, { keepLast: 10, daily: 30, weekly: 8, monthly: 24, yearly: 3, maxAge: 30 * DAY }, NOW);
  expect(performance.now() - began).toBeLessThan(5_000);
});
