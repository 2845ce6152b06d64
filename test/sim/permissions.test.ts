/** That the simulation would notice a missing permission. */
import { expect, test } from 'vitest';
import { etcdClusters } from '../../src/api/names.ts';
import { nodes, pods, secrets } from '../../src/kube/resources.ts';
import { isGranted, writesAreGranted } from './permission-invariants.ts';

test('S8: a write that no role grants breaks a run of the simulation, and a read is refused', () => {
  const write = (verb: 'create' | 'delete' | 'status' | 'patch', resource: typeof pods | typeof etcdClusters) =>
    writesAreGranted(undefined, { verb, resource, ref: { namespace: 'n', name: 'x' }, by: undefined as never });
  expect(write('create', pods)).toBeUndefined();
  expect(write('status', etcdClusters)).toBeUndefined();
  expect(write('delete', etcdClusters)).toBe('the operator may not delete etcdclusters');
  expect(write('patch', etcdClusters)).toBe('the operator may not patch etcdclusters');
  expect([isGranted('get', secrets), isGranted('list', secrets), isGranted('watch', nodes)]).toEqual([
    true,
    false,
    true,
  ]);
});
