/**
 * Whether a member is worth asking now. One that stays silent, cannot be trusted or breaks off is asked more and more
 * rarely, so that a dead cluster costs a few calls a minute and its passes do not wait for it. As soon as one answer
 * comes, or somebody knows that the member has changed, it is asked as any other.
 */
import type { BackoffOptions } from '../lib/backoff.ts';
import type { EtcdError, EtcdErrorKind } from './errors.ts';

export type Circuit =
  | { readonly is: 'closed' }
  /** Not asked before `until`. After that calls go through again, and what becomes of them decides. */
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
  readonly begunAt: number;
  readonly error: EtcdError | undefined;
  /** The member needs nobody else for the answer, or was not even connected: its silence is its own. */
  readonly alone: boolean;
}

/** `monotonic` for what lasts, `now` (milliseconds since 1970) for what is told. */
export interface Moment {
  readonly monotonic: number;
  readonly now: number;
}

export const CLOSED: Circuit = { is: 'closed' };

/** A refused connection is not among these: it costs nothing, and a member that is starting must be found at once. */
const AGAINST: readonly EtcdErrorKind[] = ['disconnected', 'tls', 'badAnswer', 'wrongCluster'];
const SAYS_NOTHING: readonly EtcdErrorKind[] = ['unreachable', 'timeout', 'canceled'];

export function afterCall(circuit: Circuit, end: CallEnd, at: Moment, backoff: BackoffOptions): Circuit {
  const { error, alone, begunAt } = end;
  if (error === undefined) return CLOSED;
  const against = AGAINST.includes(error.kind) || (error.kind === 'timeout' && alone);
  if (!against) return SAYS_NOTHING.includes(error.kind) ? circuit : CLOSED; // a refusal is an answer
  if (circuit.is === 'open' && begunAt < circuit.until) return circuit; // many calls at once are one failure
  const [failures, since] = circuit.is === 'open' ? [circuit.failures + 1, circuit.since] : [1, at.now];
  const pauseMs = Math.min(backoff.maxMs, backoff.firstMs * 2 ** Math.min(failures - 1, 30));
  return { is: 'open', until: at.monotonic + pauseMs, failures, since, message: error.message };
}

/** What a call is told instead of being made. The words are those of the last failure: a status must not change with them. */
export const refusal = (circuit: Circuit, monotonic: number): EtcdError | undefined =>
  circuit.is === 'open' && monotonic < circuit.until
    ? { kind: 'unreachable', message: circuit.message, since: circuit.since }
    : undefined;
