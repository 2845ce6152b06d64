import { expect, test } from 'vitest';
import type { Operation } from '../linearizability.ts';
import { gapsOf, type HandOver, sentence, unexplained } from './gaps.ts';

const op = (startMs: number, endMs: number | undefined, client = 'a'): Operation => ({
  client,
  key: 'x',
  does: 'write',
  value: `${client}-${startMs}`,
  startMs,
  endMs,
});
const handOver: HandOver = { fromMs: 1_000, toMs: 1_100 };

test.each<[string, readonly Operation[], readonly HandOver[], readonly string[]]>([
  ['all are quick', [op(0, 900), op(900, 1_900)], [], []],
  [
    'one fails without a hand-over',
    [op(0, undefined), op(300, 400)],
    [],
    ['client a: write of x at 0 ms failed after 300 ms'],
  ],
  ['one is late without a hand-over', [op(0, 1_001)], [], ['client a: write of x at 0 ms took 1001 ms']],
  ['one fails in a hand-over', [op(900, undefined), op(8_000, 8_010)], [handOver], []],
  ['one of each client is late in a hand-over', [op(900, 8_000), op(950, 8_000, 'b')], [handOver], []],
  [
    'a second one of the same client fails in the same hand-over',
    [op(1_000, undefined), op(1_050, undefined), op(1_200, 1_210)],
    [handOver],
    ['client a: write of x at 1050 ms failed after 150 ms'],
  ],
  ['a second one, in a second hand-over', [op(1_000, undefined), op(1_050, undefined)], [handOver, handOver], []],
  [
    'it had failed before the hand-over',
    [op(500, undefined), op(600, 610)],
    [handOver],
    ['client a: write of x at 500 ms failed after 100 ms'],
  ],
  ['it began after the hand-over', [op(1_101, 2_500)], [handOver], ['client a: write of x at 1101 ms took 1399 ms']],
])('%s', (_, history, handOvers, expected) => {
  expect(unexplained(gapsOf(history, 1_000), handOvers).map(sentence)).toEqual(expected);
});
