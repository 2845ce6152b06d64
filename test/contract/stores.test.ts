/** One suite, four kinds of stores: what snapshots rely on holds for each of them. */

import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Store } from '../../src/agent/stores/store.ts';
import { ABOUT_DATA } from '../support/about-data.ts';
import { startVirtualS3, type TestPlace } from '../support/servers/stores.ts';
import { bytes, failure, get, keys, leftovers, MIB, open, put, putByOthers, text, WORLDS } from './stores-world.ts';

const ALL = [...WORLDS, ['S3 with the bucket in the name of the host', 's3', startVirtualS3]] as const;

describe.each(ALL)('%s', (_, kind, start) => {
  let world: TestPlace;
  let store: Store;
  beforeAll(async () => {
    world = await start();
    store = await open(world);
  }, 600_000);
  afterAll(async () => world?.close());

  test('a stored object is complete, with its size and uid, until it is deleted', async () => {
    expect(await store.head('plain/a.db')).toBeUndefined();
    await put(store, 'plain/a.db', text('hello'), { contentType: 'application/json' });
    expect(await store.head('plain/a.db')).toMatchObject({ key: 'plain/a.db', size: 5, uid: 'uid-1' });
    expect((await get(store, 'plain/a.db')).toString(), ABOUT_DATA).toBe('hello');
    await store.delete('plain/a.db');
    await store.delete('plain/a.db');
    expect(await store.head('plain/a.db')).toBeUndefined();
    expect(await failure(get(store, 'plain/a.db'))).toMatchObject({ reason: 'ObjectNotFound' });
    expect(await keys(store, 'plain/')).toEqual([]);
  });

  test('an empty body is an empty object', async () => {
    await put(store, 'empty.db', text(''));
    expect(await store.head('empty.db')).toMatchObject({ size: 0 });
    expect(await get(store, 'empty.db')).toHaveLength(0);
  });

  test.each([
    ['20 MiB and a little', 20 * MIB + 12_345],
    ['exactly one piece', 8 * MIB],
    ['exactly two pieces', 16 * MIB],
    ['a byte more than a piece', 8 * MIB + 1],
  ])('a stream of %s comes back byte by byte', async (name, size) => {
    const key = `stream/${name.replaceAll(' ', '-')}.db`;
    const sha = createHash('sha256');
    for await (const part of bytes(size)) sha.update(part);
    await put(store, key, bytes(size));
    expect(await store.head(key)).toMatchObject({ size, uid: 'uid-1' });
    const all = await get(store, key);
    expect(createHash('sha256').update(all).digest('hex'), ABOUT_DATA).toBe(sha.digest('hex'));
    expect(await leftovers(world, key)).toEqual([]);
  });

  test('keys are listed by prefix, at every depth, in order', async () => {
    const wanted = ['list/a', 'list/a-1/x', 'list/a/b/c', 'list/a0', 'list/b'];
    // These stores keep objects in files, and a file cannot be a folder, too.
    const possible = wanted.filter((key) => key !== 'list/a' || kind === 'azure');
    for (const key of [...possible, 'lisu'].toReversed()) await put(store, key, text(key));
    const listed = await Array.fromAsync(store.list('list/'));
    expect(listed.map(({ key, size }) => [key, size])).toEqual(possible.map((key) => [key, key.length]));
    expect(await keys(store, 'list/a')).toEqual(possible.filter((key) => key.startsWith('list/a')));
    expect(await keys(store, 'nothing/')).toEqual([]);
    expect(await keys(store, 'lis')).toEqual([...possible, 'lisu']);
  });

  test('keys beyond one page are all listed', async () => {
    const many = Array.from({ length: 210 }, (_, n) => `many/${String(n).padStart(5, '0')}`);
    for (let at = 0; at < many.length; at += 50)
      await Promise.all(many.slice(at, at + 50).map((key) => put(store, key, text('x'))));
    expect(await keys(store, 'many/')).toEqual(many);
  }, 240_000);

  test('an object of our own is replaced only with `replace`', async () => {
    await put(store, 'own.db', text('first'));
    expect(await failure(put(store, 'own.db', text('second')))).toMatchObject({ reason: 'ObjectExists' });
    expect((await get(store, 'own.db')).toString(), ABOUT_DATA).toBe('first');
    await put(store, 'own.db', text('third'), { replace: true });
    expect((await get(store, 'own.db')).toString(), ABOUT_DATA).toBe('third');
    await put(store, 'own.db', bytes(9 * MIB), { replace: true });
    expect(await store.head('own.db')).toMatchObject({ key: 'own.db', size: 9 * MIB, uid: 'uid-1' });
  });

  test.each([5, 9 * MIB])('a foreign object is refused and untouched, for a put of %i bytes', async (size) => {
    await put(store, `foreign-${size}.db`, text('theirs'), { uid: 'theirs' });
    const key = `foreign-${size}.db`;
    for (const replace of [false, true]) {
      const { reason, message } = await failure(put(store, key, bytes(size), { replace }));
      expect(reason).toBe('ObjectExists');
      expect(message).toContain(store.uri(key));
    }
    expect((await get(store, key)).toString(), ABOUT_DATA).toBe('theirs');
    expect(await store.head(key)).toMatchObject({ uid: 'theirs' });
    expect(await leftovers(world, key)).toEqual([]);
  });

  test.each([5, 9 * MIB])(
    'a foreign object that appears during an upload of %i bytes is untouched, too',
    async (size) => {
      const key = `raced-${size}.db`;
      async function* slow(): AsyncGenerator<Uint8Array> {
        yield* bytes(size);
        await putByOthers(world, key, 'theirs');
      }
      expect(await failure(put(store, key, slow()))).toMatchObject({ reason: 'ObjectExists' });
      expect((await get(store, key)).toString(), ABOUT_DATA).toBe('theirs');
      expect(await leftovers(world, key)).toEqual([]);
    },
  );

  test('two agents that write one key at once: the first to finish stores its object, and the other reports that it exists', async () => {
    const key = 'both.db';
    const [started, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    async function* slow(): AsyncGenerator<Uint8Array> {
      yield* bytes(20 * MIB);
      started.resolve();
      await end.promise;
      yield* bytes(MIB);
    }
    const first = put(store, key, slow(), { uid: 'uid-of-the-first' });
    await started.promise;
    async function* during(): AsyncGenerator<Uint8Array> {
      yield* bytes(20 * MIB);
      end.resolve();
      await first;
    }
    const second = failure(put(store, key, during(), { uid: 'uid-of-the-second' }));
    await first;
    expect(await second).toMatchObject({ reason: 'ObjectExists' });
    expect(await store.head(key)).toMatchObject({ size: 21 * MIB, uid: 'uid-of-the-first' });
    expect(await leftovers(world, key)).toEqual([]);
  }, 120_000);

  test('the uid of the schedule is stored with the object', async () => {
    await put(store, 'scheduled.db', text('x'), { schedule: 'uid-of-the-schedule' });
    const expected = { key: 'scheduled.db', size: 1, uid: 'uid-1', schedule: 'uid-of-the-schedule' };
    expect(await store.head('scheduled.db')).toMatchObject(expected);
  });

  test.each([5, 25 * MIB])('a body that throws after %i bytes rethrows its error and leaves nothing', async (size) => {
    const key = `thrown-${size}.db`;
    const mine = new Error('the member went away');
    async function* broken(): AsyncGenerator<Uint8Array> {
      yield* bytes(size);
      throw mine;
    }
    await expect(put(store, key, broken())).rejects.toBe(mine);
    expect(await store.head(key)).toBeUndefined();
    expect(await keys(store, 'thrown-')).toEqual([]);
    expect(await leftovers(world, key)).toEqual([]);
  });

  test.each([5, 25 * MIB])(
    'an upload that is aborted after %i bytes, also of a hanging body, leaves nothing',
    async (size) => {
      const key = `stopped-${size}.db`;
      const stop = new AbortController();
      async function* hanging(): AsyncGenerator<Uint8Array> {
        yield* bytes(size);
        setTimeout(() => stop.abort(), 50);
        await new Promise(() => undefined);
      }
      expect(await failure(put(store, key, hanging(), { signal: stop.signal }))).toMatchObject({ reason: 'TimedOut' });
      expect(await store.head(key)).toBeUndefined();
      expect(await leftovers(world, key)).toEqual([]);
      await put(store, key, text('again'));
      expect((await get(store, key)).toString(), ABOUT_DATA).toBe('again');
    },
  );

  test('an object is invisible until it is complete', async () => {
    const seen: unknown[] = [];
    async function* watched(): AsyncGenerator<Uint8Array> {
      yield* bytes(20 * MIB);
      seen.push(await store.head('whole.db'), await keys(store, 'whole'));
    }
    await put(store, 'whole.db', watched());
    expect(seen).toEqual([undefined, []]);
  });

  test('a download can be canceled or left unread', async () => {
    await put(store, 'read.db', bytes(20 * MIB));
    const first = await store.get('read.db', new AbortController().signal);
    for await (const part of first.body) if (part.length > 0) break;
    const stop = new AbortController();
    const second = await store.get('read.db', stop.signal);
    const reading = Array.fromAsync(second.body, async (part) => {
      stop.abort();
      return part.length;
    });
    expect(await failure(reading)).toMatchObject({ reason: 'TimedOut' });
  });
});
