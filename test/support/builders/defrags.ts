/** EtcdDefrags and their policies, for table tests. */
import type { EtcdDefrag, EtcdDefragStatus, MemberOutcome } from '../../../src/api/etcd-defrag.ts';
import type { EtcdDefragPolicy, EtcdDefragPolicyStatus } from '../../../src/api/etcd-defrag-policy.ts';
import { API_VERSION } from '../../../src/api/names.ts';

export const MI = 2 ** 20;
export const DEFRAG_UID = '55555555-0000-4000-8000-000000000000';
export const POLICY_UID = '66666666-0000-4000-8000-000000000000';

export const aDefrag = (
  spec: Partial<EtcdDefrag['spec']> = {},
  status?: EtcdDefragStatus,
  metadata: Partial<EtcdDefrag['metadata']> = {},
): EtcdDefrag => ({
  apiVersion: API_VERSION,
  kind: 'EtcdDefrag',
  metadata: {
    name: 'nightly',
    namespace: 'ns',
    uid: DEFRAG_UID,
    generation: 1,
    resourceVersion: '300',
    creationTimestamp: '2026-01-01T11:00:00Z',
    ...metadata,
  },
  spec: { clusterRef: { name: 'db' }, ...spec },
  ...(status && { status }),
});

export const outcome = (name: string, more: Partial<MemberOutcome> = {}): MemberOutcome => ({
  name,
  role: 'follower',
  outcome: 'Pending',
  ...more,
});

export const done = (name: string, more: Partial<MemberOutcome> = {}): MemberOutcome =>
  outcome(name, {
    outcome: 'Defragmented',
    dbSizeBefore: 500 * MI,
    dbSizeAfter: 100 * MI,
    reclaimedBytes: 400 * MI,
    finishedAt: '2026-01-01T11:30:00Z',
    ...more,
  });

export const aPolicy = (
  spec: Partial<EtcdDefragPolicy['spec']> = {},
  status?: EtcdDefragPolicyStatus,
): EtcdDefragPolicy => ({
  apiVersion: API_VERSION,
  kind: 'EtcdDefragPolicy',
  metadata: {
    name: 'weekly',
    namespace: 'ns',
    uid: POLICY_UID,
    generation: 1,
    creationTimestamp: '2026-03-01T00:30:00Z',
  },
  spec: { clusterRef: { name: 'db' }, schedule: '0 3 * * *', ...spec },
  ...(status && { status }),
});
