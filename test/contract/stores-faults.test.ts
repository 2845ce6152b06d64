/** What goes wrong around stores, one suite for all: each is a named failure or is survived, and nothing is left behind. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openStore, type Store } from '../../src/agent/store.ts';
import type { Place } from '../../src/api/agent-task.ts';
import { root } from '../../tools/paths.ts';
import { type Child, eventually, Processes, pause } from '../support/processes.ts';
import { reader, type TestPlace } from '../support/stores.ts';
import { bytes, failure, get, keys, leftovers, MIB, open, put, text, WORLDS } from './stores-world.ts';

const elsewhere = (place: Place): Place =>
  place.kind === 'azure'
    ? { ...place, container: 'nowhere' }
    : place.kind === 'pvc'
      ? { ...place, root: `${place.root}/nowhere` }
      : { ...place, bucket: 'nowhere' };

describe.each(WORLDS)('%s', (_, start) => {
  let world: TestPlace;
  let store: Store;
  let processes: Processes;
  beforeAll(async () => {
    world = await start();
    store = await open(world);
    processes = new Processes(join(world.folder, '..'));
  }, 600_000);
  afterAll(async () => {
    await processes?.stopAll();
    await world?.close();
  });

  const agent = (key: string, mebibytes: number): Child =>
    processes.start('agent', process.execPath, [
      join(root, 'test', 'support', 'store-child.ts'),
      JSON.stringify(world.place),
      JSON.stringify(world.secrets),
      key,
      'uid-1',
      String(mebibytes),
    ]);

  /** What has arrived of it so far, wherever that is. */
  const arrived = (): number =>
    world.relay ? world.relay.sent() : Number(readdirSync(world.folder, { recursive: true }).length > 0) * 10 * MIB;

  test('an agent that is killed while it uploads leaves nothing to be seen, and the next one no leftovers', async () => {
    const before = arrived();
    const child = agent('killed.db', 1_000_000);
    await eventually('bytes arrive', () => (arrived() > before + 9 * MIB || !world.relay ? true : undefined), {
      timeoutMs: 60_000,
      seen: () => child.log(),
    });
    if (!world.relay)
      await eventually('a file grows', async () =>
        (await leftovers(world, 'killed.db')).length > 0 ? true : undefined,
      );
    await child.stop('SIGKILL');
    expect(await store.head('killed.db')).toBeUndefined();
    expect(await keys(store, 'killed')).toEqual([]);
    if (world.place.kind === 's3' || world.place.kind === 'pvc')
      expect(await leftovers(world, 'killed.db')).not.toEqual([]);
    await put(store, 'killed.db', bytes(9 * MIB));
    expect(await store.head('killed.db')).toMatchObject({ size: 9 * MIB });
    expect(await leftovers(world, 'killed.db')).toEqual([]);
  }, 120_000);

  test('300 MiB go through an agent of less than 200 MiB', async () => {
    const child = agent('large.db', 300);
    expect(await child.ended).toBe(0);
    const [, peak] = /peak (\d+) MiB/.exec(child.log()) ?? [];
    process.stdout.write(`${world.place.kind}: 300 MiB put with a peak of ${peak} MiB\n`);
    expect(Number(peak)).toBeLessThan(200);
    expect(await store.head('large.db')).toMatchObject({ size: 300 * MIB });
    await store.delete('large.db');
  }, 300_000);

  test('a place that is not there is said to be missing, whatever is asked of it', async () => {
    const missing = await openStore(elsewhere(world.place), reader(world.secrets));
    const signal = new AbortController().signal;
    const asked = [
      missing.head('a.db'),
      missing.get('a.db', signal),
      put(missing, 'a.db', text('x')),
      put(missing, 'a.db', bytes(9 * MIB)),
      keys(missing),
    ];
    for (const each of asked) expect(await failure(each)).toMatchObject({ reason: 'BucketNotFound' });
  });

  test('wrong credentials are said to be denied, and no secret is in the sentence', async () => {
    if (!world.wrongSecrets) return expect(['gcs', 'pvc']).toContain(world.place.kind); // these look at none
    const denied = await openStore(world.place, reader(world.wrongSecrets));
    const signal = new AbortController().signal;
    for (const each of [
      denied.head('a.db'),
      denied.get('a.db', signal),
      put(denied, 'a.db', text('x')),
      keys(denied),
    ]) {
      const { reason, message } = await failure(each);
      expect(reason).toBe('AccessDenied');
      for (const secret of Object.values(world.wrongSecrets))
        expect(message).not.toContain(`${secret}`.trim().slice(0, 20));
    }
  });

  test('an outage in the middle of uploads, downloads and questions is survived', async () => {
    const { relay } = world;
    if (!relay) return expect(world.place.kind).toBe('pvc');
    await put(store, 'outage/there.db', bytes(30 * MIB));
    const outage = async (): Promise<void> => {
      await relay.cut();
      setTimeout(() => void relay.mend(), 3_000);
    };
    async function* during(): AsyncGenerator<Uint8Array> {
      yield* bytes(10 * MIB);
      await outage();
      yield* bytes(20 * MIB);
    }
    await put(store, 'outage/sent.db', during());
    expect(await get(store, 'outage/sent.db')).toEqual(
      Buffer.concat([...(await all(10 * MIB)), ...(await all(20 * MIB))]),
    );
    await pause(3_500);

    const { body } = await store.get('outage/there.db', new AbortController().signal);
    const received: Uint8Array[] = [];
    for await (const part of body) {
      if (received.push(part) === 3) await outage();
    }
    expect(Buffer.concat(received).equals(Buffer.concat(await all(30 * MIB)))).toBe(true);
    await pause(3_500);

    await outage();
    expect(await store.head('outage/there.db')).toMatchObject({ size: 30 * MIB });
    expect(await keys(store, 'outage/')).toEqual(['outage/sent.db', 'outage/there.db']);
    for (const key of ['outage/sent.db', 'outage/there.db']) expect(await leftovers(world, key)).toEqual([]);
  }, 240_000);
});

const all = (size: number): Promise<Uint8Array[]> => Array.fromAsync(bytes(size));
