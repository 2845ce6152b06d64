/** Scrubs on each kind of store. On a volume it is a unit test. */
import { afterAll, beforeAll, describe } from 'vitest';
import { openStore, type Store } from '../../src/agent/stores/store.ts';
import { reader, startAzure, startGcs, startS3, type TestPlace } from '../support/servers/stores.ts';
import { scrubSuite } from '../support/suites/scrub.ts';
import { putByOthers } from './stores-world.ts';

describe.each([
  ['S3', startS3],
  ['Google Cloud Storage', startGcs],
  ['Azure Blob Storage', startAzure],
] as const)('%s', (_name, start) => {
  let world: TestPlace;
  let store: Store;
  beforeAll(async () => {
    world = await start();
    store = await openStore(world.place, reader(world.secrets));
  }, 300_000);
  afterAll(() => world?.close());

  scrubSuite(async () => ({ store, putByOthers: (key, content) => putByOthers(world, key, content) }));
});
