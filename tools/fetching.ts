/** Commands that download something: a transient network error must not fail a build. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Failure } from './terminal.ts';

const TRIES = 4;
const PAUSE_MS = 5_000;

/** What Go and npm print for network errors and overloaded servers, and not for a missing module or package. */
const PASSING =
  /dial tcp|i\/o timeout|TLS handshake timeout|connection (reset|refused)|unexpected EOF|: EOF|stream error|no such host|deadline exceeded|: (429|5\d\d) |ECONNRE|ETIMEDOUT|EAI_AGAIN|ERR_SOCKET/;

/** Retries after a pause when the error is one of the network. */
export async function fetching<T>(work: () => Promise<T>, pauseMs = PAUSE_MS): Promise<T> {
  for (let tried = 1; ; tried++)
    try {
      return await work();
    } catch (error) {
      if (tried === TRIES || !(error instanceof Failure) || !PASSING.test(error.message)) throw error;
      await sleep(tried * pauseMs);
    }
}
