/** What is counted. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

export interface Metrics {
  readonly registry: Registry;
  /** Every pass: which rule answered and how it ended. */
  readonly passes: Counter<'controller' | 'rule' | 'result'>;
  readonly passSeconds: Histogram<'controller'>;
  readonly writes: Counter<'controller' | 'kind' | 'verb'>;
  readonly queueSeconds: Histogram<'controller'>;
  readonly apiRequests: Counter<'verb' | 'resource' | 'code'>;
  readonly apiSeconds: Histogram<'verb'>;
  readonly watchRestarts: Counter<'kind' | 'how'>;
  readonly etcdCalls: Counter<'method' | 'outcome'>;
  readonly etcdSeconds: Histogram<'method'>;
  readonly leader: Gauge;
  /** Snapshots that have ended. */
  readonly snapshots: Counter<'phase' | 'reason'>;
  /** Numbers that are looked up when somebody asks. */
  readonly gauges: (sources: GaugeSources) => void;
  readonly etcdGauges: (sessions: () => EtcdSessions) => void;
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

export interface EtcdSessions {
  readonly open: number;
  readonly draining: number;
  readonly unreachable: number;
}

const LATENCY = [0.005, 0.02, 0.1, 0.5, 2, 10, 30];

export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return {
    registry,
    ...passMetrics(registry),
    ...callMetrics(registry),
    leader: new Gauge({
      name: 'etcd_operator_leader',
      help: '1 while this process is the one that acts.',
      registers: [registry],
    }),
    snapshots: new Counter({
      name: 'etcd_operator_snapshots_total',
      help: 'Snapshots that have ended, by their phase, Complete or Failed, and the reason.',
      labelNames: ['phase', 'reason'] as const,
      registers: [registry],
    }),
    gauges: (sources) => registerGauges(registry, sources),
    etcdGauges: (sessions) => registerEtcdGauges(registry, sessions),
    timestamps: (gauge) => registerTimestamps(registry, gauge),
  };
}

const passMetrics = (registry: Registry) => ({
  passes: new Counter({
    name: 'etcd_operator_passes_total',
    help: 'Passes of a controller over one object, by the rule that answered and the result.',
    labelNames: ['controller', 'rule', 'result'] as const,
    registers: [registry],
  }),
  passSeconds: new Histogram({
    name: 'etcd_operator_pass_duration_seconds',
    help: 'How long passes took.',
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
    help: 'How long objects waited for their pass once it was due.',
    labelNames: ['controller'] as const,
    buckets: LATENCY,
    registers: [registry],
  }),
});

const callMetrics = (registry: Registry) => ({
  apiRequests: new Counter({
    name: 'etcd_operator_api_requests_total',
    help: 'Requests to the API server, by verb, resource and HTTP status; status 0 is no answer.',
    labelNames: ['verb', 'resource', 'code'] as const,
    registers: [registry],
  }),
  apiSeconds: new Histogram({
    name: 'etcd_operator_api_request_duration_seconds',
    help: 'How long the API server took to answer; for watches, to begin.',
    labelNames: ['verb'] as const,
    buckets: LATENCY,
    registers: [registry],
  }),
  watchRestarts: new Counter({
    name: 'etcd_operator_watch_restarts_total',
    help: 'Watch connections that followed another one: resumed where it ended, or with a new list.',
    labelNames: ['kind', 'how'] as const,
    registers: [registry],
  }),
  etcdCalls: new Counter({
    name: 'etcd_operator_etcd_calls_total',
    help: 'Calls to etcd members, by method and outcome.',
    labelNames: ['method', 'outcome'] as const,
    registers: [registry],
  }),
  etcdSeconds: new Histogram({
    name: 'etcd_operator_etcd_call_duration_seconds',
    help: 'How long etcd members took to answer.',
    labelNames: ['method'] as const,
    buckets: LATENCY,
    registers: [registry],
  }),
});

function registerGauges(registry: Registry, { controllers, stores }: GaugeSources): void {
  new Gauge({
    name: 'etcd_operator_queue_depth',
    help: 'Objects that wait for their pass.',
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

function registerEtcdGauges(registry: Registry, sessions: () => EtcdSessions): void {
  new Gauge({
    name: 'etcd_operator_etcd_sessions',
    help: 'Connections to etcd members: open ones, and those that end with their last call.',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      const { open, draining } = sessions();
      this.set({ state: 'open' }, open);
      this.set({ state: 'draining' }, draining);
    },
  });
  new Gauge({
    name: 'etcd_operator_etcd_unreachable_members',
    help: 'Members that do not answer, or not as etcd does, and are asked with pauses.',
    registers: [registry],
    collect() {
      this.set(sessions().unreachable);
    },
  });
}

function registerTimestamps<Label extends string>(registry: Registry, { read, ...gauge }: Timestamps<Label>): void {
  new Gauge<string>({
    ...gauge,
    registers: [registry],
    collect() {
      this.reset(); // otherwise objects that are deleted would be reported for ever
      for (const { at, ...labels } of read()) this.set(labels, at / 1000);
    },
  });
}
