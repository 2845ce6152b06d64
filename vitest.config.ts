import { defineConfig } from 'vitest/config';
import { testFiles } from './tools/test/levels.ts';

/** One project per level of test; `./dev test` runs them one after the other. */
export default defineConfig({
  test: {
    projects: [
      { test: { name: 'unit', include: [testFiles.unit] } },
      { test: { name: 'sim', include: [testFiles.sim], testTimeout: 60_000 } },
      { test: { name: 'contract', include: [testFiles.contract], testTimeout: 60_000, hookTimeout: 120_000 } },
      { test: { name: 'integration', include: [testFiles.integration], testTimeout: 60_000, hookTimeout: 120_000 } },
      { test: { name: 'e2e', include: [testFiles.e2e], testTimeout: 180_000, hookTimeout: 300_000 } },
    ],
  },
});
