import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Outcome, run } from './run.ts';
import { MUST_HAPPEN } from './scope.ts';
import { type Found, search } from './search.ts';

/** The same worlds in every run, so that a change is judged by its own effects; another seed tests other worlds. */
const SEED = Number(process.env['SEED'] ?? 1);
const CI_STEPS = 1_000_000;
const STEPS = Number(process.env['STEPS'] ?? CI_STEPS);
const KEPT = join(import.meta.dirname, '../../.cache/sim');

interface Sum {
  steps: number;
  runs: number;
  virtualMs: number;
  readonly tally: Map<string, number>;
}

function add(sum: Sum, { steps, virtualMs, tally }: Outcome): void {
  sum.steps += steps;
  sum.runs++;
  sum.virtualMs += virtualMs;
  for (const [kind, count] of tally) sum.tally.set(kind, (sum.tally.get(kind) ?? 0) + count);
}

const table = ({ steps, runs, virtualMs, tally }: Sum): string =>
  [
    `${steps} steps in ${runs} worlds, ${Math.round(virtualMs / 3_600_000)} hours of virtual time`,
    ...[...tally].sort(([a], [b]) => (a < b ? -1 : 1)).map(([kind, count]) => `${String(count).padStart(8)}  ${kind}`),
  ].join('\n');

/** Fails with the whole story of the smallest script that still breaks, and saves the script for a replay. */
async function fail({ script, seed }: Found): Promise<never> {
  const { broken, story } = await run(script, true);
  mkdirSync(KEPT, { recursive: true });
  const file = join(KEPT, `${broken?.split(':')[0] ?? 'unknown'}-${script.seed}.json`);
  writeFileSync(file, `${JSON.stringify({ why: broken, script }, null, 2)}\n`);
  throw new Error([...story, `seed ${seed}: ${broken}`, `saved to ${file}`].join('\n'));
}

test(`under random faults the operator violates no invariant and converges (seed ${SEED})`, async () => {
  const sum: Sum = { steps: 0, runs: 0, virtualMs: 0, tally: new Map() };
  // Some faults are rare: a shorter run finds breaks, and need not have every fault.
  const expected = STEPS < CI_STEPS ? [] : MUST_HAPPEN;
  const missing = (): readonly string[] => expected.filter((kind) => !sum.tally.has(kind));
  const found = await search({
    seed: SEED,
    steps: STEPS,
    isEnough: () => missing().length === 0,
    shrink: true,
    seen: (outcome) => add(sum, outcome),
  });
  if (found) await fail(found);
  process.stdout.write(`${table(sum)}\n`);
  expect(missing()).toEqual([]);
}, 1_800_000);
