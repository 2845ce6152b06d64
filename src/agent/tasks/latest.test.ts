import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { manifestOf, nameAt } from '../../../test/support/suites/prune-kit.ts';
import { type Manifest, manifestText } from '../format/manifest.ts';
import { type SealKey, sealKey } from '../format/seal-key.ts';
import { openVolume } from '../stores/pvc.ts';
import type { Store } from '../stores/store.ts';
import { newestFirst } from './latest.ts';

let root: string;
let store: Store;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'etcd-operator-latest-'));
  store = openVolume(root);
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const { signal } = new AbortController();
const put = async (key: string, content: string): Promise<void> =>
  store.put(
    key,
    (async function* () {
      yield Buffer.from(content);
    })(),
    { uid: 'u', replace: false, signal },
  );

/** A whole snapshot, unless the object has other bytes than its manifest says. */
async function snapshot(
  folder: string,
  hours: number,
  more: Partial<Manifest> = {},
  key?: SealKey,
  content?: string,
): Promise<string> {
  const name = `${nameAt(hours)}.db`;
  const manifest = { ...manifestOf(name, hours), ...more };
  await put(`${folder}${name}`, content ?? 'x'.repeat(manifest.object.sizeBytes));
  await put(`${folder}${name}.manifest.json`, manifestText(manifest, key));
  return `${folder}${name}`;
}
const newest = (key: string, cluster?: string, keys?: SealKey) =>
  newestFirst(
    { store, key, signal, ...(keys && { keys: { current: keys, all: [keys] } }) },
    cluster === undefined ? {} : { cluster },
  );

test('the newest is the first, in the folder and in those below it, and other folders do not count', async () => {
  const old = await snapshot('prod/', 9);
  const young = await snapshot('prod/ns/db/', 2);
  await snapshot('staging/', 1);
  expect(await newest('prod')).toEqual([young, old]);
});

test('a truncated one, one without an object, and garbage are passed over', async () => {
  const whole = await snapshot('prod/', 5);
  await snapshot('prod/', 2, {}, undefined, 'short');
  await put(`prod/${nameAt(1)}.db.manifest.json`, manifestText(manifestOf(`${nameAt(1)}.db`, 1)));
  await put('prod/x.db.manifest.json', '{');
  expect(await newest('prod')).toEqual([whole]);
});

test('the minute in the name counts when the clock of the node was behind', async () => {
  await snapshot('prod/', 5);
  const behind = await snapshot('prod/', 1, { takenAt: '2020-01-01T00:00:00Z' });
  expect((await newest('prod'))[0]).toBe(behind);
});

test('a forged date that does not exist leaves the others in order', async () => {
  const [old, forged, young] = [
    await snapshot('prod/', 9),
    await snapshot('prod/', 5, { takenAt: '2026-99-99T99:99:99Z' }),
    await snapshot('prod/', 1),
  ];
  expect(await newest('prod')).toEqual([young, forged, old]);
});

test('with snapshots of two clusters none is chosen, until one of them is named', async () => {
  const other = { ...manifestOf('x', 1).cluster, name: 'other' };
  const mine = await snapshot('', 3);
  const theirs = await snapshot('more/', 1, { cluster: other });
  const { namespace } = manifestOf('x', 1).snapshot;
  await expect(newest('')).rejects.toThrow(`set source.latest.cluster to one of ${namespace}/db, ${namespace}/other`);
  expect(await newest('', 'other')).toEqual([theirs]);
  expect(await newest('', `${namespace}/db`)).toEqual([mine]);
  await expect(newest('', 'third')).rejects.toThrow('no whole snapshot of cluster third');
});

test('with a key, only what a holder of it wrote is chosen', async () => {
  const key = sealKey(Buffer.alloc(32, 7));
  const encryption = { algorithm: 'AES-256-GCM', keyId: key.id } as const;
  const mine = await snapshot('prod/', 3, { encryption }, key);
  await snapshot('prod/', 1, { encryption });
  expect(await newest('prod', undefined, key)).toEqual([mine]);
});
