/** EtcdMembers without an owner: their cluster adopts them before anything else. */
import { describe, expect, test } from 'vitest';
import { CLUSTER_UID } from '../../../test/support/builders/builders.ts';
import { awaited, down, type Is, lost, name, unreachable, up, world } from '../../../test/support/builders/members.ts';
import { EVIDENCE } from '../../api/etcd-member.ts';
import type { OwnerReference } from '../../api/meta.ts';
import { CLUSTER_LABEL, etcdClusters } from '../../api/names.ts';
import { ownedBy } from '../../domain/ownership.ts';
import { decide } from './decide.ts';
import type { Gathered, MemberView } from './observed.ts';

/** The EtcdMembers with these numbers have no controller. */
const unowned = (o: Gathered, numbers: readonly number[], references: readonly OwnerReference[] = []): Gathered => {
  const names = numbers.map(name);
  const strip = (m: MemberView): MemberView => {
    const { metadata } = m.object;
    if (!names.includes(metadata.name ?? '')) return m;
    return { ...m, object: { ...m.object, metadata: { ...metadata, ownerReferences: references } } };
  };
  return { ...o, members: o.members.map(strip) };
};
const beingDeleted = (o: Gathered): Gathered => {
  const metadata = { ...o.cluster.metadata, deletionTimestamp: '2026-01-01T11:59:00Z' };
  return { ...o, cluster: { ...o.cluster, metadata } };
};
const leaving: Is = { leaving: true };
const invalid: Is = { down: true, evidence: EVIDENCE.dataInvalid };

describe('the rule that decides', () => {
  test.each<[string, Gathered, string, readonly string[]]>([
    ['no EtcdMember has an owner', unowned(world([up, up, up]), [1, 2, 3]), 'steady', [name(1), name(2), name(3)]],
    ['one of three has no owner', unowned(world([up, up, up]), [2]), 'steady', [name(2)]],
    ['a lost member is replaced meanwhile', unowned(world([up, up, lost]), [1]), 'replaceLost', ['delete', name(1)]],
    [
      'a lost member without an owner is adopted before it is replaced',
      unowned(world([up, up, lost]), [3]),
      'replaceLost',
      [name(3)],
    ],
    [
      'the data of all members is unreadable: they are adopted all the same',
      unowned(world([lost, invalid], { etcd: unreachable }), [1]),
      'noReadableData',
      [name(1)],
    ],
    [
      'a member is created meanwhile',
      unowned(world([up, awaited], { replicas: 2 }), [1]),
      'startNext',
      ['create', name(1)],
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
    const { rule: answered, steps, upkeep = [] } = decide(o);
    const named = [...steps, ...upkeep.flatMap((task) => task.steps)].map((s) =>
      s.do === 'patch' ? s.to.name : s.do === 'call' ? s.call.target : s.do,
    );
    expect([answered, named]).toEqual([rule, targets]);
  });
});

test('foreign owner references are kept, and the patch fails when the EtcdMember has changed', () => {
  const other = { apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: 'x' };
  const weak = { ...other, name: 'db', uid: CLUSTER_UID };
  const o = unowned(world([up]), [1], [other, weak]);
  const { upkeep, events: notices } = decide(o);
  expect(upkeep?.flatMap(({ steps }) => steps)).toEqual([
    {
      do: 'patch',
      to: { kind: 'EtcdMember', namespace: 'ns', name: name(1), uid: 'uid-1', resourceVersion: '200' },
      fields: { metadata: { ownerReferences: [other, ...ownedBy(etcdClusters, o.cluster)] } },
    },
  ]);
  expect(notices.map(({ reason }) => reason)).toContain('MembersAdopted');
});

test('the cluster label of an EtcdMember is put back', () => {
  const o = world([up, up, up]);
  const [first, ...others] = o.members;
  if (!first) throw new Error('there are three');
  const { labels: _, ...metadata } = first.object.metadata;
  const { upkeep } = decide({ ...o, members: [{ ...first, object: { ...first.object, metadata } }, ...others] });
  expect(upkeep?.flatMap(({ steps }) => steps)).toMatchObject([
    { do: 'patch', to: { name: name(1) }, fields: { metadata: { labels: { [CLUSTER_LABEL]: 'db' } } } },
  ]);
});

test('a healthy cluster of adopted members is Available', () => {
  const { status } = decide(unowned(world([up, up, up]), [1, 2, 3]));
  expect(status.conditions?.[0]).toMatchObject({ type: 'Available', status: 'True' });
});
