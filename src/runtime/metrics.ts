/** Metrics of reconciles and API server requests. Other metrics are declared where they are measured, on the same registry. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

export interface Metrics {
  readonly registry: Registry;
  /** Every reconcile, by the rule that decided and the result. */
  readonly reconciles: Counter<'controller' | 'rule' | 'result'>;
  readonly reconcileSeconds: Histogram<'controller'>;
  readonly writes: Counter<'controller' | 'kind' | 'verb'>;
  readonly queueSeconds: Histogram<'controller'>;
  readonly apiRequests: Counter<'verb' | 'resource' | 'code'>;
  readonly apiSeconds: Histogram<'verb'>;
  readonly watchRestarts: Counter<'kind' | 'how'>;
  readonly leader: Gauge;
  /** Gauges that are read when the metrics are scraped. */
  readonly gauges: (sources: GaugeSources) => void;
  readonly timestamps: <Label extends string>(gauge: Timestamps<Label>) => void;
}

export interface GaugeSources {
  readonly controllers: readonly { readonly name: string; readonly depth: number }[];
  readonly stores: readonly { readonly resource: { readonly kind: string }; readonly size: number }[];
}

export interface Timestamps<Label extends string> {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly Label[];
  /** In milliseconds since 1970. */
  readonly read: () => Iterable<Readonly<Record<Label, string>> & { readonly at: number }>;
}

/** Buckets of every duration, in seconds. */
export const LATENCY = [0.005, 0.02, 0.1, 0.5, 2, 10, 30];

export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return {
    registry,
    ...reconcileMetrics(registry),
    ...callMetrics(registry),
    leader: new Gauge({
      name: 'etcd_operator_leader',
      help: '1 while this process is the leader.',
      registers: [registry],
    }),
    gauges: (sources) => registerGauges(registry, sources),
    timestamps: (gauge) => registerTimestamps(registry, gauge),
  };
}

const reconcileMetrics = (registry: Registry) => ({
  reconciles: new Counter({
    name: 'etcd_operator_reconcile_total',
    help: 'Reconciles of one object, by controller, by the rule that decided and by result.',
    labelNames: ['controller', 'rule', 'result'] as const,
    registers: [registry],
  }),
  reconcileSeconds: new Histogram({
    name: 'etcd_operator_reconcile_duration_seconds',
    help: 'Duration of reconciles.',
    labelNames: ['controller'] as const,
    buckets: LATENCY,
    registers: [registry],
  }),
  writes: new Counter({
    name: 'etcd_operator_writes_total',
    help: 'Writes to the API server.',
    labelNames: ['controller', 'kind', 'verb'] as const,
    registers: [registry],
  }),
  queueSeconds: new Histogram({
    name: 'etcd_operator_queue_wait_seconds',
    help: 'How long objects waited in the work queue once their reconcile was due.',
    labelNames: ['controller'] as const,
    buckets: LATENCY,
    registers: [registry],
  }),
});

const callMetrics = (registry: Registry) => ({
  apiRequests: new Counter({
    name: 'etcd_operator_api_requests_total',
    help: 'Requests to the API server, by verb, resource and HTTP status; status 0 is no response.',
    labelNames: ['verb', 'resource', 'code'] as const,
    registers: [registry],
  }),
  apiSeconds: new Histogram({
    name: 'etcd_operator_api_request_duration_seconds',
    help: 'How long the API server took to respond; for watches, until the response started.',
    labelNames: ['verb'] as const,
    buckets: LATENCY,
    registers: [registry],
  }),
  watchRestarts: new Counter({
    name: 'etcd_operator_watch_restarts_total',
    help: 'Watches that were restarted, by kind and by how: resumed at the last resourceVersion, or with a new list.',
    labelNames: ['kind', 'how'] as const,
    registers: [registry],
  }),
});

function registerGauges(registry: Registry, { controllers, stores }: GaugeSources): void {
  new Gauge({
    name: 'etcd_operator_queue_depth',
    help: 'Objects that wait in the work queue.',
    labelNames: ['controller'],
    registers: [registry],
    collect() {
      for (const { name, depth } of controllers) this.set({ controller: name }, depth);
    },
  });
  new Gauge({
    name: 'etcd_operator_cache_objects',
    help: 'Objects in the caches.',
    labelNames: ['kind'],
    registers: [registry],
    collect() {
      for (const { resource, size } of stores) this.set({ kind: resource.kind }, size);
    },
  });
}

function registerTimestamps<Label extends string>(registry: Registry, { read, ...gauge }: Timestamps<Label>): void {
  new Gauge<string>({
    ...gauge,
    registers: [registry],
    collect() {
      this.reset(); // otherwise deleted objects would be reported for ever
      for (const { at, ...labels } of read()) this.set(labels, at / 1000);
    },
  });
}
