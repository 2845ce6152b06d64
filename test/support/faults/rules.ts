/** Which calls a fault matches, and what it does to them. */
import type { CallName } from '../../../src/kube/call-name.ts';
import type { WatchFault } from './watch.ts';

/** One call through the proxy. */
export interface Passed extends CallName {
  /** It changes something, and is neither about Events nor about Leases. */
  readonly write: boolean;
  readonly path: string;
  /** When it arrived, on the clock of `performance`. */
  readonly at: number;
  /** The response code; undefined while the caller waits, 0 when the connection broke instead. */
  code: number | undefined;
}

export interface Match {
  readonly verb?: CallName['verb'];
  /** The plural, with its subresource if any: `pods`, `etcdmembers/status`. */
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
  /** There is no response until the rule is removed; then the connection breaks. */
  | { readonly do: 'hang'; readonly forward?: true }
  /** Continues when the rule is removed. */
  | { readonly do: 'hold' }
  | { readonly do: 'delay'; readonly ms: number }
  /** The connection breaks: before the server receives the call, or half-way through its response. */
  | { readonly do: 'reset'; readonly when: 'before' | 'mid-response' }
  /** Runs a callback (usually: kills the caller), and the response is dropped. */
  | { readonly do: 'interrupt'; readonly when: 'before' | 'after'; readonly run: () => Promise<unknown> }
  /** Runs a callback, then continues. */
  | { readonly do: 'first'; readonly run: () => Promise<unknown> }
  /** The watch is faulty. */
  | { readonly do: 'watch'; readonly how: WatchFault };

export interface Rule {
  readonly match: Match;
  readonly fault: Fault;
  readonly over: AbortController;
  seen: number;
}
