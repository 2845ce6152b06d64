/**
 * The watch protocol as a pure state machine: one wire event in, the next state and at most one cache event out.
 * `watcher.ts` is the loop that feeds it bytes.
 */
import { isAtLeast, type KubeObject } from './object.ts';

export type WireEvent<T> =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'; readonly object: T }
  | { readonly type: 'ERROR'; readonly object: { readonly code?: number; readonly message?: string } };

/**
 * What a cache must do. Events between `restart` and `synced` are a complete snapshot, which replaces the previous one
 * at once.
 */
export type StoreEvent<T> =
  | { readonly type: 'restart' }
  /** The API server does not know the kind (yet), or the operator may not read it. */
  | { readonly type: 'missing' }
  | { readonly type: 'synced'; readonly resourceVersion: string }
  | { readonly type: 'progress'; readonly resourceVersion: string }
  | { readonly type: 'put' | 'delete'; readonly object: T };

/**
 * `listing`: the initial events are streaming in. `paging`: the same for API servers that cannot stream lists.
 * `following`: changes. A list older than `floor`, the newest version seen, would bring back deleted objects and hide
 * our own writes.
 */
export type WatchState =
  | { readonly phase: 'listing' | 'paging'; readonly floor: string }
  | { readonly phase: 'following'; readonly resourceVersion: string };

export interface WatchStep<T> {
  readonly state: WatchState;
  readonly emit?: StoreEvent<T>;
  /** This connection has ended. */
  readonly over?: true;
  /** The API server's newest version, which is older than what was already received. */
  readonly behind?: string;
}

export const START: WatchState = { phase: 'listing', floor: '' };
const GONE = 410;
const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';

const seenBy = (state: WatchState): string => (state.phase === 'following' ? state.resourceVersion : state.floor);
const listAgain = (state: WatchState): WatchState => ({ phase: 'listing', floor: seenBy(state) });
/** Whether a list of this version may be used. */
export const isCurrent = (state: WatchState, resourceVersion: string): boolean =>
  isAtLeast(resourceVersion, seenBy(state));

export function onEvent<T extends KubeObject>(state: WatchState, event: WireEvent<T>): WatchStep<T> {
  if (event.type === 'ERROR') return { state: event.object.code === GONE ? listAgain(state) : state, over: true };
  const resourceVersion = event.object.metadata.resourceVersion ?? '';
  const following: WatchState = { phase: 'following', resourceVersion };
  if (state.phase === 'following' && !isCurrent(state, resourceVersion))
    return { state: listAgain(state), over: true, behind: resourceVersion };
  if (event.type === 'BOOKMARK') {
    if (state.phase === 'following') return { state: following, emit: { type: 'progress', resourceVersion } };
    if (event.object.metadata.annotations?.[INITIAL_EVENTS_END] !== 'true') return { state };
    if (!isCurrent(state, resourceVersion)) return { state, over: true, behind: resourceVersion };
    return { state: following, emit: { type: 'synced', resourceVersion } };
  }
  const emit: StoreEvent<T> = { type: event.type === 'DELETED' ? 'delete' : 'put', object: event.object };
  return { state: state.phase === 'following' ? following : state, emit };
}

export type Interruption = 'ended' | 'gone' | 'missing' | 'refused' | 'failed';

/** Where to continue after a connection ended. An incomplete list is discarded; a followed version is resumed. */
export function onInterruption(state: WatchState, how: Interruption): WatchState {
  if (how === 'gone' || how === 'missing') return listAgain(state);
  if (how === 'refused' && state.phase === 'listing') return { ...state, phase: 'paging' };
  return state;
}

/** The query parameters that open a watch in a state. */
export function watchQuery(state: WatchState, timeoutSeconds: number, selector?: string): Record<string, string> {
  return {
    watch: 'true',
    allowWatchBookmarks: 'true',
    timeoutSeconds: String(timeoutSeconds),
    ...(selector !== undefined && { labelSelector: selector }),
    ...(state.phase === 'following'
      ? { resourceVersion: state.resourceVersion }
      : { sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan' }),
  };
}
