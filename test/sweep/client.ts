/** A client of the cluster: writes all the time, but between `stop` and `start`, records what was acknowledged, and reads it back. */
import type { Running } from '../support/kubelet/pod-run.ts';
import { eventually, pause } from '../support/servers/processes.ts';
import type { Rig } from './rig.ts';

const EVERY_MS = 100;
const PREFIX = 'written-';

export class Client {
  readonly #rig: Rig;
  readonly #acknowledged: string[] = [];
  #written = 0;
  #stopped = false;
  #done: Promise<void> = Promise.resolve();

  constructor(rig: Rig) {
    this.#rig = rig;
    this.start();
  }

  start(): void {
    this.#stopped = false;
    this.#done = this.#write();
  }

  async #write(): Promise<void> {
    for (; !this.#stopped; this.#written++) {
      const asked = this.#ready()[this.#written % Math.max(1, this.#ready().length)];
      const key = `${PREFIX}${this.#written}`;
      const ask = asked && this.#rig.asClient(asked, 1_000);
      const answer = ask && (await this.#rig.world.etcd.put(ask, key, key));
      if (answer?.ok) this.#acknowledged.push(key);
      await pause(EVERY_MS);
    }
  }

  #ready(): readonly Running[] {
    return this.#rig.world.kubelet.running(this.#rig.namespace).filter((run) => run.ready);
  }

  stop(): Promise<void> {
    this.#stopped = true;
    return this.#done;
  }

  /** How many writes were acknowledged, and which of them are lost. A cluster without members cannot be read. */
  async end(): Promise<{ readonly acknowledged: number; readonly lost: readonly string[] }> {
    await this.stop();
    const lost = this.#ready().length === 0 ? [] : await this.lost();
    return { acknowledged: this.#acknowledged.length, lost };
  }

  /** The acknowledged writes that cannot be read back. */
  async lost(): Promise<readonly string[]> {
    const acknowledged = [...this.#acknowledged];
    const found = new Set(await eventually('a read of everything that was written', () => this.#read()));
    return acknowledged.filter((key) => !found.has(key));
  }

  async #read(): Promise<readonly string[] | undefined> {
    const [asked] = this.#ready();
    const ask = asked && this.#rig.asClient(asked, 2_000);
    if (!ask) return undefined;
    const answer = await this.#rig.world.etcd.kv.range(ask, { key: PREFIX, prefix: true });
    if (!answer.ok) return undefined;
    return answer.value.kvs.flatMap(({ key, value }) => (same(key, value) ? new TextDecoder().decode(key) : []));
  }
}

/** Each key has itself as its value. */
const same = (key: Uint8Array, value: Uint8Array): boolean => Buffer.compare(key, value) === 0;
