import { expect, test } from 'vitest';
import { beThrifty, type Memory, processMemory } from './thrift.ts';

const MIB = 1024 ** 2;

/** The looks at which it collected, when the memory is as told at each of them. */
async function collections(looks: readonly { readonly taken: number; readonly busy: number }[]) {
  const over = new AbortController();
  const at: number[] = [];
  let look = -1;
  let floor = 0;
  const memory: Memory = {
    taken: () => (looks[look]?.taken ?? 0) * MIB,
    needed: () => floor,
    busy: () => looks[look]?.busy ?? 0,
    collect: async () => {
      at.push(look);
      floor = 40 * MIB;
    },
  };
  const after = (_ms: number, call: () => void) => {
    if (++look >= looks.length) over.abort();
    queueMicrotask(call);
    return () => undefined;
  };
  await beThrifty(memory, { now: () => 0, monotonic: () => 0, random: () => 0, after }, over.signal);
  return at;
}

test('memory is given back once when a burst is over, and not while it lasts', async () => {
  const burst = { taken: 150, busy: 0.9 };
  const quiet = { taken: 150, busy: 0.01 };
  const lean = { taken: 44, busy: 0.01 };
  expect(await collections([burst, burst, quiet, lean, lean])).toEqual([2]);
});

test('a heap that has no more than it needs is left alone, and one that cannot be made smaller is not tried all the time', async () => {
  const quiet = { taken: 90, busy: 0 };
  expect(await collections(Array.from({ length: 24 }, () => quiet))).toEqual([0, 12]);
  expect(
    await collections([{ taken: 90, busy: 0 }, ...Array.from({ length: 24 }, () => ({ taken: 50, busy: 0 }))]),
  ).toEqual([0]);
});

test('the memory of this process becomes smaller when garbage was made', async () => {
  const memory = processMemory();
  let garbage: object[] | undefined = Array.from({ length: 400_000 }, (_, n) => ({ n, text: `text ${n}` }));
  expect(garbage.length).toBe(400_000);
  garbage = undefined;
  const before = memory.taken();
  await memory.collect();
  expect(memory.taken()).toBeLessThan(before - 8 * MIB);
  expect(memory.needed()).toBeLessThan(before - 8 * MIB);
  expect(memory.busy()).toBeGreaterThan(0);
});
