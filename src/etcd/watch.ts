/** Changes as they happen. How a watch ends is part of what it tells: compacted, canceled by etcd, or failed (thrown). */
import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  Event_EventType as EventType,
  Watch,
  type WatchRequestSchema,
  type WatchResponse,
} from '../gen/etcd/watch_pb.ts';
import type { Ask, Caller } from './call.ts';
import { EtcdFailure, failure } from './errors.ts';
import { type Keys, type KeyValue, keyRange, keyValue } from './kv.ts';

export interface WatchOptions extends Keys {
  /** The first revision to tell about; without it, from now on. */
  readonly fromRevision?: bigint;
  /** Be told now and then, when nothing changes, up to which revision that is so. */
  readonly progress?: boolean;
  /** With the value before each change. */
  readonly previous?: boolean;
}

export interface WatchEvent {
  readonly type: 'put' | 'delete';
  readonly kv: KeyValue;
  readonly previous?: KeyValue;
}

export type WatchItem =
  | { readonly is: 'created'; readonly revision: bigint }
  | { readonly is: 'events'; readonly revision: bigint; readonly events: readonly WatchEvent[] }
  | { readonly is: 'progress'; readonly revision: bigint }
  /** The end: revisions before this one are gone. List, and watch from there. */
  | { readonly is: 'compacted'; readonly compactRevision: bigint }
  /** The end, for a reason of etcd's. */
  | { readonly is: 'canceled'; readonly reason: string };

export interface WatchPort {
  /** The time limit is for the watch to begin; then it lasts until the signal, or until the consumer stops reading. */
  watch(ask: Ask, options: WatchOptions): AsyncGenerator<WatchItem, void, undefined>;
}

export const watchPort = (caller: Caller): WatchPort => ({ watch: (ask, options) => items(caller, ask, options) });

async function* items(caller: Caller, ask: Ask, options: WatchOptions): AsyncGenerator<WatchItem, void, undefined> {
  const beginning = new AbortController();
  const timer = setTimeout(() => beginning.abort(), ask.timeoutMs);
  const over = Promise.withResolvers<void>();
  const signal = AbortSignal.any([beginning.signal, ...(ask.signal ? [ask.signal] : [])]);
  const partial: WatchEvent[] = [];
  try {
    const requests = creation(options, over.promise);
    for await (const answer of caller.stream({ ...ask, timeoutMs: 0, signal }, Watch.method.watch, requests)) {
      clearTimeout(timer);
      const item = itemOf(answer, partial);
      if (item) yield item;
      if (item?.is === 'compacted' || item?.is === 'canceled') return;
    }
    throw failure('disconnected', 'the watch ended without a reason');
  } catch (error) {
    if (beginning.signal.aborted) throw failure('timeout', `the watch did not begin within ${ask.timeoutMs} ms`);
    throw error instanceof EtcdFailure ? error : new EtcdFailure({ kind: 'other', message: String(error) });
  } finally {
    clearTimeout(timer);
    over.resolve();
  }
}

/** The request side stays open for as long as the watch lasts: its end would be the end of the stream. */
async function* creation(
  options: WatchOptions,
  over: Promise<void>,
): AsyncGenerator<MessageInitShape<typeof WatchRequestSchema>, void, undefined> {
  const value = {
    ...keyRange(options),
    startRevision: options.fromRevision ?? 0n,
    progressNotify: options.progress ?? false,
    prevKv: options.previous ?? false,
    fragment: true, // otherwise one change of many keys could exceed the limit of a message
  };
  yield { requestUnion: { case: 'createRequest', value } };
  await over;
}

/** A change that comes in fragments is told once it is complete. */
function itemOf(answer: WatchResponse, partial: WatchEvent[]): WatchItem | undefined {
  const revision = answer.header?.revision ?? 0n;
  if (answer.compactRevision > 0n) return { is: 'compacted', compactRevision: answer.compactRevision };
  if (answer.canceled) return { is: 'canceled', reason: answer.cancelReason };
  if (answer.created) return { is: 'created', revision };
  for (const { type, kv, prevKv } of answer.events)
    if (kv)
      partial.push({
        type: type === EventType.DELETE ? 'delete' : 'put',
        kv: keyValue(kv),
        ...(prevKv && { previous: keyValue(prevKv) }),
      });
  if (answer.fragment) return undefined;
  const events = partial.splice(0);
  return events.length > 0 ? { is: 'events', revision, events } : { is: 'progress', revision };
}
