import { expect, test } from 'vitest';
import { crds } from './crds.ts';
import { targetOf } from './etcd-cluster.ts';

test.each(crds.map((crd) => [crd.metadata.name, crd] as const))('%s is what users install', (_name, crd) => {
  expect(crd).toMatchSnapshot();
});

test('a spec that says little means the documented defaults', () => {
  expect(targetOf({ version: '3.6.14' })).toEqual({
    replicas: 3,
    version: '3.6.14',
    storage: { size: '1Gi', medium: '' },
  });
});

test('an empty storage class is not the same as none', () => {
  expect(targetOf({ version: '3.6.14', replicas: 1, storage: { storageClassName: '' } }).storage).toEqual({
    size: '1Gi',
    medium: '',
    storageClassName: '',
  });
});
