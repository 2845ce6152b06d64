/** A download that resumes where it broke: a short outage of the server costs no more than its duration. */

import { errorInfo } from './error-info.ts';
import { stopped, withRetry } from './retry.ts';

/** No byte for this long: the connection is dead. */
const STALL_MS = 60_000;
/** In a row without a byte in between: a proxy that cuts every connection after a minute must not end a long download. */
const MAX_BREAKS = 20;

const broken = (message: string, cause?: unknown): Error =>
  Object.assign(new Error(message, { cause }), { code: 'ECONNRESET' });

export async function* wholeBody(
  first: AsyncIterable<Uint8Array>,
  size: number,
  read: (from: number, signal: AbortSignal) => Promise<AsyncIterable<Uint8Array>>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  let part = first;
  let received = 0;
  for (let breaks = 1; ; breaks++) {
    try {
      for await (const bytes of unstalled(part)) {
        received += bytes.length;
        if (bytes.length > 0) breaks = 0;
        yield bytes;
      }
      if (received >= size) return;
      throw broken('the response ended early');
    } catch (error) {
      if (received >= size) return;
      if (signal.aborted) throw stopped(signal);
      // Libraries have many errors for a body that breaks. All are handled alike; a refusal has a status.
      if (errorInfo(error).status !== undefined) throw error;
      if (breaks >= MAX_BREAKS) throw broken('the response breaks again and again', error);
    }
    part = await opened(read, received, signal);
  }
}

/** Each attempt ends after its time; once the response has started, its body ends with the outer signal only. */
export const opened = (
  read: (from: number, signal: AbortSignal) => Promise<AsyncIterable<Uint8Array>>,
  from: number,
  signal: AbortSignal,
): Promise<AsyncIterable<Uint8Array>> => withRetry({ signal }, (stop) => read(from, AbortSignal.any([signal, stop])));

async function* unstalled(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const source = body[Symbol.asyncIterator]();
  let ended = false;
  try {
    for (;;) {
      const next = await new Promise<IteratorResult<Uint8Array>>((resolve, reject) => {
        const timer = setTimeout(() => reject(broken('no byte for a long time')), STALL_MS);
        source
          .next()
          .then(resolve, reject)
          .finally(() => clearTimeout(timer));
      });
      if (next.done) {
        ended = true;
        return;
      }
      yield next.value;
    }
  } finally {
    // Not awaited: it waits for the byte that never arrives. The signal of the reader ends the request.
    if (!ended) source.return?.().catch(() => undefined);
  }
}
