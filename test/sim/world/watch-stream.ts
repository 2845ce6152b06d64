/** One watch connection of an operator: events arrive late, in order, one or several at a time; it may break. */
import type { KubeObject } from '../../../src/kube/object.ts';
import type { WireEvent } from '../../../src/kube/watch-protocol.ts';

type Ending = 'ended' | 'gone' | Error;

export class WatchStream<T extends KubeObject> implements AsyncIterable<WireEvent<T>> {
  readonly #arrived: WireEvent<T>[] = [];
  #pending: WireEvent<T>[] = [];
  #ending: Ending | undefined;
  #wake: (() => void) | undefined;
  /** Schedules a moment at which more events may arrive. */
  readonly #schedule: () => void;
  /** Called when changes were merged into a later one of the same object, and when the stream has ended. */
  readonly #listener: { readonly merged: () => void; readonly over: () => void };

  constructor(
    source: AsyncIterable<WireEvent<T>>,
    schedule: () => void,
    listener: { readonly merged: () => void; readonly over: () => void },
  ) {
    this.#schedule = schedule;
    this.#listener = listener;
    void this.#pump(source);
  }

  async #pump(source: AsyncIterable<WireEvent<T>>): Promise<void> {
    try {
      for await (const event of source) {
        this.#pending.push(event);
        if (this.#pending.length === 1) this.#schedule();
      }
      this.end('ended');
    } catch (error) {
      this.end(error as Error);
    }
  }

  /** Delivers some of the pending events; true when there are more. */
  deliver(count: number, merge: boolean): boolean {
    if (merge) this.#merge();
    // The initial list arrives as a whole: a cache cannot use half of one.
    const listed = this.#pending.findIndex((e) => e.type === 'BOOKMARK') + 1;
    this.#arrived.push(...this.#pending.splice(0, Math.max(count, listed)));
    this.#resume();
    return this.#pending.length > 0;
  }

  /** The connection breaks, and pending events are lost with it. */
  end(how: Ending): void {
    if (this.#ending !== undefined) return;
    this.#ending = how;
    this.#pending = [];
    this.#listener.over();
    this.#resume();
  }

  /** A later state of the same object replaces an earlier one. */
  #merge(): void {
    const last = new Map<string, number>();
    for (const [i, { type, object }] of this.#pending.entries())
      if (type === 'MODIFIED' || type === 'ADDED') last.set(object.metadata.uid ?? '', i);
    const kept = this.#pending.filter(
      ({ type, object }, i) => type !== 'MODIFIED' || last.get(object.metadata.uid ?? '') === i,
    );
    if (kept.length < this.#pending.length) this.#listener.merged();
    this.#pending = kept;
  }

  #resume(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<WireEvent<T>> {
    for (;;) {
      const event = this.#arrived.shift();
      if (event) {
        yield event;
        continue;
      }
      if (this.#ending === 'gone') yield { type: 'ERROR', object: { code: 410, message: 'too old resource version' } };
      if (this.#ending instanceof Error) throw this.#ending;
      if (this.#ending !== undefined) return;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
