/** How many files a reader has to open to follow the simplest story: a cluster of one member is created, without TLS. */
import { Session } from 'node:inspector/promises';
import { expect, test } from 'vitest';
import { run } from './run.ts';

/** It may fall, and it may not grow. */
const MAX_FILES = 208;

test('the creation of one member runs functions of no more files than before', async () => {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  // After all imports: what modules do when they are loaded does not count.
  await session.post('Profiler.startPreciseCoverage', { callCount: true });
  const { broken } = await run({
    seed: 1,
    replicas: 1,
    version: '3.6.16',
    medium: '',
    deletionPolicy: 'Delete',
    localVolumes: false,
    nodes: 1,
    actions: [],
  });
  const { result } = await session.post('Profiler.takePreciseCoverage');
  session.disconnect();
  const files = result
    .filter(({ functions }) => functions.some(({ ranges }) => ranges.some(({ count }) => count > 0)))
    .flatMap(({ url }) => /\/(src\/(?!gen\/).*\.ts)$/.exec(url)?.[1] ?? []);
  expect(broken).toBeUndefined();
  expect(files.length, files.sort().join('\n')).toBeLessThanOrEqual(MAX_FILES);
  expect(files.length, 'the coverage is measured').toBeGreaterThan(20);
});
