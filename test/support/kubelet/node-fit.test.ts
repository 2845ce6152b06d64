import { expect, test } from 'vitest';
import type { Pod } from '../../../src/gen/kube.ts';
import { missingImage, unschedulable } from './node-fit.ts';

type Spec = NonNullable<Pod['spec']>;
const pod = (spec: Partial<Spec>): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'a' },
  spec: { containers: [{ name: 'etcd', image: 'etcd:v1' }], ...spec },
});
const asking = (requests: Record<string, string>): Partial<Spec> => ({
  containers: [{ name: 'etcd', resources: { requests } }],
});
const spread = (topologyKey: string): Partial<Spec> => ({
  topologySpreadConstraints: [{ maxSkew: 1, topologyKey, whenUnsatisfiable: 'DoNotSchedule' }],
});

test.each<[string, Partial<Spec>, string | undefined]>([
  ['asks for nothing', {}, undefined],
  ['names this node', { nodeSelector: { 'kubernetes.io/hostname': 'loopback' } }, undefined],
  ['selects a label that no node has', { nodeSelector: { disk: 'ssd' } }, 'node affinity/selector'],
  ['fits', asking({ cpu: '100m', memory: '1Gi' }), undefined],
  ['asks for too much', asking({ cpu: '65' }), 'Insufficient cpu'],
  ['asks for a device', asking({ 'vendor.com/x': '1' }), 'Insufficient vendor.com/x'],
  ['spreads over nodes', spread('kubernetes.io/hostname'), undefined],
  ['spreads over zones that no node has', spread('zone'), 'topology spread'],
])('a Pod that %s', (_, spec, message) => {
  if (message === undefined) expect(unschedulable(pod(spec))).toBeUndefined();
  else expect(unschedulable(pod(spec))).toContain(message);
});

test('an image that is in no registry is named', () => {
  expect(missingImage(pod({}), ['etcd:v1'])).toBeUndefined();
  expect(missingImage(pod({}), ['etcd:v2'])).toBe('etcd:v1');
});
