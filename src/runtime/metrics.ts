/** Metrics of reconciles and API server requests. Other metrics are declared where they are measured, on the same registry. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

export interface GaugeSources {
  readonly controllers: readonly { readonly name: string; readonly depth: number }[];
  readonly stores: readonly {
    readonly resource: { readonly kind: string };
    readonly size: number;
    readonly missing: boolean;
  }[];
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

export type Metrics = ReturnType<typeof createMetrics>;

export function createMetrics() {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  const counter = <Label extends string>(name: string, help: string, labelNames: readonly Label[]) =>
    new Counter({ name, help, labelNames, registers });
  const histogram = <Label extends string>(name: string, help: string, labelNames: readonly Label[]) =>
    new Histogram({ name, help, labelNames, buckets: LATENCY, registers });
  return {
    registry,
    reconciles: counter(
      'etcd_operator_reconcile_total',
      'Reconciles of one object, by controller, by the rule that decided and by result.',
      ['controller', 'rule', 'result'],
    ),
    observedPlans: counter(
      'etcd_operator_observe_only_plans_total',
      'With --observe-only: plans that would have changed something, by controller and rule. A plan that stays the same counts once.',
      ['controller', 'rule'],
    ),
    reconcileSeconds: histogram('etcd_operator_reconcile_duration_seconds', 'Duration of reconciles.', ['controller']),
    writes: counter('etcd_operator_writes_total', 'Writes to the API server.', ['controller', 'kind', 'verb']),
    queueSeconds: histogram(
      'etcd_operator_queue_wait_seconds',
      'How long objects waited in the work queue once their reconcile was due.',
      ['controller'],
    ),
    apiRequests: counter(
      'etcd_operator_api_requests_total',
      'Requests to the API server, by verb, resource and HTTP status; status 0 is no response.',
      ['verb', 'resource', 'code'],
    ),
    apiSeconds: histogram(
      'etcd_operator_api_request_duration_seconds',
      'How long the API server took to respond; for watches, until the response started.',
      ['verb'],
    ),
    watchRestarts: counter(
      'etcd_operator_watch_restarts_total',
      'Watches that were restarted, by kind and by how: resumed at the last resourceVersion, or with a new list.',
      ['kind', 'how'],
    ),
    eventsDropped: counter(
      'etcd_operator_events_dropped_total',
      'Kubernetes Events that were not written: too many were waiting (queue), or the API server did not accept them (write).',
      ['why'],
    ),
    leader: new Gauge({ name: 'etcd_operator_leader', help: '1 while this process is the leader.', registers }),
    /** Gauges that are read when the metrics are scraped. */
    gauges: (sources: GaugeSources) => registerGauges(registry, sources),
    timestamps: <Label extends string>(gauge: Timestamps<Label>) => registerTimestamps(registry, gauge),
  };
}

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
  new Gauge({
    name: 'etcd_operator_crd_missing',
    help: '1 while the CustomResourceDefinition of a kind is not installed.',
    labelNames: ['kind'],
    registers: [registry],
    collect() {
      for (const { resource, missing } of stores) this.set({ kind: resource.kind }, missing ? 1 : 0);
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
