/** Which files belong to which level of tests; vitest has one project per level, from this list. */
import { globSync } from 'node:fs';
import { root } from '../paths.ts';
import type { Level } from './arguments.ts';

export const testFiles: Readonly<Record<Level, string>> = {
  unit: '{src,tools,local,test/support}/**/*.test.ts',
  sim: 'test/sim/**/*.test.ts',
  contract: 'test/contract/**/*.test.ts',
  integration: 'test/integration/**/*.test.ts',
  e2e: 'test/e2e/**/*.test.ts',
  sweep: 'test/sweep/**/*.test.ts',
  fuzz: 'test/fuzz/**/*.test.ts',
};

/** These are never empty: a run without them has not tested anything. */
export const requiredLevels: readonly Level[] = ['unit', 'sim', 'integration', 'e2e'];

/** They take an hour or more and run only when they are named. A slice of each is among the integration tests. */
export const namedOnly: readonly Level[] = ['sweep', 'fuzz'];

export const filesOf = (level: Level): readonly string[] => globSync(testFiles[level], { cwd: root });
