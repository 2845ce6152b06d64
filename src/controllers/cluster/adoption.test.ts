/** EtcdMembers without an owner: their cluster adopts them before anything else. */
import { describe, expect, test } from 'vitest';
import { CLUSTER_UID } from '../../../test/support/builders/builders.ts';
import { awaited, down, type Is, lost, name, unreachable, up, world } from '../../../test/support/builders/members.ts';
import { EVIDENCE } from '../../api/etcd-member.ts';
import type { OwnerReference } from '../../api/meta.ts';
import { etcdClusters } from '../../api/names.ts';
import { ownedBy } from '../../domain/ownership.ts';
import { decide } from './decide.ts';
import type { MemberView, Observed } from './observed.ts';

/** The EtcdMembers with these numbers have no controller. */
const unowned = (o: Observed, numbers: readonly number[], references: readonly OwnerReference[] = []): Observed => {
  const names = numbers.map(name);
  const strip = (m: MemberView): MemberView => {
    const { metadata } = m.object;
    if (!names.includes(metadata.name ?? '')) return m;
    return { ...m, object: { ...m.object, metadata: { ...metadata, ownerReferences: references } } };
  };
  return { ...o, members: o.members.map(strip) };
};
const beingDeleted = (o: Observed): Observed => {
  const metadata = { ...o.cluster.metadata, deletionTimestamp: '2026-01-01T11:59:00Z' };
  return { ...o, cluster: { ...o.cluster, metadata } };
};
const leaving: Is = { leaving: true };
const invalid: Is = { down: true, evidence: EVIDENCE.dataInvalid };

describe('the rule that decides', () => {
  test.each<[string, Observed, string, readonly string[]]>([
    [
      'no EtcdMember has an owner',
      unowned(world([up, up, up]), [1, 2, 3]),
      'adoptMembers',
      [name(1), name(2), name(3)],
    ],
    ['one of three has no owner', unowned(world([up, up, up]), [2]), 'adoptMembers', [name(2)]],
    ['adoption comes before a lost member is replaced', unowned(world([up, up, lost]), [1]), 'adoptMembers', [name(1)]],
    [
      'adoption comes before AllMembersLost is reported',
      unowned(world([lost, invalid], { etcd: unreachable }), [1]),
      'adoptMembers',
      [name(1)],
    ],
    [
      'adoption comes before a member is added',
      unowned(world([up, awaited], { replicas: 2 }), [1]),
      'adoptMembers',
      [name(1)],
    ],
    [
      'a member that is being deleted is removed, not adopted',
      unowned(world([up, up, leaving]), [3]),
      'removeLeaving',
      [name(3)],
    ],
    [
      'a member that is being deleted is not adopted while the quorum needs it',
      unowned(world([up, down, leaving]), [3]),
      'waitForMembers',
      [],
    ],
    [
      'a cluster that is being deleted adopts nothing',
      beingDeleted(unowned(world([up, up, up]), [1])),
      'beingDeleted',
      [],
    ],
  ])('%s', (_name, o, rule, targets) => {
    const { rule: answered, steps } = decide(o);
    const named = steps.map((s) => (s.do === 'patch' ? s.to.name : s.do === 'call' ? s.call.target : s.do));
    expect([answered, named]).toEqual([rule, targets]);
  });
});

test('foreign owner references are kept, and the patch fails when the EtcdMember has changed', () => {
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

test('a healthy cluster of adopted members is Available', () => {
  const { status } = decide(unowned(world([up, up, up]), [1, 2, 3]));
  expect(status.conditions?.[0]).toMatchObject({ type: 'Available', status: 'True' });
});
