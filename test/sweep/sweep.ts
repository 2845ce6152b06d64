/** Runs many plans in parallel in one world, and summarizes the results. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { EtcdClusterSpec } from '../../src/api/etcd-cluster.ts';
import { logsDir } from '../../tools/paths.ts';
import { startWorld, type World } from '../support/servers/world.ts';
import { Ledger } from './ledger.ts';
import { planCalled } from './plans.ts';
import { Rig } from './rig.ts';
import { type Reference, recordReference, runPlan, type Verdict } from './run.ts';
import { Turns } from './turns.ts';
import type { Workload } from './workloads.ts';

/** A rig waits most of the time: for elections, for etcd's own five seconds, for an idle operator. */
const RIGS_PER_CORE = 3;

export class Sweep {
  readonly #world: World;
  readonly #ledger: Ledger;
  readonly #references = new Map<string, Promise<Reference>>();
  readonly #verdicts = new Map<string, Promise<Verdict>>();
  readonly #turns = new Turns(Number(process.env['RIGS'] ?? RIGS_PER_CORE * availableParallelism()));

  private constructor(world: World, ledger: Ledger) {
    this.#world = world;
    this.#ledger = ledger;
  }

  static async start(): Promise<Sweep> {
    const world = await startWorld();
    return new Sweep(world, await new Ledger(world.admin).synced());
  }

  async stop(): Promise<void> {
    this.#ledger.stop();
    await this.#world.stop();
  }

  reference(workload: Workload): Promise<Reference> {
    const known = this.#references.get(workload.name);
    const made = known ?? this.#turns.take(() => recordReference(this.#world, this.#ledger, workload));
    this.#references.set(workload.name, made);
    return made;
  }

  /** Runs them with as much parallelism as the machine allows. */
  async run(names: readonly string[]): Promise<Outcome> {
    const workloads = new Set(names.map((name) => planCalled(name).workload));
    await Promise.all([...workloads].map((workload) => this.reference(workload)));
    const verdicts = await Promise.all(names.map((name) => this.#once(name)));
    // A plan that was slow in parallel with others is judged by how long it takes alone.
    const alone = async (v: Verdict): Promise<Verdict> => (isLate(v) ? this.#turns.alone(() => this.#one(v.plan)) : v);
    return new Outcome(await Promise.all(verdicts.map(alone)));
  }

  /** A cluster of any name and spec, and an operator that finds it. */
  async tryCluster(name: string, spec: Partial<EtcdClusterSpec>): Promise<Rig> {
    const rig = await Rig.build(this.#world, this.#ledger);
    try {
      await rig.createCluster(spec, name);
      await rig.start();
      return rig;
    } catch (error) {
      await rig.stop();
      throw error;
    }
  }

  #once(name: string): Promise<Verdict> {
    const known = this.#verdicts.get(name);
    const made = known ?? this.#turns.take(() => this.#one(name), planCalled(name).weight);
    this.#verdicts.set(name, made);
    return made;
  }

  async #one(name: string): Promise<Verdict> {
    const plan = planCalled(name);
    const verdict = await runPlan(this.#world, this.#ledger, plan, await this.reference(plan.workload));
    if (verdict.wrong.length > 0) process.stderr.write(`${new Outcome([verdict]).failures.join('')}\n`); // report it now: the whole sweep takes long
    return verdict;
  }
}

const isLate = ({ wrong, recoveredMs = 0, allowedMs }: Verdict): boolean =>
  wrong.length === 0 && recoveredMs > allowedMs;

export class Outcome {
  readonly verdicts: readonly Verdict[];

  constructor(verdicts: readonly Verdict[]) {
    this.verdicts = verdicts;
  }

  /** One paragraph for each plan that failed, with the command that repeats it. */
  get failures(): readonly string[] {
    return this.verdicts.flatMap((verdict) => {
      const late = isLate(verdict) ? [`it recovered too late, after ${Math.round(verdict.recoveredMs ?? 0)} ms`] : [];
      const wrong = [...verdict.wrong, ...late];
      return wrong.length === 0
        ? []
        : [`PLAN=${verdict.plan} ./dev test sweep\n  ${wrong.join('\n  ')}${keep(verdict)}`];
    });
  }

  /** Plans whose fault never happened prove nothing. */
  get missed(): readonly string[] {
    return this.verdicts.filter(({ hit }) => !hit).map(({ plan }) => plan);
  }

  get summary(): string {
    const times = this.verdicts.flatMap(({ recoveredMs }) => recoveredMs ?? []).sort((a, b) => a - b);
    const at = (share: number): string =>
      `${((times[Math.floor((times.length - 1) * share)] ?? 0) / 1000).toFixed(1)} s`;
    const recovery = times.length === 0 ? '' : `; recovery ${at(0.5)} at the median, ${at(1)} at most`;
    return `${this.verdicts.length} plans, ${this.missed.length} whose fault did not happen${recovery}`;
  }
}

function keep({ plan, log }: Verdict): string {
  const folder = join(logsDir, 'sweep');
  const file = join(folder, `${plan.replace('/', '.')}.log`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, log);
  return `\n  the logs of operator and members are in ${file}`;
}
