/**
 * One cluster with its operator, which plays one plan after the other: each begins in the state in which the one before has ended,
 * and no state is prepared twice. Without a fault it records the calls and the end state that the plans are compared with.
 */
import { persistentVolumeClaims } from '../../src/kube/resources.ts';
import { ABOUT_DATA } from '../support/about-data.ts';
import { eventually, pause } from '../support/servers/processes.ts';
import type { World } from '../support/servers/world.ts';
import { difference, isSame } from './canonical.ts';
import { Client } from './client.ts';
import { Invariants } from './invariants.ts';
import type { Counts, Ledger } from './ledger.ts';
import type { Plan, Recorded } from './plans.ts';
import { isTold, quietInTheEnd } from './quiet.ts';
import { Rig } from './rig.ts';
import { bring, type State } from './states.ts';
import type { Workload } from './workloads.ts';

export interface Reference extends Recorded {
  readonly state: readonly string[];
  readonly counts: Counts;
  readonly tookMs: number;
}

export interface Verdict {
  readonly plan: string;
  /** What the same cluster has lived through before, the oldest first. */
  readonly before: readonly string[];
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

/** Waits for its turn on the machine. */
export type Slot = <T>(work: () => Promise<T>, weight?: number) => Promise<T>;

const AFTERWARDS_MS = 300;
/** A call that hangs times out after 30 seconds. */
const PATIENCE_MS = 90_000;
const RECOVERY_MS = 10_000;

export class Life {
  readonly #rig: Rig;
  readonly #slot: Slot;
  readonly #played: string[] = [];
  #client: Client | undefined;
  state: State = 'none';

  private constructor(rig: Rig, slot: Slot) {
    this.#rig = rig;
    this.#slot = slot;
  }

  static start(world: World, ledger: Ledger, slot: Slot): Promise<Life> {
    return slot(async () => {
      const rig = await Rig.build(world, ledger);
      await rig.start();
      return new Life(rig, slot);
    });
  }

  stop(): Promise<void> {
    return this.#rig.stop();
  }

  async record(workload: Workload): Promise<Reference> {
    const rig = this.#rig;
    return this.#slot(async () => {
      const stage = await this.#prepare(workload);
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
        counts: rig.ledger.counts(rig.namespace),
        tookMs,
      };
    });
  }

  /** Afterwards it is in the state that the workload ends in, unless something is wrong. */
  async play(plan: Plan, reference: Reference): Promise<Verdict> {
    const rig = this.#rig;
    const wrong: string[] = [];
    const allowedMs = RECOVERY_MS + (plan.workload.lasts ? reference.tookMs : 0);
    let hit = (): boolean => false;
    let recoveredMs: number | undefined;
    let log = '';
    let stage: Stage | undefined;
    try {
      stage = await this.#slot(() => this.#prepare(plan.workload));
      await this.#slot(async () => {
        const successor = Promise.withResolvers<number>();
        hit = await plan.arrange(rig, async () => {
          await rig.kill();
          rig.start().then(() => successor.resolve(performance.now()), successor.reject);
        });
        await plan.workload.act(rig);
        const first = await this.#reach(plan, reference, hit);
        await pause(AFTERWARDS_MS + plan.lagMs); // the very last write can be the one that kills
        const held = plan.kills && hit() ? await successor.promise : undefined;
        const last = await this.#reach(plan, reference, hit);
        if (held !== undefined) recoveredMs = (first > held ? first : last) - held;
      }, plan.weight);
      // Waiting needs no turn.
      wrong.push(
        ...(await quietInTheEnd(rig, isTold)),
        ...(await stage.end()),
        ...compareCounts(reference.counts, rig.ledger.counts(rig.namespace)),
      );
      await rig.lift();
      this.state = (await this.#isLeft(plan.workload.to)) ? 'spent' : plan.workload.to;
    } catch (error) {
      wrong.push(error instanceof Error ? error.message : String(error), ...((await stage?.abandon()) ?? []));
    }
    if (wrong.length > 0) this.state = 'spent';
    // A sweep has a thousand verdicts, and the logs of all of them do not fit into memory.
    if (wrong.length > 0 || (recoveredMs ?? 0) > allowedMs) log = rig.log() + rig.membersLog();
    const before = [...this.#played];
    this.#played.push(plan.name);
    return { plan: plan.name, before, wrong, hit: hit(), recoveredMs, allowedMs, log };
  }

  async #prepare(workload: Workload): Promise<Stage> {
    const rig = this.#rig;
    const [from] = workload.from;
    if (this.state === 'none' || from === 'none') this.#client = undefined; // another cluster, without the data of the last
    if (!workload.from.includes(this.state)) await bring(rig, this.state, from);
    rig.ledger.turn(rig.namespace);
    const invariants = new Invariants(rig, (what) => what === 'deletion' && workload.stopping === true);
    const client = this.#client ?? new Client(rig);
    if (this.#client) client.start();
    this.#client = client;
    const aboutData = (violated: readonly string[]) => violated.map((each) => `${ABOUT_DATA} ${each}`);
    return {
      end: async () => {
        await invariants.atRest();
        const { lost } = await client.end();
        const writes = lost.length > 0 ? [`I8: ${lost.length} acknowledged writes are lost: ${lost[0]}, …`] : [];
        return aboutData([...(await invariants.end()), ...writes]);
      },
      abandon: async () => {
        await client.stop();
        return aboutData(await invariants.end());
      },
    };
  }

  /** Resolves, with the time, when the cluster is in the state that it would have without the fault. */
  async #reach(plan: Plan, reference: Reference, hit: () => boolean): Promise<number> {
    const rig = this.#rig;
    const same = (): true | undefined =>
      plan.workload.done(rig) && isSame(reference.state, rig.state()) ? true : undefined;
    const deadline = PATIENCE_MS + reference.tookMs + 20 * plan.lagMs;
    await eventually(`the end of ${plan.name}`, same, { timeoutMs: deadline, everyMs: 100 }).catch(() => {
      const seen = `${hit() ? '' : 'the fault did not happen; '}the differences:`;
      throw new Error(`it did not reach the expected end state: ${seen}\n${difference(reference.state, rig.state())}`);
    });
    return performance.now();
  }

  /** PVCs that an operator leaves for a day, because it did not see the deletion of their cluster. */
  async #isLeft(state: State): Promise<boolean> {
    if (state !== 'none') return false;
    return (await this.#rig.world.list(persistentVolumeClaims, this.#rig.namespace)).length > 0;
  }
}

interface Stage {
  /** What did not hold. */
  end(): Promise<readonly string[]>;
  /** What did not hold so far, of a plan that failed. */
  abandon(): Promise<readonly string[]>;
}

function compareCounts(expected: Counts, seen: Counts): readonly string[] {
  const names = [...new Set([...Object.keys(expected), ...Object.keys(seen)])].sort();
  const different = names.filter((name) => (expected[name] ?? 0) !== (seen[name] ?? 0));
  return different.map((name) => `${name}: ${seen[name] ?? 0}, without the fault ${expected[name] ?? 0}`);
}
