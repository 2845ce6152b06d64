/**
 * Metrics under the names that the Go operator has them (those of controller-runtime and client-go), as far as they mean the same:
 * dashboards and alerts go on. They are computed from those of this operator when they are scraped.
 */
import type { MetricObjectWithValues, MetricValueWithName, Registry } from 'prom-client';
import { LEASE_NAME } from '../api/names.ts';

type Labels = Readonly<Record<string, string | number>>;

interface Sample {
  /** After the name of the metric: that of a histogram has several. */
  readonly suffix: string;
  readonly labels: Labels;
  readonly value: number;
}

interface Renamed {
  readonly from: string;
  readonly to: string;
  readonly help: string;
  /** `undefined`: the sample is left out. Samples that get the same labels are added up. */
  readonly labels: (labels: Labels) => Labels | undefined;
}

/** Its controllers are called after the kinds. */
const controllerOf = ({ controller = '' }: Labels): string =>
  controller === 'volume' ? 'volume' : `etcd${controller}`.replaceAll('-', '');
const queueOf = (labels: Labels): Labels => ({ name: controllerOf(labels), controller: controllerOf(labels) });
const RESULTS: Readonly<Record<string, string>> = { ok: 'success', failed: 'error', stale: 'requeue' };
const METHODS: Readonly<Record<string, string>> = { create: 'POST', update: 'PUT', patch: 'PATCH', delete: 'DELETE' };

const RENAMED: readonly Renamed[] = [
  {
    from: 'etcd_operator_leader',
    to: 'leader_election_master_status',
    help: 'Whether this process holds the Lease.',
    labels: () => ({ name: LEASE_NAME }),
  },
  {
    from: 'etcd_operator_reconcile_total',
    to: 'controller_runtime_reconcile_total',
    help: 'Reconciles by controller and result.',
    labels: (labels) => ({ controller: controllerOf(labels), result: RESULTS[labels['result'] ?? ''] ?? '' }),
  },
  {
    from: 'etcd_operator_reconcile_total',
    to: 'controller_runtime_reconcile_errors_total',
    help: 'Reconciles that failed, by controller.',
    labels: (labels) => (labels['result'] === 'failed' ? { controller: controllerOf(labels) } : undefined),
  },
  {
    from: 'etcd_operator_reconcile_duration_seconds',
    to: 'controller_runtime_reconcile_time_seconds',
    help: 'Duration of reconciles, by controller.',
    labels: (labels) => ({ controller: controllerOf(labels) }),
  },
  {
    from: 'etcd_operator_queue_depth',
    to: 'workqueue_depth',
    help: 'Objects that wait in the work queue.',
    labels: queueOf,
  },
  {
    from: 'etcd_operator_queue_wait_seconds',
    to: 'workqueue_queue_duration_seconds',
    help: 'How long objects waited in the work queue.',
    labels: queueOf,
  },
  {
    from: 'etcd_operator_api_requests_total',
    to: 'rest_client_requests_total',
    help: 'Requests to the API server, by method and HTTP status.',
    labels: ({ verb = '', code = '' }) => ({
      code: String(code) === '0' ? '<error>' : String(code),
      method: METHODS[verb] ?? 'GET',
    }),
  },
];

const text = (labels: Labels): string =>
  Object.entries(labels)
    .map(([name, value]) => `${name}="${value}"`)
    .join(',');

function samplesOf(
  { values }: MetricObjectWithValues<MetricValueWithName<string>>,
  { from, labels: relabel }: Renamed,
): readonly Sample[] {
  const sums = new Map<string, Sample>();
  for (const { metricName = from, labels: given, value } of values) {
    const { le, ...labels } = given as Labels;
    const renamed = relabel(labels);
    if (renamed === undefined) continue;
    const all = { ...renamed, ...(le !== undefined && { le }) };
    const suffix = metricName.slice(from.length);
    const key = `${suffix} ${text(all)}`;
    sums.set(key, { suffix, labels: all, value: value + (sums.get(key)?.value ?? 0) });
  }
  return [...sums.values()];
}

/** In the text format of Prometheus. */
export async function baselineMetrics(registry: Registry): Promise<string> {
  const parts = RENAMED.map(async (renamed) => {
    const found = await registry.getSingleMetric(renamed.from)?.get();
    if (!found) return '';
    const { to, help } = renamed;
    const samples = samplesOf(found, renamed);
    const lines = samples.map(({ suffix, labels, value }) => `${to}${suffix}{${text(labels)}} ${value}`);
    return `# HELP ${to} ${help}\n# TYPE ${to} ${String(found.type)}\n${lines.map((line) => `${line}\n`).join('')}`;
  });
  return (await Promise.all(parts)).join('\n');
}
