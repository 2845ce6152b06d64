/** A member of a suspended cluster: its status is true, and nothing else of it is written. */
import { expect, test } from 'vitest';
import { aCluster, aMember, FORMED, LATCHED } from '../../../test/support/builders/builders.ts';
import {
  absent,
  ended,
  fresh,
  joined,
  leaving,
  readyPod,
  stepsOf,
  world,
} from '../../../test/support/builders/member.ts';
import { findCondition } from '../../domain/conditions.ts';
import { decide } from './decide.ts';
import type { Observed } from './observed.ts';

const SUSPEND = { suspend: true };
const cluster = aCluster({ spec: SUSPEND, status: FORMED });
const removed: Observed['peers'] = { is: 'answer', members: [{ id: '1', name: 'other', peerURLs: [] }] };

test.each<[string, Observed, string]>([
  ['it has no Pod', world({ cluster, pod: absent }), 'creating the missing Pod'],
  ['it is new', fresh({ cluster: aCluster({ spec: SUSPEND, status: LATCHED }) }), 'creating the PVC and the Pod'],
  ['its Pod has terminated', world({ cluster, pod: ended }), 'recreating it'],
  ['it has no finalizer', world({ cluster, member: aMember({ status: joined, finalizers: [] }) }), 'finalizer'],
  ['etcd has removed it', leaving({ cluster, peers: removed }), 'etcd has removed this member'],
])('nothing of it is written, and the message says what would be done: %s', (_, o, would) => {
  const { rule, message, requeueAfterMs } = decide(o);
  expect([rule, stepsOf(o), requeueAfterMs]).toEqual(['suspended', [], 5_000]);
  expect(message).toContain('Without spec.suspend it would do this now: ');
  expect(message).toContain(would);
});

test('it is observed as often as usual', () => {
  expect(decide(world({ cluster })).requeueAfterMs).toBe(300_000);
});

test('its status is true: it is ready, or what it lacks', () => {
  const ready = (o: Observed) => findCondition(decide(o).status.conditions, 'Ready')?.reason;
  expect(ready(world({ cluster, pod: readyPod }))).toBe('PodReady');
  expect(ready(world({ cluster, pod: absent }))).toBe('PodNotReady');
  expect(ready(world({ cluster, pod: absent, volume: absent }))).toBe('DataLost');
});

test('it is released when its whole cluster is deleted: the deletion must not hang', () => {
  const deleted = aCluster({ spec: SUSPEND, status: FORMED, deleting: true });
  expect(stepsOf(leaving({ cluster: deleted }))).toContain('patch EtcdMember');
  expect(stepsOf(leaving({ cluster: undefined }))).toContain('patch EtcdMember');
});
