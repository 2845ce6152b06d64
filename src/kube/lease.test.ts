import { expect, test } from 'vitest';
import type { Lease } from '../gen/kube.ts';
import { decideLease } from './lease.ts';

const held = (holderIdentity: string, leaseDurationSeconds = 15): Lease => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: {},
  spec: { holderIdentity, leaseDurationSeconds },
});

test.each([
  ['there is no lease yet', undefined, 0, 'create'],
  ['it is mine', held('me'), 60_000, 'renew'],
  ['its holder left', held('', 1), 0, 'take'],
  ['its holder was seen alive', held('other'), 15_000, 'wait'],
  ['its holder has been silent for the whole lease', held('other'), 15_001, 'take'],
  ['its holder asked for a longer lease', held('other', 60), 30_000, 'wait'],
] as const)('when %s', (_name, lease, unchangedMs, move) => {
  expect(decideLease('me', { lease, unchangedMs })).toBe(move);
});
