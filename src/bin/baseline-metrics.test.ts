/** The metrics that dashboards of the Go operator use. */
import { expect, test } from 'vitest';
import { createMetrics } from '../runtime/metrics.ts';
import { baselineMetrics } from './baseline-metrics.ts';

const lines = async (change: (metrics: ReturnType<typeof createMetrics>) => void): Promise<readonly string[]> => {
  const metrics = createMetrics();
  change(metrics);
  return (await baselineMetrics(metrics.registry)).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
};

test('reconciles are counted by kind and result, whatever rule decided', async () => {
  const found = await lines(({ reconciles }) => {
    reconciles.inc({ controller: 'cluster', rule: 'steady', result: 'ok' }, 3);
    reconciles.inc({ controller: 'cluster', rule: 'addLearner', result: 'ok' }, 2);
    reconciles.inc({ controller: 'cluster', rule: 'observe', result: 'stale' });
    reconciles.inc({ controller: 'defrag-policy', rule: 'observe', result: 'failed' });
    reconciles.inc({ controller: 'volume', rule: 'steady', result: 'ok' });
  });
  expect(found.filter((line) => line.startsWith('controller_runtime_reconcile'))).toEqual([
    'controller_runtime_reconcile_total{controller="etcdcluster",result="success"} 5',
    'controller_runtime_reconcile_total{controller="etcdcluster",result="requeue"} 1',
    'controller_runtime_reconcile_total{controller="etcddefragpolicy",result="error"} 1',
    'controller_runtime_reconcile_total{controller="volume",result="success"} 1',
    'controller_runtime_reconcile_errors_total{controller="etcddefragpolicy"} 1',
  ]);
});

test('durations and waits are histograms', async () => {
  const found = await lines(({ reconcileSeconds, queueSeconds }) => {
    reconcileSeconds.observe({ controller: 'member' }, 0.01);
    queueSeconds.observe({ controller: 'member' }, 3);
  });
  expect(found).toContain('controller_runtime_reconcile_time_seconds_bucket{controller="etcdmember",le="0.005"} 0');
  expect(found).toContain('controller_runtime_reconcile_time_seconds_bucket{controller="etcdmember",le="0.02"} 1');
  expect(found).toContain('controller_runtime_reconcile_time_seconds_bucket{controller="etcdmember",le="+Inf"} 1');
  expect(found).toContain('workqueue_queue_duration_seconds_sum{name="etcdmember",controller="etcdmember"} 3');
  expect(found).toContain('workqueue_queue_duration_seconds_count{name="etcdmember",controller="etcdmember"} 1');
});

test('the Lease, the work queue and requests', async () => {
  const found = await lines(({ leader, gauges, apiRequests }) => {
    leader.set(1);
    gauges({ controllers: [{ name: 'snapshot', depth: 7 }], stores: [] });
    apiRequests.inc({ verb: 'list', resource: 'pods', code: 200 }, 2);
    apiRequests.inc({ verb: 'watch', resource: 'pods', code: 200 });
    apiRequests.inc({ verb: 'patch', resource: 'pods', code: 409 });
    apiRequests.inc({ verb: 'get', resource: 'pods', code: 0 });
  });
  expect(found).toEqual([
    'leader_election_master_status{name="aa20b3a9.etcd-operator.cozystack.io"} 1',
    'workqueue_depth{name="etcdsnapshot",controller="etcdsnapshot"} 7',
    'rest_client_requests_total{code="200",method="GET"} 3',
    'rest_client_requests_total{code="409",method="PATCH"} 1',
    'rest_client_requests_total{code="<error>",method="GET"} 1',
  ]);
});

test('each metric has its help and its type once', async () => {
  const text = await baselineMetrics(createMetrics().registry);
  const types = text.split('\n').filter((line) => line.startsWith('# TYPE'));
  expect(types).toContain('# TYPE controller_runtime_reconcile_time_seconds histogram');
  expect(new Set(types).size).toBe(types.length);
});
