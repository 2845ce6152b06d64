import { expect, test } from 'vitest';
import { aCluster, aMember, aPod, aVolume, NOW, POD_UID } from '../../../test/support/builders/builders.ts';
import { DRAINING_ANNOTATION, OLD_DRAINING_ANNOTATION } from '../../api/names.ts';
import { SELECTED_NODE } from '../../domain/node.ts';
import type { Node, PersistentVolumeClaim, Pod } from '../../gen/kube.ts';
import { viewOf } from './observe-members.ts';
import type { PodView } from './observed.ts';

const viewed = (pod: Pod | undefined): PodView =>
  viewOf(
    { pods: { get: () => pod }, volumes: { get: () => undefined } } as unknown as Parameters<typeof viewOf>[0],
    aCluster(),
    aMember(),
  ).pod;
const FRESH = {
  is: 'present',
  uid: POD_UID,
  ready: false,
  ip: '10.0.0.1',
  startedAt: NOW - 1_000,
  maxLearners: 1,
} as const;
const pod = aPod();
const etcd = (status: object): Pod => aPod({ status: { containerStatuses: [{ name: 'etcd', ...status }] as never } });
const at = (time: string | undefined): Pod => ({
  ...pod,
  metadata: { ...pod.metadata, annotations: time === undefined ? {} : { [DRAINING_ANNOTATION]: time } },
});
const specified = (spec: object): Pod => ({ ...pod, spec: spec as NonNullable<Pod['spec']> });
const { uid: _, ...unnamed } = pod.metadata;

test.each<[string, Pod | undefined, PodView]>([
  ['no Pod', undefined, { is: 'absent' }],
  ['a Pod without a controller', { ...pod, metadata: { ...pod.metadata, ownerReferences: [] } }, { is: 'absent' }],
  ['a Pod that starts', pod, FRESH],
  ['a Pod that is ready', aPod({ ready: true }), { ...FRESH, ready: true }],
  [
    'a Pod that was just created',
    { ...pod, metadata: { ...pod.metadata, creationTimestamp: '2026-01-01T12:00:00Z' } },
    { ...FRESH, createdAt: NOW },
  ],
  ['a Pod without a uid', { ...pod, metadata: unnamed }, (({ uid: __, ...rest }) => rest)(FRESH)],
  [
    'a Pod that is being deleted',
    { ...pod, metadata: { ...pod.metadata, deletionTimestamp: '2026-01-01T12:00:00Z' } },
    { ...FRESH, terminating: true, endsBy: NOW },
  ],
  ['a Pod without a status', { ...pod, status: {} }, { is: 'present', uid: POD_UID, ready: false, maxLearners: 1 }],
  ['a Pod that has ended', aPod({ status: { phase: 'Failed' } }), (({ ip: __, ...rest }) => rest)(FRESH)],
  [
    'etcd that runs',
    etcd({ state: { running: { startedAt: '2026-01-01T12:00:00Z' } }, restartCount: 0 }),
    { ...FRESH, runningSince: NOW },
  ],
  ['etcd that was restarted', etcd({ restartCount: 1 }), { ...FRESH, restarted: true }],
  [
    'another container that was restarted',
    aPod({ status: { containerStatuses: [{ name: 'x', restartCount: 1 }] as never } }),
    FRESH,
  ],
  ['a Pod taken out of the client Service', at('2026-01-01T12:00:00Z'), { ...FRESH, drainingSince: NOW }],
  ['a Pod taken out at an unreadable time', at('soon'), { ...FRESH, drainingSince: 0 }],
  [
    'a Pod that the previous operator took out of the Service',
    { ...pod, metadata: { ...pod.metadata, annotations: { [OLD_DRAINING_ANNOTATION]: '2026-01-01T12:00:00Z' } } },
    { ...FRESH, drainingSince: NOW },
  ],
  ['a Pod with other annotations', at(undefined), FRESH],
  [
    'etcd that takes several learners',
    specified({ containers: [{ name: 'etcd', command: ['etcd', '--max-learners=8'] }] }),
    { ...FRESH, maxLearners: 8 },
  ],
  [
    'etcd that goes on for a while when its Pod is deleted',
    specified({ containers: [{ name: 'etcd', lifecycle: { preStop: { sleep: { seconds: 2 } } } }] }),
    { ...FRESH, preStopMs: 2_000 },
  ],
  ['the flag of another container', specified({ containers: [{ name: 'x', command: ['--max-learners=8'] }] }), FRESH],
  [
    'a Pod that restores a snapshot',
    specified({ containers: [], initContainers: [{ name: 'restore' }] }),
    { ...FRESH, restore: { is: 'running', what: 'its Pod' } },
  ],
  [
    'a Pod that is to be replaced after its restore',
    specified({ containers: [], volumes: [{ name: 'fetched', emptyDir: {} }] }),
    { ...FRESH, isForRestore: true },
  ],
  [
    'a Pod with TLS',
    specified({ containers: [], volumes: [{ name: 'tls-peer', secret: { secretName: 'leaf' } }] }),
    { ...FRESH, tls: { peer: { leaf: 'leaf' } } },
  ],
])('what is known about %s', (_what, found, expected) => {
  expect(viewed(found)).toStrictEqual(expected);
});

