/** All changes in order, and the watches on them. Watches of a kind can be held back; the history can be compacted. */
import type { Selection } from '../../../src/kube/client.ts';
import { ApiError } from '../../../src/kube/errors.ts';
import type { KubeObject, Resource } from '../../../src/kube/object.ts';
import type { WireEvent } from '../../../src/kube/watch-protocol.ts';
import type { Json } from './kube-json.ts';
import { labelsMatch } from './kube-selector.ts';

type ChangeType = 'ADDED' | 'MODIFIED' | 'DELETED';

interface Change {
  readonly version: number;
  readonly plural: string;
  readonly type: ChangeType;
  readonly object: KubeObject;
  /** The previous state, for watches whose selector it stops or starts to match. */
  readonly before: KubeObject | undefined;
}

export interface WatchFrom {
  readonly initial: readonly KubeObject[] | undefined;
  /** Whether the watch gets bookmarks while nothing that it selects changes. */
  readonly bookmarks: boolean;
  /** The resourceVersion after which it starts. */
  readonly since: string;
  readonly signal: AbortSignal;
}

/** Versions start just below 100, so that comparing them as text fails. */
const FIRST_VERSION = 98;

/** A long-lived world must not grow without limit; no watch is that far behind. */
const MAX_CHANGES = 10_000;

export class ChangeLog {
  #changes: Change[] = [];
  #version = FIRST_VERSION;
  #forgotten = 0;
  readonly #lag = new Map<string, number>();
  readonly #waiting = new Set<() => void>();

  get version(): number {
    return this.#version;
  }

  /** The object with the resourceVersion of the next change. */
  stamped(object: Json): Json {
    return { ...object, metadata: { ...(object['metadata'] as Json), resourceVersion: String(this.#version + 1) } };
  }

  append({ plural }: Resource, type: ChangeType, object: Json, before: Json | undefined): void {
    this.#version++;
    const change = { object: object as unknown as KubeObject, before: before as unknown as KubeObject | undefined };
    this.#changes.push({ version: this.#version, plural, type, ...change });
    if (this.#changes.length > 2 * MAX_CHANGES) this.#forgetBefore(this.#version - MAX_CHANGES);
    this.wake();
  }

  /** Watches of a kind receive nothing that happens from now on, until `letGo`. */
  holdBack(resource: Resource): void {
    if (!this.#lag.has(resource.plural)) this.#lag.set(resource.plural, this.#version);
  }
  /** Delivers some of the held changes, in order; without a number, all of them. */
  letGo(resource: Resource, changes = Number.POSITIVE_INFINITY): void {
    const until = this.#lag.get(resource.plural);
    if (until === undefined) return;
    const next = this.#changes.filter((c) => c.plural === resource.plural && c.version > until).slice(0, changes);
    if (changes === Number.POSITIVE_INFINITY) this.#lag.delete(resource.plural);
    else this.#lag.set(resource.plural, next.at(-1)?.version ?? until);
    this.wake();
  }

  /** Compacts the history: a watch that resumes from before gets 410 Gone. */
  compact(): void {
    this.#forgetBefore(this.#version);
  }

  #forgetBefore(version: number): void {
    this.#forgotten = version;
    this.#changes = this.#changes.slice(this.#after(version));
  }

  /** Sends a bookmark to every watch that wants them, as a server does every minute. */
  sendBookmarks(): void {
    this.#marks++;
    this.wake();
  }
  #marks = 0;

  /** Ends every watch that is open now, as a server does after its timeout. */
  endWatches(): void {
    this.#epoch++;
    this.wake();
  }
  #epoch = 0;

  wake(): void {
    const waiting = Array.from(this.#waiting);
    for (const resume of waiting) resume();
  }

  async *watch<T extends KubeObject>(
    resource: Resource<T>,
    selection: Selection,
    from: WatchFrom,
  ): AsyncGenerator<WireEvent<T>> {
    const epoch = this.#epoch;
    let [at, marks] = [Number(from.since), this.#marks];
    if (from.initial) {
      for (const object of from.initial) yield { type: 'ADDED', object: object as unknown as T };
      yield bookmark<T>(resource, at, true);
    }
    for (;;) {
      if (from.signal.aborted) throw new ApiError('WATCH', 0, { reason: 'Aborted', message: 'aborted' });
      if (this.#epoch !== epoch) return;
      if (at < this.#forgotten) {
        yield { type: 'ERROR', object: { code: 410, message: `too old resource version: ${at} (${this.#forgotten})` } };
        return;
      }
      const limit = this.#lag.get(resource.plural) ?? this.#version;
      const change = this.#changes[this.#after(at)];
      if (!change || change.version > limit) {
        const due = from.bookmarks && marks !== this.#marks;
        marks = this.#marks;
        if (due) yield bookmark<T>(resource, Math.max(at, limit), false);
        else await this.#more(from.signal);
        continue;
      }
      at = change.version;
      const event = change.plural === resource.plural ? eventFor<T>(change, selection) : undefined;
      if (event) yield event;
    }
  }

  /** The index of the first change after a version: a binary search, so that a long history does not slow watches down. */
  #after(version: number): number {
    let [low, high] = [0, this.#changes.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#changes[middle]?.version ?? 0) > version) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  #more(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        this.#waiting.delete(done);
        signal.removeEventListener('abort', done);
        resolve();
      };
      this.#waiting.add(done);
      signal.addEventListener('abort', done, { once: true });
    });
  }
}

function bookmark<T extends KubeObject>(resource: Resource<T>, version: number, initial: boolean): WireEvent<T> {
  const annotations = initial ? { annotations: { 'k8s.io/initial-events-end': 'true' } } : {};
  const object = { kind: resource.kind, metadata: { resourceVersion: String(version), ...annotations } };
  return { type: 'BOOKMARK', object: object as unknown as T };
}

/** An object that starts to match a selector is ADDED for the watch, and one that stops to match is DELETED. */
function eventFor<T extends KubeObject>(
  { type, object, before }: Change,
  { namespace, selector }: Selection,
): WireEvent<T> | undefined {
  if (namespace !== undefined && object.metadata.namespace !== namespace) return undefined;
  const was = before !== undefined && labelsMatch(before, selector);
  const is = type !== 'DELETED' && labelsMatch(object, selector);
  if (!was && !is) return undefined;
  return { type: is ? (was ? 'MODIFIED' : 'ADDED') : 'DELETED', object: object as unknown as T };
}
