/** Objects as the Go operator has them: ordinary ones, and ones that our rules would refuse. */
import { etcdDefragPolicies, etcdDefrags, etcdMembers, etcdSnapshots } from '../../../src/api/names.ts';
import {
  AT,
  type BaselineObject,
  baselineClusters,
  condition,
  labels,
  s3,
  storage,
  template,
} from './baseline-clusters.ts';
import { ref } from './row.ts';

const member = (what: string, name: string, spec: object, status?: object): BaselineObject => ({
  what,
  resource: etcdMembers,
  name,
  spec: {
    clusterName: 'db',
    version: '3.5.20',
    storage: { size: '1Gi', medium: '' },
    initialCluster: '',
    clusterToken: 't',
    ...spec,
  },
  ...(status && { status }),
  edit: { dormant: true },
});
const snapshot = (what: string, name: string, spec: object, status?: object): BaselineObject => ({
  what,
  resource: etcdSnapshots,
  name,
  spec: { clusterRef: ref('db'), ...spec },
  ...(status && { status }),
});

export const baselineObjects: readonly BaselineObject[] = [
  ...baselineClusters,
  member(
    'of the cluster with everything',
    'most-abcde',
    {
      ...template,
      storage,
      bootstrap: true,
      tls: { clientServerSecretRef: ref('s'), clientMTLS: true, peerSecretRef: ref('p'), peerAutoTLS: false },
      restore: { source: { s3 } },
    },
    {
      memberID: 'beef000000000001',
      podName: 'most-abcde',
      podUID: 'u',
      pvcName: 'data-most-abcde',
      isVoter: true,
      replicas: 1,
      selector: 's',
      version: '3.5.20',
      conditions: [condition('Ready', 'True', 'PodReady'), condition('VersionDrifted', 'False', 'VersionMatched')],
    },
  ),
  member('with fields that our rules refuse', 'odd-abcde', {
    ...labels({ 'my team': 'a b' }),
    storage: { size: '0', medium: '' },
    imagePullSecrets: [{}],
  }),

  snapshot(
    'that is complete',
    'done',
    { destination: { s3 } },
    {
      phase: 'Complete',
      artifact: { uri: 's3://b/k/done.db', sizeBytes: 5, checksum: 'sha256:aa' },
      conditions: [condition('Ready', 'True', 'SnapshotStored')],
    },
  ),
  snapshot('into a volume', 'volume', { destination: { pvc: { claimName: 'c', subPath: 'x' } } }),
  snapshot('of no cluster, to where it must not go', 'odd', {
    clusterRef: {},
    destination: { pvc: { claimName: 'c', subPath: '../x' } },
  }),
  snapshot('with a long name', `a.${'b'.repeat(80)}`, { destination: { s3 } }),
  {
    what: 'that is complete',
    resource: etcdDefrags,
    name: 'done',
    spec: {
      clusterRef: ref('db'),
      rule: { quotaUsageAbove: '80%', minReclaim: '64Mi', freeSpaceAbove: 500 },
      ttlSecondsAfterFinished: 60,
    },
    status: {
      phase: 'Complete',
      startedAt: AT,
      completedAt: AT,
      defragmented: 1,
      members: [
        {
          name: 'm',
          role: 'leader',
          outcome: 'Defragmented',
          reason: 'r',
          dbSizeBefore: 2,
          dbSizeAfter: 1,
          reclaimedBytes: 1,
          finishedAt: AT,
        },
      ],
      conditions: [condition('DefragChecked', 'True', 'Complete')],
    },
    edit: { ttlSecondsAfterFinished: 90 },
  },
  {
    what: 'of no cluster, by a rule that cannot be',
    resource: etcdDefrags,
    name: 'odd',
    spec: { clusterRef: {}, rule: { all: true, minReclaim: '0' } },
    edit: { ttlSecondsAfterFinished: 90 },
  },
  {
    what: 'with everything',
    resource: etcdDefragPolicies,
    name: 'nightly',
    spec: {
      clusterRef: ref('db'),
      schedule: '0 3 * * *',
      suspend: false,
      concurrencyPolicy: 'Forbid',
      startingDeadlineSeconds: 60,
      historyLimit: 3,
      rule: { freeSpaceAbove: '1Gi' },
      ttlSecondsAfterFinished: 60,
    },
    status: {
      lastScheduleTime: AT,
      lastSuccessfulTime: AT,
      active: [ref('nightly-1')],
      conditions: [condition('Active', 'True', 'Scheduled')],
    },
    edit: { suspend: true },
  },
  {
    what: 'of no cluster',
    resource: etcdDefragPolicies,
    name: 'b'.repeat(80),
    spec: { clusterRef: {}, schedule: 'x' },
    edit: { suspend: true },
  },
];
