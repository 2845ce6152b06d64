/** Which calls a fault is about, and what it does to them. */
import type { CallName } from '../../../src/kube/call-name.ts';
import type { WatchFault } from './watch.ts';

/** One call that came by. */
export interface Passed extends CallName {
  /** It changes something, and is neither about Events nor about Leases. */
  readonly write: boolean;
  readonly path: string;
  /** When it came by, on the clock of `performance`. */
  readonly at: number;
  /** What the caller was told; undefined while it waits, 0 when the connection broke instead. */
  code: number | undefined;
}

export interface Match {
  readonly verb?: CallName['verb'];
  /** The plural, with its subresource if it is about one: `pods`, `etcdmembers/status`. */
  readonly resource?: string;
  /** Only calls about the object of this name. */
  readonly name?: string;
  /** Only writes, in the sense of `Passed`. */
  readonly write?: true;
  /** Only the n-th that matches, from 1. */
  readonly nth?: number;
  /** Only every n-th that matches. */
  readonly every?: number;
}

export type Fault =
  /** It does not reach the server. */
  | { readonly do: 'answer'; readonly code: number; readonly retryAfterSeconds?: number }
  /** Nothing comes back until the rule is removed; then it breaks. */
  | { readonly do: 'hang'; readonly forward?: true }
  /** Goes on when the rule is removed. */
  | { readonly do: 'hold' }
  | { readonly do: 'delay'; readonly ms: number }
  /** The connection breaks: before the server hears of it, or half-way through its answer. */
  | { readonly do: 'reset'; readonly when: 'before' | 'mid-response' }
  /** Something happens (usually: the caller is killed) and nobody hears an answer. */
  | { readonly do: 'interrupt'; readonly when: 'before' | 'after'; readonly run: () => Promise<unknown> }
  /** What a watch tells is bent. */
  | { readonly do: 'watch'; readonly how: WatchFault };

export interface Rule {
  readonly match: Match;
  readonly fault: Fault;
  readonly over: AbortController;
  seen: number;
}
