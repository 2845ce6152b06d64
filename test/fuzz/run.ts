/** Runs the rounds of one seed against one cluster with a client that writes all the time. */
import { copyFileSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { KubeObject } from '../../src/kube/object.ts';
import { logsDir } from '../../tools/paths.ts';
import { ABOUT_DATA } from '../support/about-data.ts';
import { eventually, pause } from '../support/servers/processes.ts';
import type { World } from '../support/servers/world.ts';
import { Client } from '../sweep/client.ts';
import { Invariants } from '../sweep/invariants.ts';
import type { Ledger } from '../sweep/ledger.ts';
import { isTold, quietInTheEnd } from '../sweep/quiet.ts';
import { Rig } from '../sweep/rig.ts';
import { ACTIONS, type Corrected, patchSpec, type Round } from './actions.ts';
import { missing } from './converged.ts';
import { planRound } from './plan.ts';
import { Random } from './random.ts';
import { goodSpec, IMAGE, type Shape, shapeOf, specOf } from './shapes.ts';

/** Members that one cluster has in its life. */
const MAX_NAMES = 400;
/** From a valid spec to a cluster that is as it says. */
const CONVERGENCE_MS = 60_000;
/** Afterwards it is stuck, and not only slow. */
const STUCK_MS = 180_000;
/** A health check of the operator that ended just before may be outdated by what was done to members. */
const DISTURBED_MS = 15_000;

export interface Limits {
  readonly rounds?: number;
  readonly minutes?: number;
  /** Whether PVCs are deleted while their Pods run. */
  readonly pvcs: boolean;
  readonly say: (line: string) => void;
}

export interface Report {
  readonly seed: number;
  readonly rounds: number;
  readonly acknowledged: number;
  /** The longest time from a valid spec to convergence. */
  readonly slowestMs: number;
  /** Empty when everything held. */
  readonly wrong: readonly string[];
}

export class SeedRun {
  readonly #rig: Rig;
  readonly #seed: number;
  readonly #shape: Shape;
  readonly #limits: Limits;
  readonly #started = performance.now();
  readonly #lines: string[] = [];
  readonly #corrected: Corrected = new Map();
  #round: Round = newRound();
  #slowestMs = 0;

  private constructor(rig: Rig, seed: number, limits: Limits) {
    this.#rig = rig;
    this.#seed = seed;
    this.#shape = shapeOf(seed);
    this.#limits = limits;
    rig.world.kubelet.refuse(rig.namespace, { images: [IMAGE] });
  }

  static async run(world: World, ledger: Ledger, seed: number, limits: Limits): Promise<Report> {
    const rig = await Rig.build(world, ledger, MAX_NAMES);
    try {
      return await new SeedRun(rig, seed, limits).#all();
    } finally {
      await rig.stop();
    }
  }

  async #all(): Promise<Report> {
    const rig = this.#rig;
    if (this.#shape.secured) await rig.setPassword('first');
    await rig.start();
    const restarting = this.#restartOperator();
    await rig.createCluster(specOf(this.#shape));
    const invariants = new Invariants(rig, (what, object) => this.#isExcused(what, object));
    const client = new Client(rig);
    const wrong: string[] = [];
    let rounds = 0;
    try {
      this.#say(`seed ${this.#seed}: ${this.#shape.name}`);
      await this.#converges();
      for (; wrong.length === 0 && this.#hasTime(rounds); rounds++) {
        await this.#disturb(rounds + 1);
        await this.#converges();
        wrong.push(...(await quietInTheEnd(rig, isTold)), ...(await this.#checkData(invariants, client)));
      }
    } catch (error) {
      wrong.push(error instanceof Error ? error.message : String(error), ...invariants.violated.map(aboutData));
    }
    restarting.abort();
    const { acknowledged } = await client.end().catch(() => ({ acknowledged: 0 }));
    await invariants.end();
    for (const what of wrong) this.#say(`WRONG: ${what}`);
    const logs = wrong.length > 0 ? [this.#keepLogs()] : [];
    return { seed: this.#seed, rounds, acknowledged, slowestMs: this.#slowestMs, wrong: [...wrong, ...logs] };
  }

  #hasTime(rounds: number): boolean {
    const { rounds: most = Number.POSITIVE_INFINITY, minutes = Number.POSITIVE_INFINITY } = this.#limits;
    return rounds < most && performance.now() - this.#started < minutes * 60_000;
  }

  async #disturb(number: number): Promise<void> {
    this.#round = newRound();
    this.#say(`round ${number}`);
    for (const { action, afterMs, seed } of planRound(this.#seed, number, this.#shape, this.#limits)) {
      await pause(afterMs);
      const own = { random: new Random(seed), round: this.#round, corrected: this.#corrected };
      this.#say(`  ${action}: ${await ACTIONS[action]({ rig: this.#rig, shape: this.#shape, ...own })}`);
    }
    const edited = await this.#rig.world.admin.get(...this.#rig.clusterRef);
    const spec = goodSpec(this.#shape, new Random(this.#seed, number, 1), edited?.spec.storage?.size ?? '1Gi');
    await patchSpec({ rig: this.#rig }, [{ op: 'replace', path: '/spec', value: spec }]);
    this.#say(
      `  good spec: ${spec.replicas} replicas, ${JSON.stringify({ ...spec, tls: undefined, auth: undefined })}`,
    );
  }

  async #converges(): Promise<void> {
    const started = performance.now();
    const { generation } = (await this.#rig.world.admin.get(...this.#rig.clusterRef))?.metadata ?? {};
    const done = (): true | undefined => {
      const isSeen = this.#rig.cluster?.metadata.generation === generation;
      return isSeen && missing(this.#rig).length === 0 ? true : undefined;
    };
    await eventually('convergence', done, { timeoutMs: STUCK_MS, everyMs: 100 }).catch(() => {
      throw new Error(
        `it did not converge in ${STUCK_MS / 1000} s: ${missing(this.#rig).join('; ')}\n${this.#status()}`,
      );
    });
    const tookMs = performance.now() - started;
    this.#slowestMs = Math.max(this.#slowestMs, tookMs);
    this.#say(`  converged after ${(tookMs / 1000).toFixed(1)} s`);
    if (tookMs > CONVERGENCE_MS) throw new Error(`it converged too late, after ${Math.round(tookMs / 1000)} s`);
  }

  async #checkData(invariants: Invariants, client: Client): Promise<readonly string[]> {
    await invariants.atRest();
    const lost = await client.lost();
    const writes = lost.length > 0 ? [`I8: ${lost.length} acknowledged writes are lost: ${lost[0]}, …`] : [];
    return [...invariants.violated, ...writes].map(aboutData);
  }

  /** A user deleted it, or stopped the whole cluster, or the operator could not know better a moment ago. */
  #isExcused(what: 'deletion' | 'call', object: KubeObject | undefined): boolean {
    const { deleted, paused, disturbedAt } = this.#round;
    const recently = performance.now() - disturbedAt < DISTURBED_MS;
    if (what === 'call') return recently;
    return deleted.has(object?.metadata.uid ?? '') || paused || (object?.kind !== 'PersistentVolumeClaim' && recently);
  }

  /** As a Deployment does: an operator that exits by itself is replaced. */
  #restartOperator(): AbortController {
    const over = new AbortController();
    void (async () => {
      for (; !over.signal.aborted; await pause(500)) {
        const code = await Promise.race([this.#rig.operator.ended, pause(0)]);
        if (typeof code !== 'number') continue; // it runs, or a signal ended it
        this.#say(`  the operator exited by itself with ${code}; it is started again`);
        await this.#rig.start();
      }
    })();
    return over;
  }

  #say(text: string): void {
    const line = `${((performance.now() - this.#started) / 1000).toFixed(1).padStart(6)} s ${text}`;
    this.#lines.push(line);
    this.#limits.say(`[${this.#seed}] ${line}`);
  }

  #status(): string {
    const { cluster, members } = this.#rig;
    const own = members.map(({ metadata, status }) => ({
      name: metadata.name,
      deleted: metadata.deletionTimestamp,
      conditions: status?.conditions,
    }));
    return JSON.stringify({ status: cluster?.status, members: own }, undefined, 1);
  }

  /** The actions, the status, and the logs of all operators and members that ever ran. */
  #keepLogs(): string {
    const folder = join(logsDir, 'fuzz', `seed-${this.#seed}`);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'actions.log'), this.#lines.join('\n'));
    writeFileSync(join(folder, 'status.json'), this.#status());
    writeFileSync(join(folder, 'operator.log'), this.#rig.log());
    const from = dirname(this.#rig.operator.logFile);
    const names = this.#rig.names();
    for (const file of readdirSync(from))
      if (names.some((name) => file.startsWith(`${name}-`))) copyFileSync(join(from, file), join(folder, file));
    return `actions, status and the logs of operator and members are in ${folder}\n${this.#lines.join('\n')}`;
  }
}

const newRound = (): Round => ({ paused: false, disturbedAt: Number.NEGATIVE_INFINITY, deleted: new Set() });
const aboutData = (violated: string): string => `${ABOUT_DATA} ${violated}`;
