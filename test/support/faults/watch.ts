/** Faulty watches: late, with gaps, several changes coalesced into one, or broken off. */
import { jsonLines } from '../../../src/kube/json-lines.ts';
import { pathOf, type Resource } from '../../../src/kube/object.ts';
import type { Transport } from '../../../src/kube/transport.ts';
import { START, watchQuery } from '../../../src/kube/watch-protocol.ts';
import { pause } from '../servers/processes.ts';

export interface Wire {
  readonly type: string;
  readonly object: { readonly metadata?: { readonly namespace?: string; readonly name?: string } };
}

export type WatchFault =
  /** Every event arrives this much later; the order stays. */
  | { readonly is: 'late'; readonly ms: number }
  /** Events of these types are never delivered. */
  | { readonly is: 'lossy'; readonly types: readonly string[] }
  /** Changes of an object within this time are delivered as its last state only. */
  | { readonly is: 'coalesced'; readonly ms: number }
  /** From the first change on, nothing is delivered for this long; then the watch gets 410 Gone. */
  | { readonly is: 'lost'; readonly ms: number }
  /** Ends without an error after this long. */
  | { readonly is: 'cut'; readonly afterMs: number }
  /** The watch gets 410 Gone. */
  | { readonly is: 'gone' }
  /** As a server whose clock stands still: a resuming watch gets 410 Gone, the list is this one, and no event follows it. */
  | { readonly is: 'past'; readonly list: readonly Wire[] };

const line = (event: unknown): Uint8Array => Buffer.from(`${JSON.stringify(event)}\n`);
const GONE = { type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired', message: 'made up' } };

/** What a list of the kind would stream now: to be replayed as the past. */
export async function recordList(
  transport: Transport,
  resource: Resource,
  namespace: string,
): Promise<readonly Wire[]> {
  const list: Wire[] = [];
  const call = { query: watchQuery(START, 60), signal: AbortSignal.timeout(30_000) };
  for await (const event of transport.lines<Wire>(pathOf(resource, namespace), call)) {
    list.push(event);
    if (event.type === 'BOOKMARK') break;
  }
  return list;
}

export async function* watchPipe(
  bytes: AsyncIterable<Uint8Array>,
  fault: WatchFault,
  signal: AbortSignal,
  listing: boolean,
): AsyncGenerator<Uint8Array> {
  switch (fault.is) {
    case 'late':
      yield* late(jsonLines<Wire>(bytes), fault.ms, signal);
      return;
    case 'lossy':
      for await (const event of jsonLines<Wire>(bytes)) if (!fault.types.includes(event.type)) yield line(event);
      return;
    case 'coalesced':
      yield* coalesced(jsonLines<Wire>(bytes), fault.ms, signal);
      return;
    case 'lost':
      yield* lost(jsonLines<Wire>(bytes), fault.ms);
      return;
    case 'cut':
      yield* cut(jsonLines<Wire>(bytes), fault.afterMs);
      return;
    case 'gone':
      yield line(GONE);
      return;
    case 'past':
      for (const event of listing ? fault.list : [GONE]) yield line(event);
      if (listing) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      return;
  }
}

/** A queue between input and output, so that waiting for one does not block the other. */
async function* late(events: AsyncIterable<Wire>, ms: number, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const queue: { readonly event: Wire; readonly due: number }[] = [];
  let ended = false;
  const read = async (): Promise<void> => {
    for await (const event of events) queue.push({ event, due: performance.now() + ms });
  };
  void read()
    .catch(() => undefined)
    .finally(() => {
      ended = true;
    });
  while (!signal.aborted && !(ended && queue.length === 0)) {
    const next = queue[0];
    if (next && next.due <= performance.now()) {
      queue.shift();
      yield line(next.event);
    } else await pause(Math.min(20, next ? Math.max(1, next.due - performance.now()) : 20));
  }
}

async function* coalesced(events: AsyncIterable<Wire>, ms: number, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const last = new Map<string, Wire>();
  let others = 0;
  let ended = false;
  const read = async (): Promise<void> => {
    for await (const event of events) {
      const { namespace = '', name = '' } = event.object.metadata ?? {};
      const isChange = event.type !== 'BOOKMARK' && event.type !== 'ERROR';
      const key = isChange ? `${namespace}/${name}` : `${event.type} ${others++}`;
      last.delete(key);
      last.set(key, event);
    }
  };
  void read()
    .catch(() => undefined)
    .finally(() => {
      ended = true;
    });
  while (!signal.aborted && !(ended && last.size === 0)) {
    await pause(ms);
    const batch = [...last.values()];
    last.clear();
    for (const event of batch) yield line(event);
  }
}

async function* cut(events: AsyncIterable<Wire>, afterMs: number): AsyncGenerator<Uint8Array> {
  const iterator = events[Symbol.asyncIterator]();
  const end = pause(afterMs).then(() => undefined);
  for (;;) {
    const next = await Promise.race([iterator.next(), end]);
    if (next === undefined || next.done) return;
    yield line(next.value);
  }
}

async function* lost(events: AsyncIterable<Wire>, ms: number): AsyncGenerator<Uint8Array> {
  for await (const event of events) {
    if (event.type === 'BOOKMARK') yield line(event);
    else break;
  }
  await pause(ms);
  yield line(GONE);
}