const onNode = (name: string): Pod => specified({ containers: [], nodeName: name });
const pvcOn = (name: string) => {
  const { metadata, ...volume } = aVolume();
  return { ...volume, metadata: { ...metadata, annotations: { [SELECTED_NODE]: name } } };
};
const node = (name: string, spec: Node['spec'] = {}): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name },
  spec,
});
const taints = [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }];
const NODES: Readonly<Record<string, Node>> = { '/well': node('well'), '/tainted': node('tainted', { taints }) };

test.each<[string, Pod | undefined, PersistentVolumeClaim | undefined, boolean | undefined]>([
  ['its Pod is on a node', onNode('well'), pvcOn('deleted'), undefined],
  ['the node of its Pod was deleted', onNode('deleted'), pvcOn('well'), true],
  ['the node of its Pod is out of service', onNode('tainted'), undefined, true],
  ['it has no Pod, and the node of its volume was deleted', undefined, pvcOn('deleted'), true],
  ['it has no Pod, and its volume is on a node', undefined, pvcOn('well'), undefined],
  ['it has neither', undefined, undefined, undefined],
])('whether the node of a member is gone: %s', (_, found, pvc, nodeGone) => {
  const stores = {
    pods: { get: () => found },
    volumes: { get: () => pvc },
    nodes: { get: (key: string) => NODES[key] },
  };
  expect(viewOf(stores as unknown as Parameters<typeof viewOf>[0], aCluster(), aMember()).nodeGone).toBe(nodeGone);
});

test('S8: no node counts as deleted while the operator may not read nodes', () => {
  const stores = {
    pods: { get: () => onNode('deleted') },
    volumes: { get: () => undefined },
    nodes: { get: () => undefined, missing: true },
  };
  expect(viewOf(stores as unknown as Parameters<typeof viewOf>[0], aCluster(), aMember()).nodeGone).toBeUndefined();
});

test.each<[string, Node | undefined, boolean | undefined]>([
  ['cordoned', node('x', { unschedulable: true }), true],
  ['about to be deleted by the Cluster Autoscaler', tainted('ToBeDeletedByClusterAutoscaler'), true],
  ['about to be deleted by Karpenter', tainted('karpenter.sh/disrupted'), true],
  ['tainted for another reason', tainted('example.com/gpu'), undefined],
  ['schedulable', node('x'), undefined],
  ['deleted', undefined, undefined],
])('whether the node of a member is about to be drained: %s', (_, found, expected) => {
  const stores = { pods: { get: () => onNode('x') }, volumes: { get: () => undefined }, nodes: { get: () => found } };
  expect(viewOf(stores as unknown as Parameters<typeof viewOf>[0], aCluster(), aMember()).nodeCordoned).toBe(expected);
});

function tainted(key: string): Node {
  return node('x', { taints: [{ key, effect: 'NoSchedule' }] });
}
