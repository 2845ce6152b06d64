import { expect, test } from 'vitest';
import type { KubeObject } from './object.ts';
import { ALL_NAMESPACES, Store } from './store.ts';

const resource = { group: '', version: 'v1', plural: 'things', kind: 'Thing' };
const thing = (name: string, resourceVersion: string, cluster?: string, namespace = 'n'): KubeObject => ({
  metadata: { name, namespace, resourceVersion, uid: `uid-${name}`, ...(cluster && { labels: { cluster } }) },
});
function aStore(namespaces: readonly string[] = []) {
  const store = new Store<KubeObject>(resource, namespaces, ['cluster']);
  const seen: string[] = [];
  store.onChange((before, after) =>
    seen.push(`${before?.metadata.resourceVersion ?? '-'}→${after?.metadata.resourceVersion ?? '-'}`),
  );
  return { store, seen };
}
function synced(...objects: readonly KubeObject[]) {
  const made = aStore();
  made.store.apply(ALL_NAMESPACES, { type: 'restart' });
  for (const object of objects) made.store.apply(ALL_NAMESPACES, { type: 'put', object });
  made.store.apply(ALL_NAMESPACES, { type: 'synced', resourceVersion: '10' });
  return made;
}
const soon = () => AbortSignal.timeout(20);

test('nothing is visible until the first list is complete', () => {
  const { store } = aStore();
  store.apply(ALL_NAMESPACES, { type: 'restart' });
  store.apply(ALL_NAMESPACES, { type: 'put', object: thing('a', '1') });
  expect([store.synced, store.get('n/a')]).toEqual([false, undefined]);
  store.apply(ALL_NAMESPACES, { type: 'synced', resourceVersion: '10' });
  expect([store.synced, store.get('n/a')?.metadata.name]).toEqual([true, 'a']);
});

test('a relist notifies only of what changed in between, deletions included', () => {
  const { store, seen } = synced(thing('a', '1'), thing('b', '2'), thing('c', '3'));
  seen.length = 0;
  store.apply(ALL_NAMESPACES, { type: 'restart' });
  store.apply(ALL_NAMESPACES, { type: 'put', object: thing('a', '1') });
  store.apply(ALL_NAMESPACES, { type: 'put', object: thing('b', '12') });
  expect(store.get('n/c')).toBeDefined();
  store.apply(ALL_NAMESPACES, { type: 'synced', resourceVersion: '20' });
  expect(seen).toEqual(['2→12', '3→-']);
});

test('no handler is notified of the deletion of an object that was never cached, as when it was created and deleted between two lists', () => {
  const { store, seen } = synced();
  store.apply(ALL_NAMESPACES, { type: 'delete', object: thing('a', '12') });
  store.apply(ALL_NAMESPACES, { type: 'put', object: thing('b', '13') });
  expect(seen).toEqual(['-→13']);
});

test('objects are found by label within their namespace, in the order of their names', () => {
  const { store } = synced(
    thing('b', '1', 'x'),
    thing('a', '2', 'x'),
    thing('c', '3', 'y'),
    thing('d', '4', 'x', 'other'),
  );
  expect(store.byIndex('n', 'cluster', 'x').map((o) => o.metadata.name)).toEqual(['a', 'b']);
  store.apply(ALL_NAMESPACES, { type: 'put', object: thing('a', '11', 'y') });
  store.apply(ALL_NAMESPACES, { type: 'delete', object: thing('b', '12', 'x') });
  expect(store.byIndex('n', 'cluster', 'x')).toEqual([]);
  expect(store.byIndex('n', 'cluster', 'y').map((o) => o.metadata.name)).toEqual(['a', 'c']);
});

test('objects are found by their index value, and no longer when it changes', () => {
  const spoken = (name: string, of: string | undefined): KubeObject & { of: string | undefined } => ({
    ...thing(name, '1'),
    of,
  });
  const store = new Store<KubeObject & { of: string | undefined }>(
    resource,
    [],
    [{ name: 'of', of: (object) => object.of }],
  );
  for (const object of [spoken('a', 'x'), spoken('b', 'x'), spoken('c', undefined)])
    store.apply(ALL_NAMESPACES, { type: 'put', object });
  expect(store.byIndex('n', 'of', 'x').map((o) => o.metadata.name)).toEqual(['a', 'b']);
  store.apply(ALL_NAMESPACES, { type: 'put', object: spoken('a', 'y') });
  expect(store.byIndex('n', 'of', 'x').map((o) => o.metadata.name)).toEqual(['b']);
  expect(() => store.byIndex('n', 'other', 'x')).toThrow('not indexed');
});

