/** A spec that is blocked: not allowed by the administrator. */
import { expect, test } from 'vitest';
import { lost, name, stepsOf, up, world } from '../../../test/support/builders/members.ts';
import { specOf, targetOf } from '../../api/defaults.ts';
import type { EtcdClusterSpec } from '../../api/etcd-cluster.ts';
import { findCondition } from '../../domain/conditions.ts';
import { decide } from './decide.ts';
import type { Gathered } from './observed.ts';

const evil = { image: { repository: 'evil.example.com/etcd' } };
const three = [up, up, up] as const;

/** A user edits the spec of this cluster. */
const edited = (o: Gathered, spec: Partial<EtcdClusterSpec>): Gathered => ({
  ...o,
  cluster: { ...o.cluster, spec: { ...o.cluster.spec, ...spec } },
});
const messageOf = (o: Gathered, type: string) => {
  const { status, reason, message } = findCondition(decide(o).status?.conditions, type) ?? {};
  return { status, reason, message };
};

test.each<[string, Partial<EtcdClusterSpec>]>([
  ['more replicas', { replicas: 5 }],
  ['fewer replicas', { replicas: 1 }],
  ['a pause', { replicas: 0 }],
  ['another version', { version: '3.6.99' }],
  ['labels', { additionalMetadata: { labels: { team: 'a' } } }],
])('a forbidden image is edited in together with %s: nothing of it is applied', (_, spec) => {
  expect(stepsOf(edited(world(three), spec)).length + Number(spec.version !== undefined)).toBeGreaterThan(0);
  const o = edited(world(three), { ...spec, ...evil });
  expect(stepsOf(o)).toEqual([]);
  expect(decide(o).latch).toBeUndefined();
  expect(decide(o).status?.observed).toEqual(world(three).cluster.status?.observed);
});

test('a member is lost while the image of the spec is forbidden: it is replaced with the last accepted image', () => {
  expect(stepsOf(edited(world([up, up, lost]), evil))).toContain(`delete ${name(3)}`);
  const started = edited(world([up, up, { as: 'awaited' }]), evil);
  const [created] = (decide(started).steps ?? []).flatMap((step) => (step.do === 'create' ? [step.object] : []));
  expect(created?.kind).toBe('EtcdMember');
  expect(JSON.stringify(created)).not.toContain('evil');
});

test('the status names what is blocked, and what holds instead', () => {
  const { status, reason, message } = messageOf(edited(world(three), { ...evil, replicas: 5 }), 'Progressing');
  expect([status, reason]).toEqual(['False', 'ImageNotAllowed']);
  expect(message).toContain('image.repository evil.example.com/etcd');
  expect(message).toContain('neither replicas nor a setting of members is applied');
  expect(message).toContain('replicas 3, version 3.6.16');
});

test('fields that no member has are applied meanwhile: a policy must not be lost because of an image', () => {
  const o = edited(world(three), { ...evil, deletionPolicy: 'Retain', podDisruptionBudget: { enabled: false } });
  const rows = (decide(o).contributions ?? []).map(({ row }) => row);
  expect(rows).toEqual(['propagateDeletionPolicy', 'pdb']);
});

test('the edit is applied as soon as it is not blocked any more', () => {
  const o = edited(world(three), { ...evil, replicas: 1 });
  const images = { ...o.images, allowed: ['evil.example.com/*'] };
  expect(decide({ ...o, images }).latch?.observed).toMatchObject({ replicas: 1, ...evil });
});

test('an image that is not allowed any more is reported for as long as members run it', () => {
  const o = world([up, { spec: evil }, up]);
  const { status, reason, message } = messageOf(o, 'ImageAllowed');
  expect([status, reason]).toEqual(['False', 'ImageNotAllowed']);
  expect(message).toContain(name(2));
  expect(messageOf(world(three), 'ImageAllowed').status).toBeUndefined();
});

test('a target is the target of its own spec, and what is no part of it stays', () => {
  const tls = { client: { certManager: { serverIssuerRef: { name: 'ca' } } } };
  const spec = { ...world(three, { spec: { options: { quotaBackendBytes: 7 } } }).cluster.spec, tls };
  const again = specOf(targetOf(spec), { ...spec, ...evil, deletionPolicy: 'Retain' });
  expect(targetOf(again)).toEqual(targetOf(spec));
  expect(again).toMatchObject({ tls, deletionPolicy: 'Retain' });
});
