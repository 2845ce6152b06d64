/** Faults around stores, one suite for all kinds: each is a named failure or is survived, and nothing is left behind. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openStore, type Store } from '../../src/agent/stores/store.ts';
import { AGENT_RUNTIME } from '../../src/domain/agent-runtime.ts';
import type { Place } from '../../src/domain/agent-task.ts';
import { root } from '../../tools/paths.ts';
import { ABOUT_DATA } from '../support/about-data.ts';
import type { Relay } from '../support/faults/relay.ts';
import { type Child, eventually, Processes, pause } from '../support/servers/processes.ts';
import { reader, type TestPlace } from '../support/servers/stores.ts';
import { bytes, failure, get, keys, leftovers, MIB, open, put, text, WORLDS } from './stores-world.ts';

const elsewhere = (place: Place): Place =>
  place.kind === 'azure'
    ? { ...place, container: 'nowhere' }
    : place.kind === 'pvc'
      ? { ...place, root: `${place.root}/nowhere` }
      : { ...place, bucket: 'nowhere' };

/** As in the containers of agents. */
const runtime = Object.fromEntries(AGENT_RUNTIME.map(({ name, value }) => [name, value]));

describe.each(WORLDS)('%s', (_, kind, start) => {
  let world: TestPlace;
  let store: Store;
  let processes: Processes;
  let logs: string;
  beforeAll(async () => {
    world = await start();
    store = await open(world);
    logs = mkdtempSync(join(tmpdir(), 'etcd-operator-agents-'));
    processes = new Processes(logs);
  }, 600_000);
  afterAll(async () => {
    await processes?.stopAll();
    rmSync(logs, { recursive: true, force: true });
    await world?.close();
  });

  const agent = (key: string, mebibytes: number): Child => {
    const args = [
      join(root, 'test', 'support', 'servers', 'store-child.ts'),
      JSON.stringify(world.place),
      JSON.stringify(world.secrets),
      key,
      'uid-1',
      String(mebibytes),
    ];
    return processes.start('agent', process.execPath, args, { ...process.env, ...runtime });
  };

  /** Until a part of it has arrived, wherever that is. */
  const underWay = (child: Child, key: string): Promise<boolean> => {
    const before = world.relay?.sent() ?? 0;
    const arrived = async (): Promise<boolean> =>
      world.relay ? world.relay.sent() > before + 9 * MIB : (await leftovers(world, key)).length > 0;
    return eventually('bytes arrive', async () => (await arrived()) || undefined, {
      timeoutMs: 60_000,
      seen: () => child.log(),
    });
  };

  test('an agent that is killed during an upload leaves no visible object, and the next one no leftovers', async () => {
    const child = agent('killed.db', 1_000_000);
    await underWay(child, 'killed.db');
    await child.stop('SIGKILL');
    expect(await store.head('killed.db')).toBeUndefined();
    expect(await keys(store, 'killed')).toEqual([]);
    if (kind === 's3' || kind === 'pvc') expect(await leftovers(world, 'killed.db')).not.toEqual([]);
    await put(store, 'killed.db', bytes(9 * MIB));
    expect(await store.head('killed.db')).toMatchObject({ size: 9 * MIB });
    expect(await leftovers(world, 'killed.db')).toEqual([]);
  }, 120_000);

  if (kind === 's3' || kind === 'pvc')
    test('what a killed agent left of an upload is removed when it is old enough, and not before', async () => {
      const child = agent('swept/killed.db', 1_000_000);
      await underWay(child, 'swept/killed.db');
      await child.stop('SIGKILL');
      expect(await store.removeUnfinished('swept/killed', Date.now() - 600_000)).toBe(0);
      expect(await store.removeUnfinished('elsewhere/killed', Date.now() + 600_000)).toBe(0);
      expect(await leftovers(world, 'swept/killed.db')).not.toEqual([]);
      expect(await store.removeUnfinished('swept/killed', Date.now() + 600_000)).toBe(1);
      expect(await leftovers(world, 'swept/killed.db')).toEqual([]);
    }, 120_000);

  // The emulator of GCS reads all previous data again with each chunk: 300 MiB take it minutes.
  const size = kind === 'gcs' ? 100 : 300;
  test(`${size} MiB go through an agent of less than 200 MiB`, async () => {
    const child = agent('large.db', size);
    expect(await child.ended).toBe(0);
    const [, peak] = /peak (\d+) MiB/.exec(child.log()) ?? [];
    process.stdout.write(`${kind}: ${size} MiB put with a peak of ${peak} MiB\n`);
    expect(Number(peak)).toBeLessThan(200);
    expect(await store.head('large.db')).toMatchObject({ size: size * MIB });
    await store.delete('large.db');
  }, 300_000);

  test('every operation on a missing bucket reports that it is missing', async () => {
    const missing = await openStore(elsewhere(world.place), reader(world.secrets));
    const signal = new AbortController().signal;
    const asked = [
      () => missing.head('a.db'),
      () => missing.get('a.db', signal),
      () => put(missing, 'a.db', text('x')),
      () => put(missing, 'a.db', bytes(9 * MIB)),
      () => keys(missing),
    ];
    for (const ask of asked) expect(await failure(ask())).toMatchObject({ reason: 'BucketNotFound' });
  });

  const looksAtCredentials = kind === 's3' || kind === 'azure';
  if (looksAtCredentials)
    test('wrong credentials are reported as denied, and the message contains no secret', async () => {
      const wrong = world.wrongSecrets ?? {};
      const denied = await openStore(world.place, reader(wrong));
      const asked = [
        () => denied.head('a.db'),
        () => denied.get('a.db', new AbortController().signal),
        () => put(denied, 'a.db', text('x')),
        () => keys(denied),
      ];
      for (const ask of asked) {
        const { reason, message } = await failure(ask());
        expect(reason).toBe('AccessDenied');
        expect(message).not.toContain(Object.values(wrong).at(-1)?.slice(0, 20));
      }
    });

  if (kind !== 'pvc')
    test('an outage during uploads, downloads and other requests is survived', async () => {
      const { relay } = world as TestPlace & { readonly relay: Relay };
      const outage = async (): Promise<void> => {
        await relay.cut();
        await pause(3_000);
        await relay.mend();
      };
      async function* during(): AsyncGenerator<Uint8Array> {
        yield* bytes(10 * MIB);
        // GCS ignores a chunk that it already has; its emulator stores it twice, so there wait for all responses first.
        if (kind === 'gcs') await eventually('it is quiet', () => relay.quietMs() > 1_000 || undefined);
        void outage();
        yield* bytes(20 * MIB);
      }
      await put(store, 'outage/sent.db', during());
      const expected = Buffer.concat([...(await all(10 * MIB)), ...(await all(20 * MIB))]);
      expect((await get(store, 'outage/sent.db')).equals(expected), ABOUT_DATA).toBe(true);

      const { body } = await store.get('outage/sent.db', new AbortController().signal);
      const received: Uint8Array[] = [];
      for await (const part of body) if (received.push(part) === 3) void outage();
      expect(Buffer.concat(received).equals(expected), ABOUT_DATA).toBe(true);

      void outage();
      expect(await store.head('outage/sent.db')).toMatchObject({ size: 30 * MIB });
      expect(await keys(store, 'outage/')).toEqual(['outage/sent.db']);
      expect(await leftovers(world, 'outage/sent.db')).toEqual([]);
    }, 240_000);

  if (kind === 's3')
    test('a server that restarts is survived, and one that does not is reported as unreachable', async () => {
      let back: Promise<void> | undefined;
      async function* during(): AsyncGenerator<Uint8Array> {
        yield* bytes(10 * MIB);
        await world.kill?.();
        back = pause(2_000).then(() => world.restart?.());
        yield* bytes(20 * MIB);
      }
      await put(store, 'restarted.db', during());
      expect(await get(store, 'restarted.db')).toHaveLength(30 * MIB);
      await back; // the starting process must have seen it serve before it is killed again
      await world.kill?.();
      expect(await failure(put(store, 'never.db', text('x')))).toMatchObject({ reason: 'StoreUnreachable' });
      await world.restart?.();
      expect(await store.head('never.db')).toBeUndefined();
    }, 240_000);
});

const all = (size: number): Promise<Uint8Array[]> => Array.fromAsync(bytes(size));
