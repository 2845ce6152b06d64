/** What is counted. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

export interface Metrics {
  readonly registry: Registry;
  /** Every pass: which rule answered and how it ended. */
  readonly passes: Counter<'controller' | 'rule' | 'result'>;
  readonly passSeconds: Histogram<'controller'>;
  readonly writes: Counter<'controller' | 'kind' | 'verb'>;
  readonly queueDepth: Gauge<'controller'>;
  readonly leader: Gauge;
}

export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  return {
    registry,
    passes: new Counter({
      name: 'etcd_operator_passes_total',
      help: 'Passes of a controller over one object, by the rule that answered and the result.',
      labelNames: ['controller', 'rule', 'result'],
      registers,
    }),
    passSeconds: new Histogram({
      name: 'etcd_operator_pass_duration_seconds',
      help: 'How long passes took.',
      labelNames: ['controller'],
      buckets: [0.005, 0.02, 0.1, 0.5, 2, 10, 30],
      registers,
    }),
    writes: new Counter({
      name: 'etcd_operator_writes_total',
      help: 'Writes to the API server.',
      labelNames: ['controller', 'kind', 'verb'],
      registers,
    }),
    queueDepth: new Gauge({
      name: 'etcd_operator_queue_depth',
      help: 'Objects that wait for their pass.',
      labelNames: ['controller'],
      registers,
    }),
    leader: new Gauge({
      name: 'etcd_operator_leader',
      help: '1 while this process is the one that acts.',
      registers,
    }),
  };
}
