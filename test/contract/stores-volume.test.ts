/** A volume is a file system with other writers: keys cannot escape it, and it can be full. */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openVolume } from '../../src/agent/stores/pvc.ts';
import type { Store } from '../../src/agent/stores/store.ts';
import { bytes, failure, get, keys, leftovers, MIB, put, text } from './stores-world.ts';

let folder: string;
let root: string;
let store: Store;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'etcd-operator-paths-'));
  root = join(folder, 'volume');
  for (const made of [root, join(folder, 'outside'), join(root, 'inside')]) mkdirSync(made);
  writeFileSync(join(folder, 'outside', 'secret.db'), 'secret');
  writeFileSync(join(root, 'inside', 'real.db'), 'real');
  store = openVolume(root);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Everything below the folder but the volume's own files: what no key may change. */
const outside = (): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) => !path.startsWith('volume/'));

/** Tries every operation with the key; all must be refused. */
async function refusedEverywhere(key: string): Promise<void> {
  const signal = new AbortController().signal;
  const tries = {
    head: () => store.head(key),
    get: () => store.get(key, signal),
    put: () => put(store, key, text('evil')),
    replace: () => put(store, key, text('evil'), { replace: true }),
  };
  for (const [name, attempt] of Object.entries(tries)) {
    const { reason, message } = await failure(attempt());
    expect([name, key, reason]).toEqual([name, key, 'PathRefused']);
    expect(message).not.toContain('\0');
  }
}

const ESCAPES = [
  '..',
  '../',
  '../outside/secret.db',
  '/etc/passwd',
  'a/../../outside/secret.db',
  '.',
  './a',
  'a/.',
  'a//b',
  'a/',
  '',
];
const STRANGE = [
  'a\0b',
  'a\\b',
  '..\\outside',
  'a/\0',
  'a\nb',
  'a\u0085b',
  `${'n'.repeat(256)}`,
  `a/${'ü'.repeat(128)}`,
];
const KEPT = ['a.db.uid', 'inside/.partial-x', '.uid'];

describe('S5: keys', () => {
  test.each([...ESCAPES, ...STRANGE, ...KEPT])('%j is refused', async (key) => {
    const before = outside();
    await refusedEverywhere(key);
    expect(await failure(store.delete(key))).toMatchObject({ reason: 'PathRefused' });
    expect(outside()).toEqual(before);
  });

  test('200 generated keys cannot escape the volume', async () => {
    const before = outside();
    const step = fc.constantFrom('..', '.', '', 'inside', 'a', '\0', '\\', '...', '%2e%2e', '..;', ' ', '~');
    const evil = fc
      .array(step, { minLength: 1, maxLength: 8 })
      .map((steps) => steps.join('/'))
      .filter((key) => key.split('/').some((part) => ['..', '.', '', '\0', '\\'].includes(part)));
    await fc.assert(
      fc.asyncProperty(evil, async (key) => {
        await refusedEverywhere(key);
        expect(outside()).toEqual(before);
      }),
      { numRuns: 200, seed: 7 },
    );
  }, 60_000);

  test.each(['%2e%2e/outside/secret.db', '~/a.db', '...', 'a b', 'ü.db', '-rf', '$(x).db', 'a:b*?.db'])(
    '%j is only a name',
    async (key) => {
      await put(store, key, text('fine'));
      expect(readFileSync(join(root, key), 'utf8')).toBe('fine');
      expect(await keys(store, key)).toEqual([key]);
    },
  );
});

