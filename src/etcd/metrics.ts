/** Metrics of calls to etcd members. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { CallReport } from './call.ts';
import type { SessionCounts } from './pool.ts';

export function etcdMetrics(registry: Registry, buckets: readonly number[]) {
  const registers = [registry];
  const calls = new Counter({
    name: 'etcd_operator_etcd_calls_total',
    help: 'Calls to etcd members, by method and outcome.',
    labelNames: ['method', 'outcome'] as const,
    registers,
  });
  const seconds = new Histogram({
    name: 'etcd_operator_etcd_call_duration_seconds',
    help: 'How long etcd members took to respond.',
    labelNames: ['method'] as const,
    buckets: [...buckets],
    registers,
  });
  return {
    onCall: ({ method, outcome, ms }: CallReport) => {
      calls.inc({ method, outcome });
      seconds.observe({ method }, ms / 1000);
    },
    /** Counts the sessions at each scrape. */
    watch: (sessions: () => SessionCounts) => sessionGauges(registry, sessions),
  };
}

function sessionGauges(registry: Registry, sessions: () => SessionCounts): void {
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
    help: 'Members that do not respond, or not as etcd does, and are asked with pauses.',
    registers: [registry],
    collect() {
      this.set(sessions().unreachable);
    },
  });
}
