/** Runs workloads: without a fault, to record calls and end state; and with one fault, to check for the same end state. */
import { ABOUT_DATA } from '../support/about-data.ts';
import { eventually, pause } from '../support/servers/processes.ts';
import type { World } from '../support/servers/world.ts';
import { difference, isSame } from './canonical.ts';
import { Client } from './client.ts';
import { Invariants } from './invariants.ts';
import type { Counts, Ledger } from './ledger.ts';
import type { Plan, Recorded } from './plans.ts';
import { isTold, quiet, quietInTheEnd } from './quiet.ts';
import { Rig } from './rig.ts';
import type { Workload } from './workloads.ts';

export interface Reference extends Recorded {
  readonly state: readonly string[];
  readonly counts: Counts;
  readonly tookMs: number;
}

export interface Verdict {
  readonly plan: string;
  /** Empty when everything held. */
  readonly wrong: readonly string[];
  /** Whether the fault happened at all. */
  readonly hit: boolean;
  /** From the Lease of the replacement to the end state. */
  readonly recoveredMs: number | undefined;
  /** How long that may take. */
  readonly allowedMs: number;
  /** The logs of the operators and the members, if something is wrong. */
  readonly log: string;
}

const PREPARED_MS = 1_000;
const AFTERWARDS_MS = 300;
/** A call that hangs times out after 30 seconds. */
const PATIENCE_MS = 90_000;
const RECOVERY_MS = 10_000;

export async function recordReference(world: World, ledger: Ledger, workload: Workload): Promise<Reference> {
  const rig = await Rig.build(world, ledger);
  try {
    const stage = await prepare(rig, workload);
    const [writes, rpcs] = [rig.writes().length, rig.changes().length];
    const started = performance.now();
    await workload.act(rig);
    await eventually(`${workload.name} without faults`, () => workload.done(rig) || undefined, {
      timeoutMs: PATIENCE_MS,
      seen: () => [rig.cluster?.status, rig.log().slice(-4_000)],
    });
    const tookMs = performance.now() - started;
    const wrong = [...(await quietInTheEnd(rig, () => true)), ...(await stage.end())];
    if (wrong.length > 0) throw new Error(`${workload.name} failed without any fault: ${wrong.join('; ')}`);
    return {
      writes: rig
        .writes()
        .slice(writes)
        .map(({ verb, resource }) => `${verb} ${resource}`),
      rpcs: rig
        .changes()
        .slice(rpcs)
        .map(({ method }) => method),
      state: rig.state(),
      counts: ledger.counts(rig.namespace),
      tookMs,
    };
  } finally {
    await rig.stop();
  }
}

export async function runPlan(world: World, ledger: Ledger, plan: Plan, reference: Reference): Promise<Verdict> {
  const rig = await Rig.build(world, ledger);
  const wrong: string[] = [];
  const allowedMs = RECOVERY_MS + (plan.workload.lasts ? reference.tookMs : 0);
  let hit = (): boolean => false;
  let recoveredMs: number | undefined;
  let log = '';
  try {
    const stage = await prepare(rig, plan.workload);
    const successor = Promise.withResolvers<number>();
    hit = await plan.arrange(rig, async () => {
      await rig.kill();
      rig.start().then(() => successor.resolve(performance.now()), successor.reject);
    });
    await plan.workload.act(rig);
    const first = await reach(rig, plan, reference, hit);
    await pause(AFTERWARDS_MS + plan.lagMs); // the very last write can be the one that kills
    const held = plan.kills && hit() ? await successor.promise : undefined;
    const last = await reach(rig, plan, reference, hit);
    if (held !== undefined) recoveredMs = (first > held ? first : last) - held;
    wrong.push(
      ...(await quietInTheEnd(rig, isTold)),
      ...(await stage.end()),
      ...compareCounts(reference.counts, ledger.counts(rig.namespace)),
    );
  } catch (error) {
    wrong.push(error instanceof Error ? error.message : String(error));
  } finally {
    // A sweep has a thousand verdicts, and the logs of all of them do not fit into memory.
    if (wrong.length > 0 || (recoveredMs ?? 0) > allowedMs) log = rig.log() + rig.membersLog();
    await rig.stop();
  }
  return { plan: plan.name, wrong, hit: hit(), recoveredMs, allowedMs, log };
}

interface Stage {
  /** What did not hold. */
  end(): Promise<readonly string[]>;
}

async function prepare(rig: Rig, workload: Workload): Promise<Stage> {
  await rig.start();
  await workload.prepare?.(rig);
  if (workload.prepare) await quiet(rig, PREPARED_MS);
  rig.ledger.turn(rig.namespace);
  const invariants = new Invariants(rig, (what) => what === 'deletion' && workload.stopping === true);
  const client = new Client(rig);
  return {
    end: async () => {
      await invariants.atRest();
      const { lost } = await client.end();
      const writes = lost.length > 0 ? [`I8: ${lost.length} acknowledged writes are lost: ${lost[0]}, …`] : [];
      return [...(await invariants.end()), ...writes].map((violated) => `${ABOUT_DATA} ${violated}`);
    },
  };
}

/** Resolves, with the time, when the cluster is in the state that it would have without the fault. */
async function reach(rig: Rig, plan: Plan, reference: Reference, hit: () => boolean): Promise<number> {
  const same = (): true | undefined =>
    plan.workload.done(rig) && isSame(reference.state, rig.state()) ? true : undefined;
  const deadline = PATIENCE_MS + reference.tookMs + 20 * plan.lagMs;
  await eventually(`the end of ${plan.name}`, same, { timeoutMs: deadline, everyMs: 100 }).catch(() => {
    const seen = `${hit() ? '' : 'the fault did not happen; '}the differences:`;
    throw new Error(`it did not reach the expected end state: ${seen}\n${difference(reference.state, rig.state())}`);
  });
  return performance.now();
}

function compareCounts(expected: Counts, seen: Counts): readonly string[] {
  const names = [...new Set([...Object.keys(expected), ...Object.keys(seen)])].sort();
  const different = names.filter((name) => (expected[name] ?? 0) !== (seen[name] ?? 0));
  return different.map((name) => `${name}: ${seen[name] ?? 0}, without the fault ${expected[name] ?? 0}`);
}
