/** Runs seeds in parallel in one world. */
import { PRIORITY } from '../support/builders/spec-arbitrary.ts';
import { startWorld, type World } from '../support/servers/world.ts';
import { Ledger } from '../sweep/ledger.ts';
import { Turns } from '../sweep/turns.ts';
import { type Limits, type Report, SeedRun } from './run.ts';

/** Each has real time limits: few of them share the cores. */
const RIGS = 2;

export class Fuzz {
  readonly #world: World;
  readonly #ledger: Ledger;
  readonly #turns = new Turns(Number(process.env['RIGS'] ?? RIGS));

  private constructor(world: World, ledger: Ledger) {
    this.#world = world;
    this.#ledger = ledger;
  }

  static async start(): Promise<Fuzz> {
    const world = await startWorld();
    const body = { metadata: { name: PRIORITY }, value: 1000, globalDefault: false };
    await world.admin.transport.json('/apis/scheduling.k8s.io/v1/priorityclasses', { method: 'POST', body });
    return new Fuzz(world, await new Ledger(world.admin).synced());
  }

  async stop(): Promise<void> {
    this.#ledger.stop();
    await this.#world.stop();
  }

  /** What went wrong, with the command that repeats it; empty when everything held. */
  async run(seed: number, limits: Limits): Promise<string> {
    const report = await this.#turns.take(() => SeedRun.run(this.#world, this.#ledger, seed, limits));
    limits.say(summaryOf(report));
    if (report.wrong.length === 0) return '';
    const again = `SEED=${seed} ROUNDS=${report.rounds + 1}${limits.pvcs ? '' : ' PVCS=0'} ./dev test fuzz`;
    return `${again}\n  ${report.wrong.join('\n  ')}`;
  }
}

const summaryOf = ({ seed, rounds, acknowledged, slowestMs, wrong }: Report): string =>
  `seed ${seed}: ${rounds} rounds, ${acknowledged} acknowledged writes, converged after ${(slowestMs / 1000).toFixed(1)} s at most${wrong.length > 0 ? ', FAILED' : ''}`;
