/** A client that writes all the time, through the cluster's Service, and records what was acknowledged. */
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { type Access, type Ask } from '../../../src/etcd/client.ts';
import { UserClient } from '../etcd-client.ts';
import { becomes, type Tenant } from './journey.ts';

const PREFIX = 'seq/';
const keyOf = (number: number): string => PREFIX + String(number).padStart(8, '0');
const PAUSE_MS = 50;
/** Shorter than a TCP connection takes to give up on a lost machine. */
const TIMEOUT_MS = 3_000;
/** With TLS, this many writes use one connection: each new one is a handshake with the certificates of that moment. */
const WRITES_PER_HANDSHAKE = 5;

export interface Written {
  readonly acknowledged: number;
  /** The longest time without an acknowledged write. */
  readonly longestGapMs: number;
  /** Acknowledged writes that are missing, or older than they were, as sentences. */
  readonly lost: readonly string[];
}

export class Writer {
  readonly #endpoint: string;
  readonly #access: Access | undefined;
  /** The revision of each acknowledged write. */
  readonly #revisions: bigint[] = [];
  readonly #broken: string[] = [];
  readonly #ended: Promise<void>;
  readonly #stopped = new AbortController();
  #lastAck = performance.now();
  #longestGapMs = 0;
  #maxRetries = 0;

  constructor(endpoint: string, access?: Access) {
    this.#endpoint = endpoint;
    this.#access = access;
    this.#ended = this.#run();
  }

  get acknowledged(): number {
    return this.#revisions.length;
  }

  /** Waits until another write is acknowledged: clients are served now. */
  async served(): Promise<void> {
    const before = this.acknowledged;
    const serves = async (): Promise<void> => {
      if (this.acknowledged === before) throw new Error(`no write was acknowledged after number ${before}`);
    };
    await becomes('a write to be acknowledged', serves, PAUSE_MS);
  }

  /** The most retries of one write since the last call. */
  maxRetries(): number {
    const most = this.#maxRetries;
    this.#maxRetries = 0;
    return most;
  }

  async #run(): Promise<void> {
    let etcd = new UserClient(() => performance.now());
    for (let number = 0, tries = 0; !this.#stopped.signal.aborted; ) {
      const answer = await etcd.put(this.#ask(), keyOf(number), String(number));
      if (answer.ok) {
        this.#acknowledge(answer.value);
        number++;
        tries = 0;
      } else this.#maxRetries = Math.max(this.#maxRetries, ++tries);
      if (!answer.ok || (this.#access && number % WRITES_PER_HANDSHAKE === 0)) {
        etcd.close(); // a new connection may reach another member
        etcd = new UserClient(() => performance.now());
      }
      await sleep(PAUSE_MS);
    }
    etcd.close();
  }

  #acknowledge(revision: bigint): void {
    const last = this.#revisions.at(-1) ?? 0n;
    if (revision <= last)
      this.#broken.push(`etcd returned revision ${revision} after ${last}: this is another history`);
    this.#revisions.push(revision);
    const now = performance.now();
    this.#longestGapMs = Math.max(this.#longestGapMs, now - this.#lastAck);
    this.#lastAck = now;
  }

  readonly #ask = (): Ask => ({
    endpoint: this.#endpoint,
    timeoutMs: TIMEOUT_MS,
    ...(this.#access && { access: this.#access }),
  });

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#ended;
  }

  /** Stops, reads everything back, and compares it with what was acknowledged. */
  async end(): Promise<Written> {
    await this.served();
    await this.stop();
    const kept = await this.#read();
    const lost = this.#revisions.flatMap((revision, number) => {
      const found = kept.get(keyOf(number));
      if (found === undefined) return [`write ${number} is lost`];
      return found < revision ? [`write ${number} is as of revision ${found}, and ${revision} was acknowledged`] : [];
    });
    const { acknowledged } = this;
    return { acknowledged, longestGapMs: Math.round(this.#longestGapMs), lost: [...this.#broken, ...lost] };
  }

  async #read(): Promise<ReadonlyMap<string, bigint>> {
    const etcd = new UserClient(() => performance.now());
    try {
      return await becomes('all keys', async () => {
        const answer = await etcd.kv.range(
          { ...this.#ask(), timeoutMs: 30_000 },
          { key: PREFIX, prefix: true, keysOnly: true },
        );
        if (!answer.ok) throw new Error(answer.error.message);
        return new Map(answer.value.kvs.map((kv) => [new TextDecoder().decode(kv.key), kv.modRevision]));
      });
    } finally {
      etcd.close();
    }
  }
}

/** The address of a cluster's Service, which this machine can reach. */
export const serviceIp = async (tenant: Tenant, name: string): Promise<string> =>
  String((await tenant.get('service', `${name}-client`)).spec['clusterIP']);

/** Starts to write, and returns when the first write is acknowledged. */
export async function aWriter(tenant: Tenant, name: string, access?: Access): Promise<Writer> {
  const writer = new Writer(`${access ? 'https' : 'http'}://${await serviceIp(tenant, name)}:2379`, access);
  onTestFinished(() => writer.stop());
  await writer.served();
  return writer;
}
