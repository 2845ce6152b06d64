/** A watch that survives everything: it reconnects, resumes, lists again, and notices a peer that died silently. */
import { backoffMs } from '../lib/backoff.ts';
import type { Client } from './client.ts';
import { ApiError, isGone, isNotFound, isRefusedRequest } from './errors.ts';
import type { KubeObject, Resource } from './object.ts';
import {
  type Interruption,
  isCurrent,
  onEvent,
  onInterruption,
  START,
  type StoreEvent,
  type WatchState,
  watchQuery,
} from './watch-protocol.ts';

export interface WatchOptions<T extends KubeObject> {
  readonly client: Pick<Client, 'pages' | 'watch'>;
  readonly resource: Resource<T>;
  readonly namespace?: string;
  readonly selector?: string;
  readonly signal: AbortSignal;
  readonly emit: (event: StoreEvent<T>) => void;
  readonly onError: (error: unknown) => void;
  /** A connection is over and another one follows: it goes on where this one ended, or begins with a new list. */
  readonly onRestart?: (how: 'resumed' | 'listed again') => void;
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly random: () => number;
  readonly timeoutSeconds?: number;
  readonly silenceMs?: number;
}

/** The server ends a healthy watch by itself after this long. */
const SERVER_TIMEOUT_SECONDS = 290;
/** Bookmarks come every minute. Silence for longer is a dead peer, or a server without bookmarks: to resume costs little. */
const SILENCE_MS = 150_000;
const RETRY = { firstMs: 400, maxMs: 30_000 };
/** Somebody installs the definition and waits for us. To ask costs next to nothing. */
const RETRY_MISSING = { firstMs: 400, maxMs: 5_000 };
/** About five minutes. A server that is still behind then has lost its past for good, as after a restore from a backup. */
const MOST_BEHIND = 16;

/** The server offers a state from before the one that we have seen. */
export class ServerWentBack extends Error {
  override readonly name = 'Behind';
  constructor(plural: string, offered: string) {
    super(`${plural}: the API server offers version ${offered}, which is older than what it has told before`);
  }
}

/**
 * Runs until the signal. What goes wrong is told to `onError` and tried again. Rejects only when the server insists on the
 * past: what this process has seen and written is no more, and it has to begin anew.
 */
export async function watch<T extends KubeObject>(options: WatchOptions<T>): Promise<void> {
  let state: WatchState = START;
  let failures = 0;
  let behind = 0;
  let first = true;
  while (!options.signal.aborted) {
    const before: WatchState = state;
    if (!first) options.onRestart?.(before.phase === 'following' ? 'resumed' : 'listed again');
    first = false;
    try {
      state = before.phase === 'paging' ? await page(options, before) : await follow(options, before);
      failures = 0;
      behind = 0;
    } catch (error) {
      if (options.signal.aborted) return;
      const reached = error instanceof Interrupted ? error.state : before;
      if (reached !== before) failures = 0;
      const cause: unknown = error instanceof Interrupted ? error.cause : error;
      const how = interruption(cause);
      state = onInterruption(reached, how);
      if (how === 'missing') options.emit({ type: 'missing' });
      else options.onError(cause);
      behind = cause instanceof ServerWentBack ? behind + 1 : reached.phase === 'following' ? 0 : behind;
      if (behind >= MOST_BEHIND) throw cause;
      const asked = cause instanceof ApiError ? (cause.retryAfterMs ?? 0) : 0;
      const retry = how === 'missing' ? RETRY_MISSING : RETRY;
      await options.sleep(Math.max(asked, backoffMs(failures++, options.random(), retry)), options.signal);
    }
  }
}

/** Carries how far a connection had come when it broke. */
class Interrupted extends Error {
  readonly state: WatchState;
  constructor(state: WatchState, cause: unknown) {
    super('watch interrupted', { cause });
    this.state = state;
  }
}

function interruption(error: unknown): Interruption {
  if (isGone(error)) return 'gone';
  if (isNotFound(error)) return 'missing';
  return isRefusedRequest(error) ? 'refused' : 'failed';
}

/** One connection, to its end. */
async function follow<T extends KubeObject>(options: WatchOptions<T>, from: WatchState): Promise<WatchState> {
  const seconds = options.timeoutSeconds ?? SERVER_TIMEOUT_SECONDS;
  const silence = new AbortController();
  const limitMs = options.silenceMs ?? SILENCE_MS;
  const timer = setTimeout(() => silence.abort(new Error(`silent for ${limitMs} ms`)), limitMs);
  const signal = AbortSignal.any([options.signal, silence.signal]);
  let state = from;
  if (from.phase === 'listing') options.emit({ type: 'restart' });
  try {
    const query = watchQuery(from, seconds, options.selector);
    const { resource, namespace } = options;
    const call = { query, signal, ...(namespace !== undefined && { namespace }) };
    for await (const wire of options.client.watch(resource, call)) {
      timer.refresh();
      const step = onEvent(state, wire);
      if (step.emit) options.emit(step.emit);
      state = step.state;
      if (step.behind !== undefined) throw new ServerWentBack(resource.plural, step.behind);
      if (step.over && wire.type === 'ERROR')
        throw new ApiError(`WATCH ${resource.plural}`, wire.object.code ?? 0, wire.object);
    }
  } catch (error) {
    throw new Interrupted(state, error);
  } finally {
    clearTimeout(timer);
  }
  return onInterruption(state, 'ended');
}

/** The first list of a server that cannot stream it. */
async function page<T extends KubeObject>(options: WatchOptions<T>, from: WatchState): Promise<WatchState> {
  options.emit({ type: 'restart' });
  let resourceVersion = '';
  for await (const part of options.client.pages(options.resource, options)) {
    for (const object of part.items) options.emit({ type: 'put', object });
    resourceVersion = part.metadata.resourceVersion ?? '';
  }
  if (!isCurrent(from, resourceVersion)) throw new ServerWentBack(options.resource.plural, resourceVersion);
  options.emit({ type: 'synced', resourceVersion });
  return { phase: 'following', resourceVersion };
}
