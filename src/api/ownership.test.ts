import { expect, test } from 'vitest';
import { holding } from './ownership.ts';

const owner = { apiVersion: 'v1', kind: 'EtcdCluster', name: 'a', uid: 'u1' };

test('an object controlled by us is ours', () => {
  const object = { metadata: { ownerReferences: [{ ...owner, controller: true }] } };
  expect(holding(object, 'u1')).toEqual({ is: 'ours', object });
});

test.each([
  ['nobody owns it', {}, 'nobody: it was not made by this operator'],
  ['we own it but do not control it', { ownerReferences: [owner] }, 'nobody: it was not made by this operator'],
  [
    'an earlier cluster of the same name controls it',
    { ownerReferences: [{ ...owner, uid: 'u0', controller: true }], deletionTimestamp: '2026-01-01T00:00:00Z' },
    'EtcdCluster a (uid u0), and is being deleted',
  ],
])('an object is foreign when %s', (_name, metadata, text) => {
  expect(holding({ metadata }, 'u1')).toEqual({ is: 'foreign', owner: text });
});

test('no object is absent', () => {
  expect(holding(undefined, 'u1')).toEqual({ is: 'absent' });
});