describe('S5: symbolic links', () => {
  test.each([
    ['a folder outside', '../outside', 'link/secret.db'],
    ['the root of all', '/', `link/etc/passwd`],
    ['a folder inside', 'inside', 'link/real.db'],
    ['a file outside', '../outside/secret.db', 'link'],
    ['a file inside', 'inside/real.db', 'link'],
    ['nothing', 'nowhere', 'link'],
    ['itself', 'link', 'link'],
    ['itself as a folder', 'link', 'link/a.db'],
  ])('one to %s is not followed', async (_, target, key) => {
    symlinkSync(target, join(root, 'link'));
    await refusedEverywhere(key);
    expect(readFileSync(join(folder, 'outside', 'secret.db'), 'utf8')).toBe('secret');
    expect(readFileSync(join(root, 'inside', 'real.db'), 'utf8')).toBe('real');
    expect(await keys(store)).toEqual(['inside/real.db']);
  });

  test('one in place of a sidecar does not prove ownership, and a deletion removes only the link', async () => {
    writeFileSync(join(folder, 'outside', 'uid'), 'uid-1');
    symlinkSync('../../outside/uid', join(root, 'inside', 'real.db.uid'));
    expect(await store.head('inside/real.db')).toEqual({ key: 'inside/real.db', size: 4 });
    expect(await failure(put(store, 'inside/real.db', text('evil'), { replace: true }))).toMatchObject({
      reason: 'ObjectExists',
    });
    await store.delete('inside/real.db');
    expect(readFileSync(join(folder, 'outside', 'uid'), 'utf8')).toBe('uid-1');
  });

  test('a pipe or a folder in place of a file is refused, and does not block', async () => {
    execFileSync('mkfifo', [join(root, 'pipe.db')]);
    mkdirSync(join(root, 'folder.db'));
    for (const key of ['pipe.db', 'folder.db']) await refusedEverywhere(key);
  });
});

describe('a killed agent', () => {
  test('that has left only its sidecar is continued by its own next attempt, and by no other', async () => {
    writeFileSync(join(root, 'half.db.uid'), 'uid-1');
    expect(await failure(put(store, 'half.db', text('theirs'), { uid: 'theirs' }))).toMatchObject({
      reason: 'ObjectExists',
    });
    expect(await store.head('half.db')).toBeUndefined();
    await put(store, 'half.db', text('whole'));
    expect(await store.head('half.db')).toMatchObject({ key: 'half.db', size: 5, uid: 'uid-1' });
    expect(
      await leftovers(
        { place: { kind: 'pvc', root }, folder: root, secrets: {}, close: async () => undefined },
        'half.db',
      ),
    ).toEqual([]);
  });

  test('that has left only its sidecar an hour ago, or whose file a user has deleted, does not block the key', async () => {
    writeFileSync(join(root, 'half.db.uid'), 'uid-of-another');
    const before = new Date(Date.now() - 2 * 3_600_000);
    utimesSync(join(root, 'half.db.uid'), before, before);
    await put(store, 'half.db', text('whole'));
    expect(await store.head('half.db')).toMatchObject({ key: 'half.db', size: 5, uid: 'uid-1' });
    expect((await get(store, 'half.db')).toString()).toBe('whole');
  });
});

/** Mounting one needs root, as the local cluster does. */
describe.runIf(process.getuid?.() === 0)('a small disk', () => {
  const mount = (size: string): void =>
    void execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', root]);
  afterEach(() => execFileSync('umount', [root]));

  test('that is full is reported, keeps its objects, and frees the space of the failed upload', async () => {
    mount('12m');
    await put(store, 'old.db', bytes(4 * MIB));
    const { reason, message } = await failure(put(store, 'new.db', bytes(20 * MIB)));
    expect(reason).toBe('NoSpace');
    expect(message).toContain(store.uri('new.db'));
    expect(await failure(put(store, 'old.db', bytes(20 * MIB), { replace: true }))).toMatchObject({
      reason: 'NoSpace',
    });
    expect(await get(store, 'old.db')).toHaveLength(4 * MIB);
    expect(readdirSync(root).toSorted()).toEqual(['old.db', 'old.db.uid']);
    await put(store, 'fits.db', bytes(6 * MIB));
  });

  test('that is not writable is reported', async () => {
    mount('1m');
    execFileSync('mount', ['-o', 'remount,ro', root]);
    expect(await failure(put(store, 'new.db', text('x')))).toMatchObject({ reason: 'AccessDenied' });
  });
});

test('a stored file is readable for its owner and group only', async () => {
  chmodSync(root, 0o755);
  await put(store, 'mode.db', text('x'));
  expect(execFileSync('stat', ['-c', '%a', join(root, 'mode.db')], { encoding: 'utf8' }).trim()).toBe('640');
});
