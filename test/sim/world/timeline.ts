/**
 * Pending events in the order of virtual time. Nothing here reads a real clock: no time passes between two events.
 * The events of a frozen process wait until it resumes.
 */
import type { Clock } from '../../../src/runtime/clock.ts';
import type { Random } from './random.ts';

interface Happening {
  at: number;
  order: number;
  readonly owner: object | undefined;
  readonly what: () => void;
  canceled: boolean;
}

/** The wall clock at the start of a world, unless it starts from a recorded state. */
export const EPOCH = Date.parse('2026-01-01T00:00:00Z');

export class Timeline {
  /** Milliseconds since the start of the world. */
  now = 0;
  /** How far the wall clock of the machine that runs operators is ahead. */
  operatorsAheadMs = 0;
  /** How many events have happened. */
  steps = 0;
  readonly #heap: Happening[] = [];
  readonly #stopped = new Map<object, Happening[]>();
  #order = 0;
  readonly #epoch: number;

  constructor(epoch: number) {
    this.#epoch = epoch;
  }

  get date(): number {
    return this.#epoch + this.now;
  }
  get time(): string {
    return new Date(this.date).toISOString().replace(/\.\d+Z$/, 'Z');
  }

  after(ms: number, what: () => void, owner?: object): () => void {
    const happening = { at: this.now + Math.max(0, ms), order: this.#order++, owner, what, canceled: false };
    this.#push(happening);
    return () => {
      happening.canceled = true;
    };
  }

  /** Runs the next event; false when there is none, or none until then. */
  step(until = Number.POSITIVE_INFINITY): boolean {
    for (let next = this.#heap[0]; next && next.at <= until; next = this.#heap[0]) {
      this.#pop();
      if (next.canceled) continue;
      const waiting = next.owner && this.#stopped.get(next.owner);
      if (waiting) {
        waiting.push(next);
        continue;
      }
      this.now = Math.max(this.now, next.at);
      this.steps++;
      next.what();
      return true;
    }
    return false;
  }

  stop(owner: object): void {
    if (!this.#stopped.has(owner)) this.#stopped.set(owner, []);
  }
  isStopped(owner: object): boolean {
    return this.#stopped.has(owner);
  }
  resume(owner: object): void {
    const waiting = this.#stopped.get(owner) ?? [];
    this.#stopped.delete(owner);
    for (const happening of waiting) this.#push(Object.assign(happening, { at: this.now, order: this.#order++ }));
  }

  clockOf(owner: object, random: Random): Clock {
    return {
      now: () => this.date + this.operatorsAheadMs,
      monotonic: () => this.now,
      random: () => random.next(),
      after: (ms, call) => this.after(ms, call, owner),
    };
  }

  #push(happening: Happening): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(happening);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent];
      if (!above || !isBefore(happening, above)) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = happening;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (!last || heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      const [left, right] = [heap[child], heap[child + 1]];
      if (!left) break;
      if (right && isBefore(right, left)) child++;
      const least = heap[child];
      if (!least || !isBefore(least, last)) break;
      heap[at] = least;
      at = child;
    }
    heap[at] = last;
  }
}

const isBefore = (a: Happening, b: Happening): boolean => a.at < b.at || (a.at === b.at && a.order < b.order);
