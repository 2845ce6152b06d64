/** Commands that fetch something on their way: a network that fails for a moment fails nobody's build. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Failure } from './terminal.ts';

const TRIES = 4;
const PAUSE_MS = 5_000;

/** What Go and npm say of the way and of a server that is overloaded, and not of what was asked for. */
const PASSING =
  /dial tcp|i\/o timeout|TLS handshake timeout|connection (reset|refused)|unexpected EOF|: EOF|stream error|no such host|deadline exceeded|: (429|5\d\d) |ECONNRE|ETIMEDOUT|EAI_AGAIN|ERR_SOCKET/;

/** Does it again after a pause when it failed on the way to a server. */
export async function fetching<T>(work: () => Promise<T>, pauseMs = PAUSE_MS): Promise<T> {
  for (let tried = 1; ; tried++)
    try {
      return await work();
    } catch (error) {
      if (tried === TRIES || !(error instanceof Failure) || !PASSING.test(error.message)) throw error;
      await sleep(tried * pauseMs);
    }
}
