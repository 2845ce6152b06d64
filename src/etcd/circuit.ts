/**
 * A circuit breaker per member. A member that does not respond, fails TLS or disconnects is called more and more
 * rarely, so that a dead cluster costs a few calls a minute and its reconciles do not wait for it. One response, or a
 * change of the member's Pod, closes the circuit.
 */
import type { BackoffOptions } from '../lib/backoff.ts';
import type { EtcdError, EtcdErrorKind } from './errors.ts';

export type Circuit =
  | { readonly is: 'closed' }
  /** No call before `until`. After that calls are made again, and their results decide. */
  | {
      readonly is: 'open';
      readonly until: number;
      readonly failures: number;
      /** Milliseconds since 1970: the first failure in a row. */
      readonly since: number;
      readonly message: string;
    };

/** How a call has ended. */
export interface CallEnd {
  readonly startedAt: number;
  readonly error: EtcdError | undefined;
  /** The member needs no peer for the response, or was not even connected: a timeout is its own failure. */
  readonly alone: boolean;
}

/** `monotonic` for durations, `now` (milliseconds since 1970) for reports. */
export interface Moment {
  readonly monotonic: number;
  readonly now: number;
}

export const CLOSED: Circuit = { is: 'closed' };

/** A refused connection is not among these: it costs nothing, and a member that is starting must be found at once. */
const FAILURES: readonly EtcdErrorKind[] = ['disconnected', 'tls', 'badAnswer', 'wrongCluster'];
const INCONCLUSIVE: readonly EtcdErrorKind[] = ['unreachable', 'timeout', 'canceled'];

export function afterCall(circuit: Circuit, end: CallEnd, at: Moment, backoff: BackoffOptions): Circuit {
  const { error, alone, startedAt } = end;
  if (error === undefined) return CLOSED;
  const failed = FAILURES.includes(error.kind) || (error.kind === 'timeout' && alone);
  if (!failed) return INCONCLUSIVE.includes(error.kind) ? circuit : CLOSED; // a refusal is a response
  if (circuit.is === 'open' && startedAt < circuit.until) return circuit; // concurrent calls count as one failure
  const [failures, since] = circuit.is === 'open' ? [circuit.failures + 1, circuit.since] : [1, at.now];
  const pauseMs = Math.min(backoff.maxMs, backoff.firstMs * 2 ** Math.min(failures - 1, 30));
  return { is: 'open', until: at.monotonic + pauseMs, failures, since, message: error.message };
}

/**
 * The error of a call that is not made. Its message is that of the last failure: a status must not change with the
 * pause.
 */
export const refusal = (circuit: Circuit, monotonic: number): EtcdError | undefined =>
  circuit.is === 'open' && monotonic < circuit.until
    ? { kind: 'unreachable', message: circuit.message, since: circuit.since }
    : undefined;
