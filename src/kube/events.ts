/** Kubernetes Events: what happened to an object, in words, where `kubectl describe` shows it. */
import type { Event } from '../gen/kube.ts';
import type { Client } from './client.ts';
import { isNotFound } from './errors.ts';
import { apiVersionOf, type KubeObject, type Resource } from './object.ts';
import { events } from './resources.ts';

export interface EventText {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly note: string;
}

interface Sent {
  readonly name: string;
  readonly at: number;
  count: number;
}

const SERIES_MS = 10 * 60_000;
const MAX_REMEMBERED = 2_000;
const MAX_NOTE = 1_000;

export interface RecorderOptions {
  readonly client: Client;
  readonly controller: string;
  readonly instance: string;
  readonly now: () => number;
  readonly onError: (error: unknown) => void;
}

/** The same words about the same object within ten minutes are counted on one Event, not written again. */
export class EventRecorder {
  readonly #options: RecorderOptions;
  readonly #sent = new Map<string, Sent>();

  constructor(options: RecorderOptions) {
    this.#options = options;
  }

  /** Never rejects: an Event that cannot be written must not stop what it tells about. */
  async record(resource: Resource, object: KubeObject, text: EventText, signal: AbortSignal): Promise<void> {
    const { namespace = 'default', name = '', uid = '' } = object.metadata;
    const key = [uid, text.type, text.reason, text.note].join('\n');
    const now = this.#options.now();
    const old = this.#sent.get(key);
    try {
      if (old && now - old.at < SERIES_MS && (await this.#count(namespace, old, now, signal))) return;
      const event = this.#event(resource, { namespace, name, uid }, text, now);
      await this.#options.client.create(events, event, signal);
      this.#remember(key, { name: event.metadata.name ?? '', at: now, count: 1 });
    } catch (error) {
      this.#options.onError(error);
    }
  }

  async #count(namespace: string, sent: Sent, now: number, signal: AbortSignal): Promise<boolean> {
    sent.count++;
    const series = { count: sent.count, lastObservedTime: microTime(now) };
    try {
      await this.#options.client.patch(events, { namespace, name: sent.name }, { series }, { signal });
      return true;
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
  }

  #remember(key: string, sent: Sent): void {
    this.#sent.delete(key);
    this.#sent.set(key, sent);
    const oldest = this.#sent.keys().next();
    if (this.#sent.size > MAX_REMEMBERED && !oldest.done) this.#sent.delete(oldest.value);
  }

  #event(
    resource: Resource,
    about: { readonly namespace: string; readonly name: string; readonly uid: string },
    text: EventText,
    now: number,
  ): Event {
    const suffix = Math.floor(now * 1000 + this.#sent.size).toString(16);
    return {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { name: `${about.name}.${suffix}`, namespace: about.namespace },
      eventTime: microTime(now),
      type: text.type,
      reason: text.reason,
      note: text.note.slice(0, MAX_NOTE),
      action: 'Reconcile',
      reportingController: this.#options.controller,
      reportingInstance: this.#options.instance,
      regarding: { apiVersion: apiVersionOf(resource), kind: resource.kind, ...about },
    };
  }
}

const microTime = (now: number): string => new Date(now).toISOString().replace('Z', '000Z');
