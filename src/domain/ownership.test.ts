import { describe, expect, test } from 'vitest';
import { aCluster, aMember, CLUSTER_UID, FORMED } from '../../test/support/builders/builders.ts';
import { CLUSTER_LABEL } from '../api/names.ts';
import { holding, isMemberOf } from './ownership.ts';

const owner = { apiVersion: 'v1', kind: 'EtcdCluster', name: 'a', uid: 'u1' };

test('an object that we control is ours', () => {
  const object = { metadata: { ownerReferences: [{ ...owner, controller: true }] } };
  expect(holding(object, 'u1')).toEqual({ is: 'ours', object });
});

test.each([
  ['it has no owner', {}, 'no controller: this operator did not create it'],
  ['we own it but do not control it', { ownerReferences: [owner] }, 'no controller: this operator did not create it'],
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

describe('a member', () => {
  const { ownerReferences = [], ...metadata } = aMember().metadata;
  const unowned = { ...aMember(), metadata };
  const { controller: _, ...weak } = { ...owner, uid: CLUSTER_UID, controller: true };
  const formed = aCluster({ status: FORMED });
  const legacy = aCluster({ status: { ...FORMED, clusterToken: 'db-ns' } });
  const recreated = { ...aCluster(), metadata: { ...aCluster().metadata, uid: 'u2' } };
  const withToken = (clusterToken: string) => ({ ...unowned, spec: { ...unowned.spec, clusterToken } });
  test.each([
    ['that the cluster controls', aMember(), formed, true],
    ['that the cluster controls, without its label', { ...aMember(), metadata: { ownerReferences } }, formed, true],
    ['that another cluster of the name controls', aMember(), recreated, false],
    ['without an owner', unowned, formed, true],
    [
      'with an owner that is not its controller',
      { ...unowned, metadata: { ...metadata, ownerReferences: [weak] } },
      formed,
      true,
    ],
    ['without an owner, of a cluster that has recorded no token yet', unowned, aCluster(), true],
    ['without an owner, with the recorded token', withToken('db-ns'), legacy, true],
    ['without an owner, with another token than the recorded one', unowned, legacy, false],
    ['without an owner, of a deleted cluster of the same name', unowned, recreated, false],
    [
      'without an owner, which names another cluster',
      { ...unowned, spec: { ...unowned.spec, clusterName: 'x' } },
      formed,
      false,
    ],
    [
      'without an owner, with the label of another',
      { ...unowned, metadata: { ...metadata, labels: { [CLUSTER_LABEL]: 'x' } } },
      formed,
      false,
    ],
    [
      'without an owner, in another namespace',
      { ...unowned, metadata: { ...metadata, namespace: 'x' } },
      formed,
      false,
    ],
  ])('%s', (_name, member, cluster, belongs) => {
    expect(isMemberOf(member, cluster)).toBe(belongs);
  });
});
