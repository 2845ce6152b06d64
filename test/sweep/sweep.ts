/** Runs many plans on a few clusters side by side, and summarizes the results. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { EtcdClusterSpec } from '../../src/api/etcd-cluster.ts';
import { logsDir } from '../../tools/paths.ts';
import { startWorld, type World } from '../support/servers/world.ts';
import { Ledger } from './ledger.ts';
import { Life, type Reference, type Slot, type Verdict } from './life.ts';
import { planCalled } from './plans.ts';
import { Pool } from './pool.ts';
import { Rig } from './rig.ts';
import { Turns } from './turns.ts';
import type { Workload } from './workloads.ts';

/** A rig waits most of the time: for elections, for etcd's own five seconds. */
const RIGS_PER_CORE = 3;
/** Clusters for each turn: at rest, and while it waits for nothing to happen, a cluster needs no turn. */
const LIVES_PER_TURN = 1.5;

const REPORTED_EVERY = 50;

const anytime: Slot = (work) => work();

export class Sweep {
  readonly #world: World;
  readonly #ledger: Ledger;
  readonly #references = new Map<string, Promise<Reference>>();
  readonly #pool = new Pool();
  readonly #atOnce = Number(process.env['RIGS'] ?? RIGS_PER_CORE * availableParallelism());
  readonly #turns = new Turns(this.#atOnce);
  readonly #slot: Slot = (work, weight) => this.#turns.take(work, weight);
  #lives = 0;
  #done = 0;

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
    const made = known ?? this.#inOneLife(this.#slot, (life) => life.record(workload));
    this.#references.set(workload.name, made);
    return made;
  }

  /** Runs them with as much parallelism as the machine allows, each on the next cluster in the state that it begins in. */
  async run(names: readonly string[]): Promise<Outcome> {
    await this.#record(names);
    const waiting = names.map((name) => this.#pool.verdict(name));
    while (this.#lives < Math.min(LIVES_PER_TURN * this.#atOnce, this.#pool.size)) void this.#live();
    const verdicts = await Promise.all(waiting);
    // A plan that was slow in parallel with others is judged by how long it takes alone.
    const alone = async (v: Verdict): Promise<Verdict> =>
      isLate(v) ? this.#turns.alone(() => this.#inOneLife(anytime, (life) => this.#play(life, v.plan))) : v;
    return new Outcome(await Promise.all(verdicts.map(alone)));
  }

  /** Runs them one after the other on one cluster, up to the first that fails. */
  async replay(names: readonly string[]): Promise<Outcome> {
    await this.#record(names);
    return this.#inOneLife(this.#slot, async (life) => {
      const verdicts: Verdict[] = [];
      for (const name of names) if (life.state !== 'spent') verdicts.push(await this.#play(life, name));
      return new Outcome(verdicts);
    });
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

  async #record(names: readonly string[]): Promise<void> {
    const workloads = new Set(names.map((name) => planCalled(name).workload));
    await Promise.all([...workloads].map((workload) => this.reference(workload)));
  }

  async #inOneLife<T>(slot: Slot, work: (life: Life) => Promise<T>): Promise<T> {
    const life = await Life.start(this.#world, this.#ledger, slot);
    try {
      return await work(life);
    } finally {
      await life.stop();
    }
  }

  /** Plays plans, on one cluster after the other, as long as there are any. */
  async #live(): Promise<void> {
    this.#lives++;
    try {
      while (this.#pool.size > 0) await this.#inOneLife(this.#slot, (life) => this.#playMany(life));
    } catch (error) {
      this.#pool.fail(error);
    } finally {
      this.#lives--;
    }
  }

  async #playMany(life: Life): Promise<void> {
    const played: Workload[] = [];
    for (let plan = this.#pool.take(life.state, played); plan; plan = this.#pool.take(life.state, played)) {
      this.#pool.judge(await this.#play(life, plan.name));
      if (++this.#done % REPORTED_EVERY === 0)
        process.stderr.write(`${this.#done} plans are done, ${this.#pool.size} wait\n`);
      played.push(plan.workload);
      if (life.state === 'none') played.length = 0;
    }
  }

  async #play(life: Life, name: string): Promise<Verdict> {
    const plan = planCalled(name);
    const verdict = await life.play(plan, await this.reference(plan.workload));
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
        : [
            `PLAN=${[...verdict.before, verdict.plan].join('+')} ./dev test sweep\n  ${wrong.join('\n  ')}${keep(verdict)}`,
          ];
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
