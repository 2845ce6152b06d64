/**
 * A watch that survives every interruption: it reconnects, resumes, lists again, and detects a dead peer.
 *
 * Guarantees: every object that exists is emitted, and every change at least in its last state; between `restart` and `synced` a
 * complete list; never a state that is older than one that was emitted.
 * Assumptions: the API server compares resourceVersions as numbers and sends bookmarks every minute (without them, a watch is
 * resumed after `SILENCE_MS`).
 * Caveats: states in between may be missed. A dead connection is noticed after at most 150 s. `watch` rejects if the API
 * server stays behind what it has served, as after a restore of its etcd: the process has to restart.
 */
import { backoffMs } from '../lib/backoff.ts';
import type { Client } from './client.ts';
import { ApiError, isForbidden, isGone, isNotFound, isRefusedRequest } from './errors.ts';
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
  /** A connection has ended and another one follows: it resumes at the same version, or starts with a new list. */
  readonly onRestart?: (how: 'resumed' | 'listed again') => void;
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly random: () => number;
  readonly timeoutSeconds?: number;
  readonly silenceMs?: number;
  /** Without permission for the kind, its cache counts as missing: nothing waits for a list that never comes. */
  readonly mayBeForbidden?: boolean;
}

/** The API server ends a healthy watch after this long. */
const SERVER_TIMEOUT_SECONDS = 290;
/**
 * Bookmarks arrive every minute. No event for longer means a dead peer, or a server without bookmarks: resuming costs
 * little.
 */
const SILENCE_MS = 150_000;
const RETRY = { firstMs: 400, maxMs: 30_000 };
/** A user is installing the CRD and waits for the operator. A request costs next to nothing. */
const RETRY_MISSING = { firstMs: 400, maxMs: 5_000 };
/** Roles change rarely, and the API server logs each refusal. */
const RETRY_FORBIDDEN = { firstMs: 400, maxMs: 60_000 };
/**
 * About five minutes. An API server that is still behind then has lost its history for good, as after a restore from a
 * backup.
 */
const MAX_BEHIND = 16;

/** The API server offers a state that is older than what was already received. */
export class ServerWentBack extends Error {
  override readonly name = 'Behind';
  constructor(plural: string, offered: string) {
    super(`${plural}: the API server offers version ${offered}, which is older than what it has already served`);
  }
}

/**
 * Runs until the signal. Errors are reported to `onError` and retried. Rejects only when the API server stays behind:
 * the objects that this process has seen and written no longer exist, and it has to restart.
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
      const how = interruption(cause, options.mayBeForbidden === true);
      state = onInterruption(reached, how);
      if (how === 'missing') options.emit({ type: 'missing' });
      else options.onError(cause);
      behind = cause instanceof ServerWentBack ? behind + 1 : reached.phase === 'following' ? 0 : behind;
      if (behind >= MAX_BEHIND) throw cause;
      const asked = cause instanceof ApiError ? (cause.retryAfterMs ?? 0) : 0;
      const retry = isForbidden(cause) ? RETRY_FORBIDDEN : how === 'missing' ? RETRY_MISSING : RETRY;
      await options.sleep(Math.max(asked, backoffMs(failures++, options.random(), retry)), options.signal);
    }
  }
}

/** Carries the state that a connection had reached when it broke. */
class Interrupted extends Error {
  readonly state: WatchState;
  constructor(state: WatchState, cause: unknown) {
    super('watch interrupted', { cause });
    this.state = state;
  }
}

function interruption(error: unknown, mayBeForbidden: boolean): Interruption {
  if (isGone(error)) return 'gone';
  if (isNotFound(error) || (mayBeForbidden && isForbidden(error))) return 'missing';
  return isRefusedRequest(error) ? 'refused' : 'failed';
}

/** One connection, until it ends. */
async function follow<T extends KubeObject>(options: WatchOptions<T>, from: WatchState): Promise<WatchState> {
  const seconds = options.timeoutSeconds ?? SERVER_TIMEOUT_SECONDS;
  const silence = new AbortController();
  const limitMs = options.silenceMs ?? SILENCE_MS;
  const timer = setTimeout(() => silence.abort(new Error(`no event for ${limitMs} ms`)), limitMs);
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

/** The first list of an API server that cannot stream it. */
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
