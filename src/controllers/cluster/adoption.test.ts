/** EtcdMembers without an owner: the cluster that they were made for adopts them before it does anything else. */
import { describe, expect, test } from 'vitest';
import { CLUSTER_UID } from '../../../test/support/builders/builders.ts';
import { awaited, down, type Is, lost, name, silent, up, world } from '../../../test/support/builders/members.ts';
import { EVIDENCE } from '../../api/etcd-member.ts';
import type { OwnerReference } from '../../api/meta.ts';
import { etcdClusters } from '../../api/names.ts';
import { ownedBy } from '../../domain/ownership.ts';
import { decide } from './decide.ts';
import type { MemberView, Observed } from './observed.ts';

/** These have no controller any more. */
const unowned = (o: Observed, numbers: readonly number[], references: readonly OwnerReference[] = []): Observed => {
  const names = numbers.map(name);
  const strip = (m: MemberView): MemberView => {
    const { metadata } = m.object;
    if (!names.includes(metadata.name ?? '')) return m;
    return { ...m, object: { ...m.object, metadata: { ...metadata, ownerReferences: references } } };
  };
  return { ...o, members: o.members.map(strip) };
};
const going = (o: Observed): Observed => {
  const metadata = { ...o.cluster.metadata, deletionTimestamp: '2026-01-01T11:59:00Z' };
  return { ...o, cluster: { ...o.cluster, metadata } };
};
const leaving: Is = { leaving: true };
const invalid: Is = { down: true, evidence: EVIDENCE.dataInvalid };

describe('the rule that answers', () => {
  test.each<[string, Observed, string, readonly string[]]>([
    ['no member has an owner', unowned(world([up, up, up]), [1, 2, 3]), 'adoptMembers', [name(1), name(2), name(3)]],
    ['one of three has none', unowned(world([up, up, up]), [2]), 'adoptMembers', [name(2)]],
    ['before a lost one is replaced', unowned(world([up, up, lost]), [1]), 'adoptMembers', [name(1)]],
    [
      'before the loss of all is told',
      unowned(world([lost, invalid], { etcd: silent }), [1]),
      'adoptMembers',
      [name(1)],
    ],
    ['before a member is added', unowned(world([up, awaited], { replicas: 2 }), [1]), 'adoptMembers', [name(1)]],
    [
      'one that is being deleted is removed, not adopted',
      unowned(world([up, up, leaving]), [3]),
      'removeLeaving',
      [name(3)],
    ],
    [
      'one that is being deleted is adopted by nobody while it is needed',
      unowned(world([up, down, leaving]), [3]),
      'waitForMembers',
      [],
    ],
    [
      'nothing is adopted by a cluster that is being deleted',
      going(unowned(world([up, up, up]), [1])),
      'beingDeleted',
      [],
    ],
  ])('%s', (_name, o, rule, targets) => {
    const { rule: answered, steps } = decide(o);
    const named = steps.map((s) => (s.do === 'patch' ? s.to.name : s.do === 'call' ? s.call.target : s.do));
    expect([answered, named]).toEqual([rule, targets]);
  });
});

test('references of others are kept, and the patch is void when the member has changed', () => {
  const other = { apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: 'x' };
  const weak = { ...other, name: 'db', uid: CLUSTER_UID };
  const o = unowned(world([up]), [1], [other, weak]);
  const { steps, events: notices } = decide(o);
  expect(steps).toEqual([
    {
      do: 'patch',
      to: { kind: 'EtcdMember', namespace: 'ns', name: name(1), uid: 'uid-1', resourceVersion: '200' },
      fields: { metadata: { ownerReferences: [other, ...ownedBy(etcdClusters, o.cluster)] } },
    },
  ]);
  expect(notices.map(({ reason }) => reason)).toContain('MembersAdopted');
});

test('a healthy cluster of such members is told to be available', () => {
  const { status } = decide(unowned(world([up, up, up]), [1, 2, 3]));
  expect(status.conditions?.[0]).toMatchObject({ type: 'Available', status: 'True' });
});