test('managedFields are not kept', () => {
  const { store } = synced({ metadata: { name: 'a', namespace: 'n', resourceVersion: '1', managedFields: [{}] } });
  expect(store.get('n/a')?.metadata).toEqual({ name: 'a', namespace: 'n', resourceVersion: '1' });
});

test('a kind that the server does not know is missing until an event of it is received', () => {
  const { store } = synced(thing('a', '1'));
  store.apply(ALL_NAMESPACES, { type: 'missing' });
  store.apply(ALL_NAMESPACES, { type: 'restart' });
  expect(store.missing).toBe(true);
  store.apply(ALL_NAMESPACES, { type: 'synced', resourceVersion: '20' });
  expect([store.missing, store.size]).toEqual([false, 0]);
});

test('a reader can wait for its own write', async () => {
  const { store } = synced();
  await store.waitForVersion('n', '9', soon());
  const write = store.waitForVersion('n', '100', AbortSignal.timeout(2000));
  store.apply(ALL_NAMESPACES, { type: 'put', object: thing('a', '99') });
  store.apply(ALL_NAMESPACES, { type: 'put', object: thing('a', '100') });
  await write;
  await store.waitForVersion('n', '100', soon());
});

test('a bookmark is progress too', async () => {
  const { store } = synced();
  store.apply(ALL_NAMESPACES, { type: 'progress', resourceVersion: '500' });
  await store.waitForVersion('n', '450', soon());
});

test('waiting for a write that is never received ends with the signal', async () => {
  const { store } = synced();
  await expect(store.waitForVersion('n', '11', soon())).rejects.toThrow('timeout');
});

test('each watched namespace is a snapshot of its own', async () => {
  const { store } = aStore(['n', 'other']);
  store.apply('n', { type: 'restart' });
  store.apply('n', { type: 'put', object: thing('a', '1') });
  store.apply('n', { type: 'synced', resourceVersion: '5' });
  expect([store.synced, store.size]).toEqual([false, 1]);
  await expect(store.waitForVersion('other', '5', soon())).rejects.toThrow('timeout');
});

test('a reader can wait until an object that it deleted is removed from the cache, or replaced', async () => {
  const { store } = synced(thing('a', '1'), thing('b', '2'));
  await expect(store.waitForDeletion('n/a', 'uid-a', soon())).rejects.toThrow('timeout');
  const waiting = store.waitForDeletion('n/a', 'uid-a', AbortSignal.timeout(2000));
  store.apply(ALL_NAMESPACES, { type: 'delete', object: thing('a', '11') });
  await waiting;
  await store.waitForDeletion('n/b', 'uid-of-an-older-b', soon());
  store.apply(ALL_NAMESPACES, { type: 'missing' });
  await store.waitForDeletion('n/b', 'uid-b', soon()); // its CRD was deleted, and no event follows
});

test('onSynced is called for every complete snapshot, also for an empty one', () => {
  const { store } = aStore();
  let syncs = 0;
  store.onSynced(() => syncs++);
  store.apply(ALL_NAMESPACES, { type: 'missing' });
  store.apply(ALL_NAMESPACES, { type: 'restart' });
  expect(syncs).toBe(0);
  store.apply(ALL_NAMESPACES, { type: 'synced', resourceVersion: '1' });
  expect([syncs, store.missing]).toEqual([1, false]);
  store.apply(ALL_NAMESPACES, { type: 'put', object: thing('a', '2') });
  expect(syncs).toBe(1);
});

test('waiting for a write ends when the CRD of its kind was deleted', async () => {
  const { store } = synced();
  const waiting = store.waitForVersion('n', '99', soon());
  store.apply(ALL_NAMESPACES, { type: 'missing' });
  await expect(waiting).resolves.toBeUndefined();
  await expect(store.waitForVersion('n', '99', soon())).resolves.toBeUndefined();
});
