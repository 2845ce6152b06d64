/** A cluster whose data no member can serve: what counts as lost, and the message for users. */
import { describe, expect, test } from 'vitest';
import { down, type Is, lost, name, stepsOf, unreachable, up, world } from '../../../test/support/builders/members.ts';
import { EVIDENCE } from '../../api/etcd-member.ts';
import { decide } from './decide.ts';
import type { Gathered, MemberView } from './observed.ts';

const invalid: Is = { down: true, evidence: EVIDENCE.dataInvalid };
const volumeLost: Is = { down: true, evidence: EVIDENCE.volumeLost };
const full: Is = { down: true, evidence: EVIDENCE.volumeFull };
const nodeLost: Is = { down: true, evidence: EVIDENCE.nodeLost };
const memory: Is = { ...lost, spec: { storage: { size: '64Mi', medium: 'Memory' } } };
const unanswered = (...members: readonly Is[]): Gathered => world(members, { etcd: unreachable, replicas: 3 });
const absent = { is: 'absent' } as const;
const bare = (o: Gathered): Gathered => ({ ...o, services: { headless: absent, client: absent }, pdb: absent });
const responding = (o: Gathered, n: number): Gathered => {
  const { self } = world([up, up, up]).members[n - 1] ?? {};
  return { ...o, members: o.members.map((m, i): MemberView => (i === n - 1 ? { ...m, self } : m)) };
};

describe('the rule that decides, without any step', () => {
  test.each<[string, Gathered, string]>([
    ['the PVC of every member is deleted', unanswered(lost, lost, lost), 'allMembersLost'],
    ['some PVCs are deleted, and some volumes are lost', unanswered(lost, volumeLost, lost), 'allMembersLost'],
    ['no EtcdMember is left', unanswered(), 'allMembersLost'],
    ['every data directory is damaged or emptied', unanswered(invalid, invalid, invalid), 'noReadableData'],
    ['two PVCs are deleted, and one data directory is damaged', unanswered(lost, lost, invalid), 'noReadableData'],
    ['Services are missing', bare(unanswered(lost, invalid, invalid)), 'noReadableData'],
    ['one member is only down', unanswered(lost, invalid, down), 'waitForMembers'],
    ['the volume of one is full', unanswered(lost, invalid, full), 'waitForMembers'],
    ['the node of one is lost', unanswered(lost, lost, nodeLost), 'waitForMembers'],
    ['one responds', responding(unanswered(lost, lost, volumeLost), 3), 'waitForMembers'],
    [
      'a member with a damaged data directory responds',
      responding(unanswered(lost, lost, invalid), 3),
      'waitForMembers',
    ],
  ])('%s', (_name, o, rule) => {
    const { rule: answered, steps } = decide(o);
    expect([answered, steps]).toEqual([rule, []]);
  });

  test('an edit of replicas does not create a member', () => {
    const o = world([invalid, invalid, invalid], { etcd: unreachable, replicas: 5 });
    expect([decide(o).rule, stepsOf(o)]).toEqual(['noReadableData', []]);
  });
});

const reasonsOf = (o: Gathered) =>
  decide(o)
    .status.conditions?.slice(0, 3)
    .map((c) => `${c.type}=${c.status}/${c.reason}`);
const messageOf = (o: Gathered): string | undefined => decide(o).status.conditions?.[0]?.message;
const NEVER = 'The operator never bootstraps an empty replacement.';

test('all three conditions have the reason', () => {
  expect(reasonsOf(unanswered(invalid, lost, lost))).toEqual([
    'Available=False/NoReadableData',
    'Progressing=False/NoReadableData',
    'Degraded=True/NoReadableData',
  ]);
});

test.each<[string, Gathered, string]>([
  [
    'names what is lost',
    unanswered(lost, memory, volumeLost),
    `All members have lost their data (PVCs deleted: data-${name(1)}; Pods deleted: ${name(2)}; volumes lost: data-${name(3)}). ${NEVER} Restore a snapshot into a new cluster, or delete this one.`,
  ],
  [
    'names no volumes where there are none',
    unanswered(),
    `All members have lost their data (all EtcdMembers deleted). ${NEVER} Restore a snapshot into a new cluster, or delete this one.`,
  ],
  [
    'names the volumes that are left, and does not advise to delete the cluster',
    { ...unanswered(), leftVolumes: ['data-a', 'data-b'] },
    `All members have lost their data (all EtcdMembers deleted). ${NEVER} Keep the volumes: data-a, data-b. Copy the data directories from them, or restore a snapshot into a new cluster, before you delete this one.`,
  ],
  [
    'names the Pods that are left, whose etcd may have the data',
    { ...unanswered(), leftPods: ['db-a', 'db-b'], leftVolumes: ['data-a'] },
    `All EtcdMembers are deleted, and Pods are left: db-a, db-b. ${NEVER} If their etcd still runs, save a snapshot with etcdctl before they end, and restore it into a new cluster.`,
  ],
  [
    'names what is wrong with each member, and what to keep',
    unanswered(lost, invalid, { ...memory, evidence: EVIDENCE.dataInvalid }),
    `No member can read its data. ${NEVER} It deletes nothing; keep data-${name(2)}, Pod ${name(3)}. Repair the data directories, of which you keep copies, or restore a snapshot into a new cluster. What is wrong: ${name(1)}: m; ${name(2)}: m; ${name(3)}: m`,
  ],
])('the message %s', (_name, o, message) => {
  expect(messageOf(o)).toBe(message);
});
