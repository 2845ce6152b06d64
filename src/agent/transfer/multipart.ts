/**
 * Splits a stream into parts of equal size that are sent several at a time, and retried one by one: their buffers bound
 * the memory.
 */
import { stopped } from './retry.ts';

export interface Part {
  readonly bytes: Buffer;
  /** From 1. */
  readonly number: number;
  /** The offset in the whole body. */
  readonly offset: number;
  readonly last: boolean;
}

/** A failure of the body itself, as opposed to one of the store that receives it. */
export class BodyFailure extends Error {
  constructor(cause: unknown) {
    super('the body failed', { cause });
  }
}

const MIB = 2 ** 20;
const SMALLEST = 8 * MIB;
/**
 * With the parts in flight, the part that is being filled, and the buffers of sockets, an agent stays below 200 MiB.
 */
const IN_FLIGHT = 16 * MIB;
/** S3 allows 10,000 parts; some compatible services need equal sizes, so the size cannot grow during the upload. */
const PARTS = 9_000;

export function partBytes(expectedBytes = 0): number {
  return Math.max(SMALLEST, Math.ceil(expectedBytes / PARTS / MIB) * MIB);
}

export const atOnce = (size: number): number => Math.max(1, Math.floor(IN_FLIGHT / size));

/** The next chunk of the body, or a failure as soon as the signal aborts, also when the body hangs. */
function nextOf(body: AsyncIterator<Uint8Array>, signal: AbortSignal): Promise<IteratorResult<Uint8Array>> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(stopped(signal));
    if (signal.aborted) return stop();
    signal.addEventListener('abort', stop, { once: true });
    body
      .next()
      .then(resolve, (error: unknown) => reject(new BodyFailure(error)))
      .finally(() => signal.removeEventListener('abort', stop));
  });
}

/** An empty body is one empty part. Buffers come from `take`, and the consumer of a part releases its buffer. */
export async function* cut(
  body: AsyncIterable<Uint8Array>,
  size: number,
  signal: AbortSignal,
  take: () => Buffer = () => Buffer.allocUnsafe(size),
): AsyncGenerator<Part> {
  const source = body[Symbol.asyncIterator]();
  let [buffer, used, number, offset] = [take(), 0, 1, 0];
  let ended = false;
  try {
    for (;;) {
      const next = await nextOf(source, signal);
      if (next.done) break;
      for (let rest = next.value; rest.length > 0; ) {
        if (used === size) {
          yield { bytes: buffer, number: number++, offset, last: false };
          offset += size;
          [buffer, used] = [take(), 0];
        }
        const fits = rest.subarray(0, size - used);
        buffer.set(fits, used);
        used += fits.length;
        rest = rest.subarray(fits.length);
      }
    }
    ended = true;
    yield { bytes: buffer.subarray(0, used), number, offset, last: true };
  } finally {
    // Not awaited: a body that hangs would hang this too.
    if (!ended) source.return?.().catch(() => undefined);
  }
}

/**
 * Sends all parts, `width` at a time; after the first failure none is started, and it returns when none is in flight.
 */
export async function sendParts(
  body: AsyncIterable<Uint8Array>,
  { size, width, signal }: { readonly size: number; readonly width: number; readonly signal: AbortSignal },
  send: (piece: Part, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  const free: Buffer[] = [];
  const sending = new Set<Promise<void>>();
  let failed: { readonly error: unknown } | undefined;
  const fail = (error: unknown): void => {
    failed ??= { error };
    stop.abort();
  };
  try {
    for await (const piece of cut(body, size, either, () => free.pop() ?? Buffer.allocUnsafe(size))) {
      const one = send(piece, either)
        .then(() => void free.push(piece.bytes), fail)
        .finally(() => sending.delete(one));
      sending.add(one);
      if (sending.size >= width) await Promise.race(sending);
    }
  } catch (error) {
    fail(error);
  }
  await Promise.all(sending);
  if (failed) throw signal.aborted ? stopped(signal) : failed.error;
}
