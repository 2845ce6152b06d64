/**
 * The network between an operator and the servers: each request and each response arrives at a moment of its own, and the
 * process may die in between, after the request was carried out or before. Troubles respond in place of the servers.
 */
import type { Random } from './random.ts';
import type { Timeline } from './timeline.ts';

export type ApiTrouble = 'conflict' | 'tooManyRequests' | 'serverError' | 'lostRequest' | 'lostAnswer' | 'slow';
export type EtcdTrouble = 'lostRequest' | 'lostAnswer' | 'disconnected';

interface Trouble<Kind> {
  readonly kind: Kind;
  readonly until: number;
  readonly probability: number;
}

export interface Exchange<T, Kind> {
  /** The process that sends it; a dead process receives nothing. */
  readonly asker: { readonly dead: boolean };
  readonly signal: AbortSignal | undefined;
  readonly carryOut: () => Promise<T>;
  /** The result of a request that meets a trouble; by default it is carried out as if there were none. */
  readonly spoiled: (kind: Kind) => T | Error;
  readonly aborted: () => T | Error;
  /** How long the caller waits for a response that never comes. */
  readonly patienceMs: number;
}

/** The network to one kind of server. */
export class Network<Kind extends string> {
  readonly #timeline: Timeline;
  readonly #random: Random;
  readonly #latencyMs: number;
  /** Called whenever a trouble has really hit a request. */
  readonly #hit: (kind: Kind) => void;
  #troubles: Trouble<Kind>[] = [];

  constructor(timeline: Timeline, random: Random, latencyMs: number, hit: (kind: Kind) => void) {
    this.#timeline = timeline;
    this.#random = random;
    this.#latencyMs = latencyMs;
    this.#hit = hit;
  }

  trouble(kind: Kind, ms: number, probability: number): void {
    this.#troubles.push({ kind, until: this.#timeline.now + ms, probability });
  }
  heal(): void {
    this.#troubles = [];
  }

  exchange<T>(exchange: Exchange<T, Kind>): Promise<T> {
    const { asker, signal } = exchange;
    if (asker.dead) return new Promise(() => {});
    return new Promise<T>((resolve, reject) => {
      const answer = (outcome: T | Error): void => {
        signal?.removeEventListener('abort', abort);
        if (asker.dead) return;
        if (outcome instanceof Error) reject(outcome);
        else resolve(outcome);
      };
      const abort = (): void => answer(exchange.aborted());
      if (signal?.aborted) return abort();
      signal?.addEventListener('abort', abort, { once: true });
      this.#timeline.after(this.#latency(), () => this.#arrive(exchange, answer));
    });
  }

  #arrive<T>(exchange: Exchange<T, Kind>, answer: (outcome: T | Error) => void): void {
    const { asker, patienceMs } = exchange;
    if (asker.dead && this.#random.chance(0.5)) return; // it was still in the process's own buffers
    const kind = this.#meets();
    const later = (ms: number, outcome: T | Error): void => {
      this.#timeline.after(ms, () => answer(outcome), asker);
    };
    if (kind !== undefined && kind !== 'lostAnswer' && kind !== 'slow') {
      this.#hit(kind);
      return later(kind === 'lostRequest' ? patienceMs : this.#latency(), exchange.spoiled(kind));
    }
    exchange.carryOut().then(
      (value) => {
        if (kind === undefined) return later(this.#latency(), value);
        this.#hit(kind);
        if (kind === 'slow') return later(this.#random.between(200, 4_000), value);
        return later(patienceMs, exchange.spoiled(kind));
      },
      (error: unknown) => later(this.#latency(), error as Error),
    );
  }

  #latency(): number {
    return this.#random.between(1, this.#latencyMs);
  }

  #meets(): Kind | undefined {
    if (this.#troubles.length === 0) return undefined;
    this.#troubles = this.#troubles.filter(({ until }) => until > this.#timeline.now);
    return this.#troubles.find(({ probability }) => this.#random.chance(probability))?.kind;
  }
}
