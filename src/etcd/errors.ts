/** How a call to etcd can fail, as a closed set: callers branch on `kind` and show `message`. */
import { Code, ConnectError } from '@connectrpc/connect';

export type EtcdErrorKind =
  /** Nothing answers at the address, or the connection broke. */
  | 'unreachable'
  /** Something is there, but it did not answer in time. */
  | 'timeout'
  /** The member answers, but its cluster has no leader. */
  | 'noLeader'
  /** The member is a learner, which serves only a few calls. */
  | 'learner'
  | 'authRequired'
  | 'authRejected'
  | 'other';

export interface EtcdError {
  readonly kind: EtcdErrorKind;
  readonly message: string;
}

export type Answer<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: EtcdError };

/** etcd says what is wrong in words; these are the words. */
const SAID: readonly (readonly [RegExp, EtcdErrorKind])[] = [
  [/no leader|leader changed/i, 'noLeader'],
  [/not supported for learner/i, 'learner'],
  [/user name is empty|permission denied|insufficient credentials/i, 'authRequired'],
  [/authentication failed|invalid auth token/i, 'authRejected'],
];

const LATE: readonly Code[] = [Code.DeadlineExceeded, Code.Canceled];
const BROKEN: readonly Code[] = [Code.Unavailable, Code.Aborted, Code.Internal];

export function classify(error: unknown): EtcdError {
  const known = ConnectError.from(error);
  const message = known.rawMessage;
  const said = SAID.find(([words]) => words.test(message));
  if (said) return { kind: said[1], message };
  if (LATE.includes(known.code)) return { kind: 'timeout', message };
  if (BROKEN.includes(known.code)) return { kind: 'unreachable', message };
  return { kind: 'other', message };
}
