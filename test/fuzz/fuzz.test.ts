/** `./dev test fuzz`: random edits and faults against real clusters, by seed. See test/README.md. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Fuzz } from './fuzz.ts';

const given = process.env['SEED']?.split(',').map(Number);
const seeds = given ?? Array.from({ length: 10 }, (_, i) => i + 1);
const rounds = process.env['ROUNDS'];
const HOURS = 3 * 3_600_000;

const limits = {
  ...(rounds === undefined ? { minutes: Number(process.env['MINUTES'] ?? 10) } : { rounds: Number(rounds) }),
  pvcs: process.env['PVCS'] !== '0',
  say: (line: string) => void process.stderr.write(`${line}\n`),
};

let fuzz: Fuzz;
beforeAll(async () => {
  fuzz = await Fuzz.start();
});
afterAll(async () => {
  await fuzz?.stop();
});

test.concurrent.each(seeds)(
  'seed %i: after each round of edits and faults, a valid spec is reached within a minute and no acknowledged write is lost',
  async (seed) => {
    expect(await fuzz.run(seed, limits)).toBe('');
  },
  HOURS,
);
