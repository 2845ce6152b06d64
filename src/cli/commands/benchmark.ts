/** `kubectl etcd benchmark`: a short, bounded load, with advice. Its keys are deleted afterwards. */
import { randomBytes } from 'node:crypto';
import type { Result } from '../../etcd/errors.ts';
import { KeysClient } from '../../etcd/keys.ts';
import { adviceOf, type Load, type LoadRow, loadRow } from '../assess/benchmark.ts';
import { fsyncIn } from '../assess/metrics.ts';
import { type ActFlags, isAgreed } from '../confirm.ts';
import { type Context, UserError } from '../context.ts';
import { gatherSamples } from '../gather/metrics.ts';
import { readMembers } from '../gather/objects.ts';
import { expected, type Reached } from '../gather/session.ts';
import { onTarget, type Target, type TargetFlags } from '../gather/target.ts';
import { formatOf, structured } from '../output.ts';
import { diagnosisText } from '../render/diagnosis.ts';
import { type Columns, table } from '../render/table.ts';
import { LONG_MS, listMembers } from './members.ts';

export interface BenchmarkFlags extends ActFlags, TargetFlags {
  readonly clients?: string;
  readonly seconds?: string;
  readonly size?: string;
  readonly output?: string;
}

/** Bounds: a benchmark must not fill a database, nor hold up its users. */
const LIMITS = { clients: [1, 100, 10], seconds: [1, 60, 5], size: [1, 65_536, 256] } as const;
const MAX_WRITES = 20_000;
/** Of the quota: above it, a benchmark could be the last write. */
const MAX_USED = 0.8;
const PREFIX = 'kubectl-etcd-benchmark/';

function bounded(name: keyof typeof LIMITS, text: string | undefined): number {
  const [min, max, usual] = LIMITS[name];
  const value = Number(text ?? usual);
  if (!Number.isInteger(value) || value < min || value > max)
    throw new UserError(`--${name} must be between ${min} and ${max}`);
  return value;
}

const COLUMNS: Columns<LoadRow> = [
  { head: 'LOAD', cell: ({ what }) => what },
  { head: 'CLIENTS', cell: ({ clients }) => String(clients), right: true },
  { head: 'CALLS', cell: ({ calls }) => String(calls), right: true },
  { head: 'FAILED', cell: ({ failed }) => (failed === 0 ? '' : { text: String(failed), tone: 'bad' }), right: true },
  { head: 'PER SECOND', cell: ({ perSecond }) => perSecond.toFixed(0), right: true },
  { head: 'P50', cell: ({ p50 }) => `${p50.toFixed(1)} ms`, right: true },
  { head: 'P99', cell: ({ p99 }) => `${p99.toFixed(1)} ms`, right: true },
  { head: 'MAX', cell: ({ max }) => `${max.toFixed(1)} ms`, right: true },
];

/** Calls until the time is over; `call` gets a running number. */
async function load(
  { signal }: Context,
  what: Load['what'],
  clients: number,
  ms: number,
  call: (n: number) => Promise<Result<unknown>>,
): Promise<Load> {
  const started = performance.now();
  const latencies: number[] = [];
  let [n, failed] = [0, 0];
  const worker = async (): Promise<void> => {
    while (!signal.aborted && n < MAX_WRITES && performance.now() - started < ms) {
      const began = performance.now();
      const { ok } = await call(n++);
      if (ok) latencies.push(performance.now() - began);
      else failed++;
    }
  };
  await Promise.all(Array.from({ length: clients }, worker));
  return { what, clients, latencies, failed, elapsedMs: performance.now() - started };
}

export const benchmark = (context: Context, cluster: string, flags: BenchmarkFlags): Promise<number> =>
  onTarget(context, cluster, flags, async (target) => {
    const format = formatOf(flags.output);
    const [clients, seconds, size] = [
      bounded('clients', flags.clients),
      bounded('seconds', flags.seconds),
      bounded('size', flags.size),
    ];
    const from = await writable(target);
    const plan = `write up to ${2 * MAX_WRITES} values of ${size} bytes to ${cluster} for ${3 * seconds} seconds, and delete them; its other clients are served more slowly meanwhile, and the history of the keys stays until the next compaction`;
    if (!(await isAgreed(context, plan, flags))) return 0;
    const members = target.cluster ? await readMembers(context.client, target.cluster) : [];
    const before = await gatherSamples(context, members);
    const rows = (await runLoads(context, target, from, { clients, ms: 1_000 * seconds, size })).map(loadRow);
    const after = await gatherSamples(context, members);
    const fsyncs = [...after].flatMap(([name, sample]) => fsyncIn(sample, before.get(name))?.p99 ?? []);
    const advice = adviceOf(rows, fsyncs.length === 0 ? undefined : Math.max(...fsyncs));
    if (format === 'json' || format === 'yaml') context.print(await structured(format, { loads: rows, advice }));
    else
      context.print(
        [...table(context.paper, COLUMNS, rows), '', diagnosisText(context.paper, 'Advice', advice)].join('\n'),
      );
    return 0;
  });

async function writable(target: Target): Promise<Reached> {
  const { from } = await listMembers(target);
  const { session } = target;
  const { alarms, dbSize, dbSizeQuota } = expected(from, await session.etcd.status(session.ask(from)));
  if (alarms.length > 0) throw new UserError('an alarm is active: see kubectl etcd alarm list');
  if (dbSizeQuota !== undefined && dbSizeQuota > 0 && dbSize > MAX_USED * dbSizeQuota)
    throw new UserError('the database uses more than 80 % of its quota: a benchmark could fill it');
  return from;
}

interface Wanted {
  readonly clients: number;
  readonly ms: number;
  readonly size: number;
}

async function runLoads(context: Context, target: Target, from: Reached, wanted: Wanted): Promise<readonly Load[]> {
  const client = new KeysClient(() => performance.now());
  const own = `${PREFIX}${randomBytes(8).toString('hex')}/`;
  const ask = target.session.ask(from, LONG_MS);
  const { signal: _, ...unstoppable } = ask;
  const value = 'x'.repeat(wanted.size);
  // Few keys, written again and again: the database grows by history only, which compaction removes.
  const write = (n: number) => client.keys.put(ask, `${own}${n % 1_000}`, value);
  try {
    return [
      await load(context, 'one after the other', 1, wanted.ms, write),
      await load(context, 'parallel', wanted.clients, wanted.ms, write),
      await load(context, 'linearizable reads', wanted.clients, wanted.ms, (n) =>
        client.keys.range(ask, { key: `${own}${n % 1_000}` }),
      ),
    ];
  } finally {
    // Also after Ctrl-C.
    const removed = await client.keys.delete(unstoppable, { key: own, prefix: true });
    if (!removed.ok) context.note(`the keys below ${own} could not be deleted: ${removed.error.message}`);
    client.close();
  }
}
