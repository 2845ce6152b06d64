/** The tests' kubelet treats a Pod like a real one, and the comparison of two runs is right. */
import { expect, test } from 'vitest';
import { memberName } from '../../src/api/names.ts';
import type { EnvVar, Pod } from '../../src/gen/kube.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { argumentsOf, expand, readyFor } from '../support/kubelet/pod-process.ts';
import { canonical, difference } from '../sweep/canonical.ts';

test.each([
  ['a variable', '--state=$(STATE)', '--state=new'],
  ['an unknown one, which is kept', '$(UNKNOWN)', '$(UNKNOWN)'],
  ['an escaped one', '$$(STATE)', '$(STATE)'],
  ['a lone dollar sign', 'a$b', 'a$b'],
])('%s in a command', (_what, text, made) => {
  expect(expand(text, { STATE: 'new' })).toBe(made);
});

const env: readonly EnvVar[] = [
  { name: 'STATE', valueFrom: { fieldRef: { fieldPath: "metadata.annotations['example.com/state']" } } },
  { name: 'FULL', value: '$(STATE)-er' },
];
const aPod = (annotations: Readonly<Record<string, string>>): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', namespace: 'n', annotations },
  spec: {
    containers: [
      { name: 'etcd', command: ['etcd', '--listen-client-urls=http://0.0.0.0:2379'], args: ['--x=$(FULL)'], env },
    ],
  },
});
const place = { address: '127.1.1.1', data: '/d', podIP: '127.1.1.2', mounts: {} };

test('a variable comes from the annotation as it is at this start', () => {
  const listening = '--listen-client-urls=http://127.1.1.1:2379';
  expect(argumentsOf(aPod({ 'example.com/state': 'new' }), place)).toEqual([listening, '--x=new-er']);
  expect(argumentsOf(aPod({ 'example.com/state': 'old' }), place)).toEqual([listening, '--x=old-er']);
  expect(argumentsOf(aPod({}), place)).toEqual([listening, '--x=-er']);
});

test('a Pod stays ready until its failureThreshold, or three, probes have failed', () => {
  const probed = (failureThreshold?: number): Pod => {
    const readinessProbe = { httpGet: { port: 2381 }, ...(failureThreshold !== undefined && { failureThreshold }) };
    return { ...aPod({}), spec: { containers: [{ name: 'etcd', readinessProbe }] } };
  };
  expect([readyFor(probed(5)), readyFor(probed())]).toEqual([5, 3]);
});

/** A cluster with its n-th and m-th members, one of which is the leader. */
const run = (uid: string, numbers: readonly number[], extra: object = {}): readonly string[] => {
  const cluster: KubeObject = { apiVersion: 'v', kind: 'EtcdCluster', metadata: { name: 'db', uid } };
  const members = numbers.map((n) => memberName('db', uid, n));
  const objects = members.map((name, i) => ({
    apiVersion: 'v',
    kind: 'EtcdMember',
    metadata: { name, uid: crypto.randomUUID(), resourceVersion: String(Math.random()) },
    status: { role: i === 0 ? 'leader' : 'follower', id: `00000000000000a${i}`, ...extra },
  }));
  return canonical(
    [{ ...cluster, status: { names: members } } as KubeObject, ...objects.reverse()],
    cluster,
    'some-namespace',
  );
};
const [one, other] = ['11111111-0000-4000-8000-000000000000', '22222222-0000-4000-8000-000000000000'];

test('runs that differ in names, ids and versions only are equal', () => {
  expect(run(one, [1, 2])).toEqual(run(other, [2, 5]));
});
test('a surplus member and a field that differs are reported', () => {
  expect(difference(run(one, [1, 2]), run(other, [1, 2, 3]))).toContain('+ EtcdMember <member 3>: "role": "voter"');
  expect(difference(run(one, [1]), run(other, [1], { voter: false }))).toBe('+ EtcdMember <member 1>: "voter": false');
});
