import { defineConfig } from 'vitest/config';
import { testFiles } from './tools/test/levels.ts';
import { LongestFirst } from './tools/test/longest-first.ts';

/** These stop the operator or break nodes: one file at a time, and none beside them. */
const e2eAlone = 'test/e2e/alone/**/*.test.ts';
const e2e = { globalSetup: 'test/e2e/setup.ts', testTimeout: 600_000, hookTimeout: 300_000 };

/** It listens on every address of this machine, where members of other files have one each. */
const takesPorts = 'test/integration/lifecycle-isolation.test.ts';

/** Files that start servers of their own and mostly wait for them. */
const withServers = { maxWorkers: 3, testTimeout: 60_000, hookTimeout: 120_000 };

/** Their cases wait for their turns: how many run in parallel is decided there. */
const atOnce = { maxConcurrency: 64, testTimeout: 60_000, hookTimeout: 120_000 };

/** None of them is about its own time limit: one that starts programs has to wait for its turn on a busy machine. */
const unit = { maxWorkers: '100%', testTimeout: 30_000, hookTimeout: 60_000 }; // one core fewer otherwise

/** One project per level of test. */
export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    projects: [
      { test: { name: 'unit', include: [testFiles.unit], ...unit } },
      { test: { name: 'sim', include: [testFiles.sim], testTimeout: 60_000 } },
      { test: { name: 'contract', include: [testFiles.contract], ...withServers } },
      { test: { name: 'integration', include: [testFiles.integration], exclude: [takesPorts], ...withServers } },
      { test: { name: 'integration-alone', include: [takesPorts], sequence: { groupOrder: 1 }, ...withServers } },
      { test: { name: 'sweep', include: [testFiles.sweep], ...atOnce } },
      { test: { name: 'fuzz', include: [testFiles.fuzz], ...atOnce } },
      // Journeys mostly wait for Pods: two cores are enough for several side by side.
      {
        test: {
          name: 'e2e',
          include: [testFiles.e2e],
          exclude: [e2eAlone],
          setupFiles: 'test/e2e/operator-dies.ts',
          maxWorkers: 5,
          ...e2e,
        },
      },
      {
        test: {
          name: 'e2e-alone',
          include: [e2eAlone],
          fileParallelism: false,
          sequence: { groupOrder: 1 }, // not at the same time as the files that share the cluster
          ...e2e,
        },
      },
    ],
  },
});
