/** A slice of `./dev test fuzz`, and what its plans rely on. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { fieldsToEdit } from '../fuzz/edits.ts';
import { Fuzz } from '../fuzz/fuzz.ts';
import { planRound } from '../fuzz/plan.ts';
import { Random } from '../fuzz/random.ts';
import { shapeOf } from '../fuzz/shapes.ts';
import { clusterSpecSchema } from '../support/builders/spec-arbitrary.ts';

/** Together they have most actions: five members on volumes, and three in memory with mTLS and auth. */
const SEEDS = [5, 87];
const ROUNDS = 2;

let fuzz: Fuzz;
beforeAll(async () => {
  fuzz = await Fuzz.start();
});
afterAll(async () => {
  await fuzz?.stop();
});

test.concurrent.each(SEEDS)(
  'seed %i: after each round of edits and faults, a valid spec is reached within a minute and no acknowledged write is lost',
  async (seed) => {
    expect(await fuzz.run(seed, { rounds: ROUNDS, pvcs: true, say: () => {} })).toBe('');
  },
  300_000,
);

test('a seed makes the same choices each time', () => {
  const plan = () => planRound(7, 3, shapeOf(7), { pvcs: true });
  expect(plan()).toEqual(plan());
});

test('a PVC is deleted at most once in a round, and before anything else is done to its member', () => {
  for (let round = 1; round <= 1_000; round++) {
    const actions = planRound(1, round, shapeOf(1), { pvcs: true }).map(({ action }) => action);
    expect(actions.lastIndexOf('delete a PVC')).toBeLessThan(1);
  }
});

test('members with data in memory are lost only at rest, before anything else happens', () => {
  const inMemory = shapeOf(4);
  expect(inMemory.inMemory).toBe(true);
  for (let round = 1; round <= 1_000; round++) {
    const actions = planRound(4, round, inMemory, { pvcs: true }).map(({ action }) => action);
    expect(actions).not.toContain('delete Pods');
    expect(actions.lastIndexOf('lose a member')).toBeLessThan(1);
  }
});

test('every field of the spec is edited', () => {
  const edited = Array.from({ length: 1_000 }, (_, i) => fieldsToEdit(new Random(1, i))).flat();
  expect([...new Set(edited)].sort()).toEqual(Object.keys(clusterSpecSchema.properties ?? {}).sort());
});
