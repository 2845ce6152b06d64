import { expect, test } from 'vitest';
import * as names from './names.ts';

test('labels are the ones that clusters made by earlier operators carry', () => {
  expect(names.memberLabels('db', 'db-x2f4q')).toEqual({
    'app.kubernetes.io/name': 'etcd',
    'app.kubernetes.io/instance': 'db',
    'app.kubernetes.io/managed-by': 'etcd-operator',
    'app.kubernetes.io/component': 'db-x2f4q',
    'etcd-operator.cozystack.io/cluster': 'db',
  });
});

test('S12: the longest cluster name still makes legal Service and host names', () => {
  const cluster = 'a'.repeat(names.MAX_CLUSTER_NAME);
  expect(names.clientServiceName(cluster).length).toBeLessThanOrEqual(63);
  expect(names.memberName(cluster, 'uid', 1).length).toBeLessThanOrEqual(63);
});

test('a member is named after its cluster, with five characters that depend on uid and counter only', () => {
  expect(names.memberName('db', 'u', 1)).toMatch(/^db-[a-z0-9]{5}$/);
  expect(names.memberName('db', 'u', 1)).toBe(names.memberName('db', 'u', 1));
  expect(names.memberName('db', 'u', 1)).not.toBe(names.memberName('db', 'u', 2));
  expect(names.memberName('db', 'u', 1)).not.toBe(names.memberName('db', 'v', 1));
});

test('URLs use the short service domain', () => {
  expect(names.peerURL('db-x', 'db', 'ns')).toBe('http://db-x.db.ns.svc:2380');
  expect(names.clientURL('db-x', 'db', 'ns')).toBe('http://db-x.db.ns.svc:2379');
});

test.each<[string, Record<string, string>, string | undefined]>([
  ['no annotation', {}, undefined],
  ['the annotation', { 'etcd-operator.cozystack.io/rotate-ca': 'b' }, 'b'],
  ['the previous one', { 'etcd-operator.cozystack.io/rotate-authority': 'a' }, 'a'],
  [
    'both, of which the new one counts',
    { 'etcd-operator.cozystack.io/rotate-ca': 'b', 'etcd-operator.cozystack.io/rotate-authority': 'a' },
    'b',
  ],
])('a CA rotation is requested by %s', (_, annotations, expected) => {
  expect(names.requestedRotation(annotations)).toBe(expected);
});
