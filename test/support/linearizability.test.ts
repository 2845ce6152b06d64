/** The checker itself, on histories whose answer is known, and against one that tries every order. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { notLinearizable, type Operation } from './linearizability.ts';

/** `w1 0-5`: a write of 1 from 0 to 5 ms; `r1`: a read; `r-`: of nothing; `w1 3-?`: its outcome is unknown. */
const op = (text: string, i = 0): Operation => {
  const [, does, value, start, end] = /^([wr])(\S+) (\d+)-(\d+|\?)$/.exec(text) ?? [];
  return {
    client: `client-${i}`,
    key: 'x',
    does: does === 'w' ? 'write' : 'read',
    value: value === '-' ? undefined : value,
    startMs: Number(start),
    endMs: end === '?' ? undefined : Number(end),
  };
};

test.each<[string, boolean, readonly string[]]>([
  ['nothing happened', true, []],
  ['a key that was never written is read as nothing', true, ['r- 0-1']],
  ['a write is read after it was acknowledged', true, ['w1 0-1', 'r1 2-3']],
  ['an acknowledged write is lost', false, ['w1 0-1', 'r- 2-3']],
  ['a read is stale: it started after the next write was acknowledged', false, ['w1 0-1', 'w2 2-3', 'r1 4-5']],
  ['a read during a write returns the old value', true, ['w1 0-1', 'w2 2-9', 'r1 3-4']],
  ['a read during a write returns the new value', true, ['w1 0-1', 'w2 2-9', 'r2 3-4']],
  ['two reads during a write return the new and then the old value', false, ['w1 0-1', 'w2 2-9', 'r2 3-4', 'r1 5-6']],
  ['two reads at the same time during a write return different values', true, ['w1 0-1', 'w2 2-9', 'r2 3-6', 'r1 4-7']],
  ['two writes at the same time, the second is read twice', true, ['w1 0-9', 'w2 1-8', 'r2 10-11', 'r2 12-13']],
  ['two writes at the same time are read in both orders', false, ['w1 0-9', 'w2 1-8', 'r2 10-11', 'r1 12-13']],
  ['a value is read that was never written', false, ['w1 0-1', 'r7 2-3']],
  ['a value is read before it was written', false, ['r1 0-1', 'w1 2-3']],
  ['a write of unknown outcome did not happen', true, ['w1 0-1', 'w2 2-?', 'r1 90-91']],
  ['a write of unknown outcome happened much later', true, ['w1 0-1', 'w2 2-?', 'r1 90-91', 'r2 92-93']],
  ['a write of unknown outcome happened and was undone', false, ['w1 0-1', 'w2 2-?', 'r2 90-91', 'r1 92-93']],
  ['a write of unknown outcome was read before it started', false, ['w1 0-1', 'r2 2-3', 'w2 4-?']],
  ['a read of unknown outcome says nothing', true, ['w1 0-1', 'r7 2-?']],
  ['two operations end and start at the same moment', true, ['w1 0-5', 'r- 5-6']],
])('%s: linearizable is %j', (_, expected, history) => {
  expect(notLinearizable(history.map(op)) === undefined).toBe(expected);
});

test('each key is a register of its own, and the sentence names the key, the client and what it saw', () => {
  const other = { ...op('w2 2-3'), key: 'y' };
  expect(notLinearizable([op('w1 0-1'), other, op('r1 4-5')])).toBeUndefined();
  expect(notLinearizable([op('w1 0-1'), other, op('r- 4-5', 7)])).toBe(
    'x is not linearizable: no order of its operations explains that client-7 read nothing between 4 and 5 ms',
  );
});

const several = fc.array(
  fc.record({
    write: fc.boolean(),
    value: fc.nat(2),
    startMs: fc.nat(8),
    lasts: fc.option(fc.nat(5), { nil: undefined }),
  }),
  { maxLength: 6 },
);

test('it agrees with a search through every order, for random small histories', () => {
  const answers = { yes: 0, no: 0 };
  fc.assert(
    fc.property(several, (drawn) => {
      let written = 0;
      const history = drawn.map(({ write, value, startMs, lasts }, i) => {
        const [does, seen] = write ? ['w', `${++written}`] : ['r', value === 0 ? '-' : `${value}`];
        return op(`${does}${seen} ${startMs}-${lasts === undefined ? '?' : startMs + lasts}`, i);
      });
      const expected = someOrderExplains(history, undefined);
      answers[expected ? 'yes' : 'no']++;
      expect(notLinearizable(history) === undefined).toBe(expected);
    }),
    { numRuns: 3_000, seed: 5 },
  );
  expect(Math.min(answers.yes, answers.no), JSON.stringify(answers)).toBeGreaterThan(300);
});

/** Takes any operation that need not come after another one, and tries the rest. Those of unknown outcome may also not happen. */
function someOrderExplains(rest: readonly Operation[], value: string | undefined): boolean {
  if (rest.every(({ endMs }) => endMs === undefined)) return true;
  return rest.some((first) => {
    const others = rest.filter((other) => other !== first);
    if (others.some(({ endMs }) => endMs !== undefined && endMs < first.startMs)) return false;
    if (first.does === 'write') return someOrderExplains(others, first.value);
    return (first.endMs === undefined || first.value === value) && someOrderExplains(others, value);
  });
}

test('three thousand operations of eight clients on one key are checked within seconds', () => {
  const history: Operation[] = [];
  let value: string | undefined;
  let random = 7;
  const next = (below: number): number => (random = (random * 48_271) % 2_147_483_647) % below;
  const free = Array.from({ length: 8 }, () => 0);
  for (let at = 10; history.length < 3_000; at += 1) {
    const client = next(8);
    if ((free[client] ?? 0) > at) continue;
    const isWrite = next(2) === 0;
    if (isWrite) value = `${history.length}`;
    const endMs = at + next(10); // it takes effect at this moment, and has started before it
    free[client] = endMs + 10;
    const startMs = at - next(10);
    const does = isWrite ? 'write' : 'read';
    history.push({ client: `${client}`, key: 'x', does, value, startMs, endMs: next(500) === 0 ? undefined : endMs });
  }
  expect(notLinearizable(history)).toBeUndefined();
  const [last] = history.filter(({ does, endMs }) => does === 'read' && endMs !== undefined).slice(-1);
  const stale = history.map((each) => (each === last ? { ...each, value: '0' } : each));
  expect(notLinearizable(stale)).toContain('x is not linearizable');
});
