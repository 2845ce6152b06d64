/** How an edit of each field of the spec reaches a running cluster. A new field has to have a row here. */
import { describe, expect, test } from 'vitest';
import { aCluster, aMember } from '../../../../test/support/builders/builders.ts';
import { targetOf } from '../../../api/defaults.ts';
import { type EtcdClusterSpec, EtcdClusterSpecSchema } from '../../../api/etcd-cluster.ts';
import { specRules } from '../../../api/etcd-cluster-rules.ts';
import { StorageSchema } from '../../../api/storage.ts';
import type { Template } from '../../../api/template.ts';
import { stampOf, unstampedFields } from '../../../domain/pod-template.ts';
import { wantedPod } from '../../member/wanted-pod.ts';

/**
 * Restart: another Pod, one member after the other. In place: objects are patched, or the operator itself reads it. New members:
 * running ones keep it, and the condition Progressing reports that. Fixed: refused by the API server.
 */
type Way = 'restart' | 'in place' | 'new members' | 'fixed';
type Row = readonly [Way, object];

const ROWS: Readonly<Record<string, Row>> = {
  replicas: ['in place', { replicas: 5 }],
  version: ['restart', { version: '3.6.17' }],
  'storage.size': ['new members', { storage: { size: '2Gi', medium: '' } }],
  'storage.medium': ['fixed', {}],
  'storage.storageClassName': ['fixed', {}],
  progressDeadlineSeconds: ['in place', { progressDeadlineSeconds: 60 }],
  deletionPolicy: ['in place', { deletionPolicy: 'Retain' }],
  tls: ['fixed', {}],
  auth: ['fixed', {}],
  bootstrap: ['fixed', {}],
  resources: ['restart', { resources: { requests: { cpu: '1' } } }],
  affinity: ['restart', { affinity: { podAffinity: {} } }],
  topologySpreadConstraints: [
    'restart',
    { topologySpreadConstraints: [{ maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule' }] },
  ],
  'additionalMetadata.labels': ['in place', { additionalMetadata: { labels: { team: 'a' } } }],
  'additionalMetadata.annotations': ['in place', { additionalMetadata: { annotations: { note: 'b' } } }],
  'options.quotaBackendBytes': ['restart', { options: { quotaBackendBytes: 1_000_000 } }],
  'options.autoCompactionMode': ['restart', { options: { autoCompactionMode: 'revision' } }],
  'options.autoCompactionRetention': ['restart', { options: { autoCompactionRetention: '30m' } }],
  'options.snapshotCount': ['restart', { options: { snapshotCount: 5_000 } }],
  'options.heartbeatIntervalMilliseconds': ['restart', { options: { heartbeatIntervalMilliseconds: 150 } }],
  'options.electionTimeoutMilliseconds': ['restart', { options: { electionTimeoutMilliseconds: 2_000 } }],
  'options.maxRequestBytes': ['restart', { options: { maxRequestBytes: 2_000_000 } }],
  'options.grpcKeepalive.minTimeSeconds': ['restart', { options: { grpcKeepalive: { minTimeSeconds: 9 } } }],
  'options.grpcKeepalive.intervalSeconds': ['restart', { options: { grpcKeepalive: { intervalSeconds: 9 } } }],
  'options.grpcKeepalive.timeoutSeconds': ['restart', { options: { grpcKeepalive: { timeoutSeconds: 9 } } }],
  'options.logLevel': ['restart', { options: { logLevel: 'warn' } }],
  'options.corruptionCheck.initial': ['restart', { options: { corruptionCheck: { initial: false } } }],
  'options.corruptionCheck.compactHash': ['restart', { options: { corruptionCheck: { compactHash: false } } }],
  'options.corruptionCheck.intervalMinutes': ['restart', { options: { corruptionCheck: { intervalMinutes: 60 } } }],
  imagePullSecrets: ['restart', { imagePullSecrets: [{ name: 'registry' }] }],
  'image.repository': ['restart', { image: { repository: 'mirror.local/etcd' } }],
  'image.digest': ['restart', { image: { digest: `sha256:${'0'.repeat(64)}` } }],
  extraArgs: ['restart', { extraArgs: ['--enable-pprof'] }],
  spread: ['restart', { spread: 'Required' }],
  tolerations: ['restart', { tolerations: [{ key: 'a' }] }],
  nodeSelector: ['restart', { nodeSelector: { disk: 'ssd' } }],
  priorityClassName: ['restart', { priorityClassName: 'high' }],
  terminationGracePeriodSeconds: ['restart', { terminationGracePeriodSeconds: 60 }],
  'podSecurityContext.runAsUser': ['restart', { podSecurityContext: { runAsUser: 1_000 } }],
  'podSecurityContext.runAsGroup': ['restart', { podSecurityContext: { runAsGroup: 1_000 } }],
  'podSecurityContext.fsGroup': ['restart', { podSecurityContext: { fsGroup: 1_000 } }],
  'podSecurityContext.fsGroupChangePolicy': ['restart', { podSecurityContext: { fsGroupChangePolicy: 'Always' } }],
  'podSecurityContext.supplementalGroups': ['restart', { podSecurityContext: { supplementalGroups: [1_000] } }],
  'podSecurityContext.seLinuxOptions.level': ['restart', { podSecurityContext: { seLinuxOptions: { level: 's0' } } }],
  suspend: ['in place', { suspend: true }],
  updateStrategy: ['in place', { updateStrategy: { type: 'OnDelete' } }],
  'podDisruptionBudget.enabled': ['in place', { podDisruptionBudget: { enabled: false } }],
  'networkPolicy.clients': ['in place', { networkPolicy: { clients: [] } }],
  'networkPolicy.monitoring': ['in place', { networkPolicy: { monitoring: [] } }],
  'maintenance.autoRemedy.enabled': ['in place', { maintenance: { autoRemedy: { enabled: true } } }],
  'maintenance.autoRemedy.keepRevisions': ['in place', { maintenance: { autoRemedy: { keepRevisions: 100 } } }],
  'volumeQuarantine.enabled': ['in place', { volumeQuarantine: { enabled: false } }],
};

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
}
/** Objects that are copied, or fixed, as a whole. */
const WHOLE = ['tls', 'auth', 'bootstrap', 'resources', 'affinity', 'updateStrategy'];
const pathsOf = ({ properties }: Schema, path = ''): readonly string[] =>
  properties && !WHOLE.includes(path)
    ? Object.entries(properties).flatMap(([field, inner]) => pathsOf(inner, [path, field].filter(Boolean).join('.')))
    : [path];

test('every field of the schema has a row', () => {
  expect(Object.keys(ROWS).toSorted()).toEqual([...pathsOf(EtcdClusterSpecSchema as Schema)].toSorted());
});

const START = { replicas: 3, version: '3.6.16', storage: { size: '1Gi', medium: '' } } as const;

/** As the cluster controller copies the template, with its defaults, and as the member controller builds the Pod. */
function built(spec: EtcdClusterSpec) {
  const cluster = aCluster({ spec });
  const { replicas: _, ...template } = targetOf(spec, { defaults: '1' });
  const member = aMember({ spec: template satisfies Template });
  return { member, pod: wantedPod({ member, cluster, hasCompany: true, images: { repository: 'etcd', allowed: [] } }) };
}

const of = (way: Way) =>
  Object.entries(ROWS).flatMap(([path, [is, edit]]) => (is === way ? [[path, edit] as const] : []));

test.each(of('restart'))('%s reaches a member with another Pod, and the stamp tells which field', (path, edit) => {
  const [before, after] = [built(START), built({ ...START, ...edit })];
  expect(unstampedFields(stampOf(before.member), after.member)).toEqual([path.split('.')[0]]);
  expect(after.pod.spec).not.toEqual(before.pod.spec);
});

test.each([...of('in place'), ...of('new members')])('%s changes no Pod, and restarts no member', (path, edit) => {
  const [before, after] = [built(START), built({ ...START, ...edit })];
  // The default quota of new members follows from the size; running ones keep theirs.
  const fields = unstampedFields(stampOf(before.member), after.member);
  expect(fields).toEqual(path === 'storage.size' ? ['options'] : []);
  if (path !== 'storage.size') expect(after.pod.spec).toEqual(before.pod.spec);
});

describe('fixed', () => {
  const texts = JSON.stringify([specRules, StorageSchema]);
  test.each(of('fixed'))('%s cannot be edited', (path) => {
    expect(texts).toMatch(new RegExp(`${path} cannot (change|be added or removed)`));
  });
});
