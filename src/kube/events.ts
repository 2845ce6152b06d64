/** Kubernetes Events: what happened to an object, as `kubectl describe` shows it. */
import type { Event } from '../gen/kube.ts';
import { RoundRobin } from '../lib/round-robin.ts';
import { microTime } from '../lib/time.ts';
import type { Client } from './client.ts';
import { ApiError, isConflict, isNotFound, isNotLeading, isRefusal } from './errors.ts';
import { EventLedger, type EventText } from './event-ledger.ts';
import { apiVersionOf, type KubeObject, type Resource, refKey, refOf } from './object.ts';
import { events } from './resources.ts';

/** Records an Event. Never fails and never waits: an Event must not delay the reconcile that it reports about. */
export interface Recorder {
  record(resource: Resource, object: KubeObject, text: EventText): void;
}

export interface RecorderOptions {
  readonly client: Client;
  readonly controller: string;
  readonly instance: string;
  readonly now: () => number;
  /** Ends early at the signal; never rejects. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly onError: (error: unknown) => void;
  /** An Event of this namespace was dropped, because too many were waiting. */
  readonly onDrop: (namespace: string) => void;
}

interface Telling {
  readonly resource: Resource;
  readonly about: { readonly namespace: string; readonly name: string; readonly uid: string };
  readonly text: EventText;
  readonly at: number;
}

const MAX_NOTE = 1_000;
/** The queue while the API server is slow; beyond this number, the namespace with most of them loses its oldest Event. */
const MAX_WAITING = 500;
const WRITE_MS = 5_000;
/** Pauses before the retries of an Event that the API server did not accept. */
const AGAIN_MS = [500, 2_000, 5_000, 10_000];

export class EventRecorder implements Recorder {
  readonly #options: RecorderOptions;
  readonly #ledger = new EventLedger();
  /** Namespaces take turns: Events are written one at a time, and those of one tenant must not hold up the others'. */
  readonly #waiting = new RoundRobin<Telling>((key) => refOf(key).namespace);
  readonly #ending = new AbortController();
  #writing: Promise<void> | undefined;
  #named = 0;
  #recorded = 0;

  constructor(options: RecorderOptions) {
    this.#options = options;
  }

  record(resource: Resource, object: KubeObject, text: EventText): void {
    const { namespace = 'default', name = '', uid = '' } = object.metadata;
    const key = refKey({ namespace, name: String(this.#recorded++) });
    this.#waiting.set(key, { resource, about: { namespace, name, uid }, text, at: this.#options.now() });
    if (this.#waiting.size > MAX_WAITING) this.#options.onDrop(this.#waiting.dropFromLargest() ?? namespace);
    this.#writing ??= this.#writeAll();
  }

  /** For shutdown: resolves when every recorded Event was written, or was tried once more. */
  async flush(): Promise<void> {
    this.#ending.abort();
    await this.#writing;
  }

  async #writeAll(): Promise<void> {
    for (let next = this.#waiting.take(); next; next = this.#waiting.take())
      try {
        await this.#write(next.value);
      } catch (error) {
        this.#options.onError(error);
      }
    this.#writing = undefined;
  }

  async #write(telling: Telling): Promise<void> {
    const { about, text, at } = telling;
    const entry = this.#ledger.enter({ ...text, uid: about.uid }, at);
    if (entry.do === 'hold') return;
    if (entry.do === 'count') {
      if (await this.#insist(() => this.#count(about.namespace, entry.name, entry.count, at))) return;
      this.#ledger.lost(entry.key);
    }
    const note = entry.do === 'create' ? entry.note : text.note;
    const event = this.#event(telling, note);
    await this.#insist(() => this.#create(event));
    this.#ledger.created(entry.key, event.metadata.name ?? '', at);
  }

  /** An Event that is not written now is lost: unlike a condition, no later reconcile reports it again. */
  async #insist<T>(write: () => Promise<T>): Promise<T> {
    for (const ms of AGAIN_MS)
      try {
        return await write();
      } catch (error) {
        if (!mayPass(error)) throw error;
        await this.#options.sleep(ms, this.#ending.signal);
      }
    return write();
  }

  /** AlreadyExists is a success: the first attempt was carried out and only its response was late. */
  async #create(event: Event): Promise<void> {
    await this.#options.client.create(events, event, AbortSignal.timeout(WRITE_MS)).catch((error: unknown) => {
      if (!isConflict(error)) throw error;
    });
  }

  /** False when the Event no longer exists. */
  async #count(namespace: string, name: string, count: number, now: number): Promise<boolean> {
    const series = { count, lastObservedTime: microTime(now) };
    try {
      const signal = AbortSignal.timeout(WRITE_MS);
      await this.#options.client.patch(events, { namespace, name }, { series }, { signal });
      return true;
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
  }

  #event({ resource, about, text, at }: Telling, note: string): Event {
    const suffix = `${Math.floor(at).toString(16)}${(this.#named++ % 4096).toString(16).padStart(3, '0')}`;
    return {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { name: `${about.name}.${suffix}`, namespace: about.namespace },
      eventTime: microTime(at),
      type: text.type,
      reason: text.reason,
      note: note.slice(0, MAX_NOTE),
      action: 'Reconcile',
      reportingController: this.#options.controller,
      reportingInstance: this.#options.instance,
      regarding: { apiVersion: apiVersionOf(resource), kind: resource.kind, ...about },
    };
  }
}

/** The API server did not refuse the Event: it was unreachable, too slow or too busy. */
const mayPass = (error: unknown): boolean =>
  error instanceof ApiError &&
  (error.code === 0 || error.code === 429 || error.code >= 500) &&
  !isNotLeading(error) &&
  !isRefusal(error);
