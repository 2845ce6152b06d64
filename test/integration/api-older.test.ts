/** CRDs that are older than the operator: what they do not have, the API server drops without an error. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CustomResourceDefinition } from '../../src/api/crd.ts';
import { crds } from '../../src/api/crds.ts';
import { targetOf } from '../../src/api/defaults.ts';
import type { EtcdCluster } from '../../src/api/etcd-cluster.ts';
import type { EtcdClusterStatus } from '../../src/api/etcd-cluster-status.ts';
import { etcdClusters } from '../../src/api/names.ts';
import type { Resource } from '../../src/kube/object.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { execute, type LatchDropped } from '../../src/runtime/execute.ts';
import type { NamedCall, Plan } from '../../src/runtime/plan.ts';
import { type Api, startApi, written } from '../support/servers/api-server.ts';

const clusters: Resource<EtcdCluster> = etcdClusters;

/** As they were before this field was added. */
const without = (field: string): readonly CustomResourceDefinition[] =>
  JSON.parse(JSON.stringify(crds), (key, value: unknown) => (key === field ? undefined : value));

let api: Api;
let namespace: string;
beforeAll(async () => {
  api = await startApi(without('defragmentation'));
  namespace = await api.namespace();
});
afterAll(async () => {
  await api?.stop();
});

async function latched(
  name: string,
  latch: EtcdClusterStatus,
): Promise<{ dropped: LatchDropped | undefined; calls: readonly string[] }> {
  const spec = { replicas: 3, version: '3.6.16', storage: { size: '1Gi', medium: '' } };
  await api.create(etcdClusters, written(etcdClusters, namespace, name, spec));
  const cluster = await api.admin.get(clusters, { namespace, name });
  if (!cluster) throw new Error('there is no cluster');
  const calls: string[] = [];
  const plan: Plan<EtcdClusterStatus, NamedCall> = {
    rule: 'test',
    message: '',
    latch,
    status: latch,
    steps: [{ do: 'call', call: { name: 'defragment', target: 'db-1' }, retryMs: 0 }],
    events: [],
  };
  const { signal } = new AbortController();
  const options = {
    client: api.admin,
    clock: systemClock,
    signal,
    recorder: { record: () => undefined },
    resources: new Map(),
    onWrite: () => undefined,
    shouldCoalesce: () => false,
    needsVersion: () => false,
    call: async (call: NamedCall) => void calls.push(call.name),
  };
  const { dropped } = await execute(plan, cluster, clusters, options, signal);
  return { dropped, calls };
}

const marker = {
  member: 'db-1',
  defrag: 'nightly',
  uid: 'u',
  attempt: 1,
  startedAt: '2026-01-01T00:00:00Z',
  dbSizeBefore: 5_000_000_000,
};

test('no step runs without the marker that it depends on', async () => {
  const { dropped, calls } = await latched('older', { defragmentation: marker });
  expect([dropped?.fields, calls]).toEqual([['status.defragmentation'], []]);
});

test('steps run when the API server has kept what they depend on, however it is spelled', async () => {
  const observed = targetOf(
    {
      replicas: 3,
      version: '3.6.16',
      storage: { size: '1Gi', medium: '' },
      resources: { requests: { cpu: '0.5', memory: 1_073_741_824 } },
      affinity: { podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } },
      additionalMetadata: { labels: { team: 'a' } },
      options: { quotaBackendBytes: 8_589_934_592 },
    },
    undefined,
  );
  const progressDeadline = '2026-01-01T00:00:00Z';
  const { dropped, calls } = await latched('kept', { observed, progressDeadline, clusterToken: 't', rollout: {} });
  expect([dropped?.message, calls]).toEqual([undefined, ['defragment']]);
});
