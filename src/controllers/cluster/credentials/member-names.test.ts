/** No certificate has the name of a new member: growth and replacement wait, and nothing else does. */
import { describe, expect, test } from 'vitest';
import { type Is, lost, up, world } from '../../../../test/support/builders/members.ts';
import { type CertificatesView, NO_CERTIFICATES } from '../../../access/evaluate/view.ts';
import { findCondition } from '../../../domain/conditions.ts';
import { decide } from '../decide.ts';
import type { Gathered } from '../observed.ts';

const need = { role: 'server', from: 'user', secret: 'mine', mount: 'db-server-mounted' } as const;
const names = ['*.db.ns.svc'];
const lacking: CertificatesView = {
  ...NO_CERTIFICATES,
  certificates: [
    {
      need,
      findings: [{ is: 'newMemberNameMissing', secret: 'mine', names }],
      newMembersLack: names,
      notAfter: Date.parse('2026-03-01T00:00:00Z'),
      usable: true,
    },
  ],
};
const spec = { tls: { client: { serverSecretRef: { name: 'mine' } } } };
const taken = (members: readonly Is[], replicas = 3): Gathered => ({
  ...world(members, { spec, replicas }),
  certificates: lacking,
});
const conditionOf = (o: Gathered, type: string) => findCondition(decide(o).status?.conditions, type);

describe('waits', () => {
  test('for the name: a member that is to be added', () => {
    const o = taken([up, up]);
    expect(decide({ ...o, certificates: NO_CERTIFICATES }).rule).toBe('addLearner');
    expect([decide(o).rule, decide(o).steps ?? []]).toEqual(['waitForMembers', []]);
    expect(conditionOf(o, 'Progressing')?.message).toContain('Secret mine lacks *.db.ns.svc');
  });

  test('for the name: a lost member, which keeps its volume meanwhile', () => {
    const o = taken([up, up, lost]);
    expect(decide({ ...o, certificates: NO_CERTIFICATES }).rule).toBe('replaceLost');
    expect(decide(o).steps ?? []).toEqual([]);
    expect(conditionOf(o, 'Degraded')?.message).toContain('it is not replaced now: no certificate has the name');
  });

  test('for the name: a member that the earlier operator has half created', () => {
    const pending: Is = { as: 'unlisted', fresh: true, down: true, spec: { initialCluster: '' } };
    expect(decide({ ...taken([up, up, pending]), certificates: NO_CERTIFICATES }).rule).toBe('completePending');
    expect(decide(taken([up, up, pending])).steps ?? []).toEqual([]);
  });
});

describe('goes on', () => {
  test('with members that run: the cluster is healthy, and the condition names what to add', () => {
    const o = taken([up, up, up]);
    expect(conditionOf(o, 'Available')?.status).toBe('True');
    expect(conditionOf(o, 'Degraded')?.status).toBe('False');
    expect(conditionOf(o, 'Progressing')).toMatchObject({ status: 'False', reason: 'Reconciled' });
    expect(conditionOf(o, 'CertificatesValid')).toMatchObject({ status: 'True', reason: 'NameMissing' });
    expect(conditionOf(o, 'CertificatesValid')?.message).toContain('lacks *.db.ns.svc');
  });

  test.each<[string, Gathered, string]>([
    ['a removal that a user asks for', taken([up, up, { leaving: true }]), 'removeLeaving'],
    ['fewer replicas', taken([up, up, up], 1), 'shrink'],
    ['a pause', taken([up, up, up], 0), 'pause'],
  ])('with %s', (_, o, rule) => {
    expect(decide(o).rule).toBe(rule);
    expect((decide(o).steps ?? []).length).toBeGreaterThan(0);
  });
});
