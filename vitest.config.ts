import { defineConfig } from 'vitest/config';

/** One project per level of test; `./dev test` runs them in this order. */
export default defineConfig({
  test: {
    projects: [
      { test: { name: 'unit', include: ['{src,tools,local}/**/*.test.ts'] } },
      {
        test: {
          name: 'integration',
          include: ['test/integration/**/*.test.ts'],
          testTimeout: 60_000,
          hookTimeout: 120_000,
        },
      },
      { test: { name: 'e2e', include: ['test/e2e/**/*.test.ts'], testTimeout: 180_000, hookTimeout: 300_000 } },
    ],
  },
});
