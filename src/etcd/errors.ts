/** How a call to etcd can fail, as a closed set: callers branch on `kind` and show `message`. */
import { Code, ConnectError } from '@connectrpc/connect';

export type EtcdErrorKind =
  // The way to the member.
  /** No connection could be made: the call was never sent. */
  | 'unreachable'
  /** The connection broke during the call: whether it was carried out is not known. */
  | 'disconnected'
  /** No answer within the call's time: whether it was carried out is not known. */
  | 'timeout'
  /** The caller gave up. */
  | 'canceled'
  /** The peer's certificate is not trusted, ours is refused, or one side speaks TLS and the other does not. */
  | 'tls'
  // The member and its cluster.
  /** The member is a learner, which serves only a few calls. Another member can be asked. */
  | 'learnerRefused'
  | 'noLeader'
  /** Only the leader serves this call. */
  | 'notLeader'
  /** Peers have not been connected for long enough to change the membership now. */
  | 'unhealthyCluster'
  /** The member is starting, stopping or overloaded. */
  | 'busy'
  /** The database has reached its quota. */
  | 'noSpace'
  | 'corrupt'
  // Membership.
  | 'notFound'
  | 'alreadyExists'
  | 'peerURLExists'
  | 'badPeerURL'
  | 'notLearner'
  | 'learnerNotReady'
  | 'tooManyLearners'
  /** The change would leave fewer started members than a quorum. */
  | 'notEnoughStarted'
  // Keys.
  | 'compacted'
  | 'futureRevision'
  | 'tooLarge'
  // Authentication.
  /** The call carried no user, and authentication is on. */
  | 'authRequired'
  | 'authFailed'
  /** The token is unknown or has expired: log in again. */
  | 'invalidToken'
  | 'permissionDenied'
  /** No such user. Whoever shows a certificate and has not logged in is the user of that name, which may not exist. */
  | 'userUnknown'
  | 'authNotEnabled'
  | 'rootMissing'
  // Downgrade.
  | 'badDowngradeVersion'
  | 'downgradeInProgress'
  | 'noDowngrade'
  // Answers that are not to be trusted.
  /** This etcd does not have the call. */
  | 'unsupported'
  | 'badAnswer'
  /** The answer is from another cluster than the one that was meant. */
  | 'wrongCluster'
  /** The bytes of a snapshot are not those that etcd read. */
  | 'badDigest'
  | 'other';

export interface EtcdError {
  readonly kind: EtcdErrorKind;
  readonly message: string;
  /** Milliseconds since 1970: no call to this member has gone well since then. Only clients that back off know it. */
  readonly since?: number;
}

export type Result<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: EtcdError };

/** Streams end with this when they fail. */
export class EtcdFailure extends Error {
  readonly error: EtcdError;
  constructor(error: EtcdError, options?: ErrorOptions) {
    super(error.message, options);
    this.name = 'EtcdFailure';
    this.error = error;
  }
}

export const failure = (kind: EtcdErrorKind, message: string): EtcdFailure => new EtcdFailure({ kind, message });

/** After these, a change may have been made although the call failed: look before repeating it. */
const UNCERTAIN: readonly EtcdErrorKind[] = ['disconnected', 'timeout', 'canceled', 'noLeader', 'noSpace', 'busy'];
export const mayHaveHappened = ({ kind }: EtcdError): boolean => UNCERTAIN.includes(kind);

/** etcd says what is wrong in words; these are the words, of 3.5, 3.6 and 3.7. The first that fits wins. */
const SAID: readonly (readonly [RegExp, EtcdErrorKind])[] = [
  [/rpc not supported for learner/, 'learnerRefused'],
  [/server stopped|too many requests|too many concurrent requests|cluster version not found|not capable/, 'busy'],
  [/no leader|leader changed|previous leader failure/, 'noLeader'],
  [/not leader/, 'notLeader'],
  [/request timed out|context deadline exceeded|timeout waiting/, 'timeout'],
  [/unhealthy cluster/, 'unhealthyCluster'],
  [/database space exceeded/, 'noSpace'],
  [/corrupt cluster/, 'corrupt'],
  [/Peer URLs already exists/, 'peerURLExists'],
  [/given member URLs are invalid/, 'badPeerURL'],
  [/too many learner members/, 'tooManyLearners'],
  [/in sync with leader/, 'learnerNotReady'],
  [/can only promote a learner member/, 'notLearner'],
  [/not enough started members/, 'notEnoughStarted'],
  [/bad leader transferee/, 'notFound'],
  [/has been compacted/, 'compacted'],
  [/is a future revision/, 'futureRevision'],
  [/request is too large|too many operations/, 'tooLarge'],
  [/root user does not/, 'rootMissing'],
  [/user name is empty/, 'authRequired'],
  [/authentication failed/, 'authFailed'],
  [/invalid auth token|revision of auth store is old/, 'invalidToken'],
  [/permission denied/, 'permissionDenied'],
  [/authentication is not enabled/, 'authNotEnabled'],
  [/user (name )?not found/, 'userUnknown'],
  [/downgrade target version/, 'badDowngradeVersion'],
  [/downgrade job in progress/, 'downgradeInProgress'],
  [/no inflight downgrade/, 'noDowngrade'],
  [/cluster ID mismatch/, 'wrongCluster'],
  [/not found/, 'notFound'],
  [/already exist/, 'alreadyExists'],
];

const NOT_CONNECTED = [
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EADDRNOTAVAIL',
  'EHOSTDOWN',
];
const CUT = /^(ECONN|EPIPE$|ENET|ERR_STREAM_|ERR_HTTP2_)/;
const TLS = /^(ERR_SSL_|ERR_TLS_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|EPROTO$|ERR_OSSL_|HOSTNAME_MISMATCH)/;

/** By gRPC code, for what has no words of etcd's. */
const BY_CODE: Partial<Record<Code, EtcdErrorKind>> = {
  [Code.DeadlineExceeded]: 'timeout',
  [Code.Canceled]: 'canceled',
  [Code.Unimplemented]: 'unsupported',
  [Code.Unavailable]: 'disconnected',
  [Code.Aborted]: 'disconnected',
  [Code.Internal]: 'badAnswer', // bytes that are no message; broken connections have been told apart before
  [Code.ResourceExhausted]: 'badAnswer',
  [Code.NotFound]: 'notFound',
  [Code.PermissionDenied]: 'permissionDenied',
  [Code.DataLoss]: 'corrupt',
};

export function classify(error: unknown): EtcdError {
  if (error instanceof EtcdFailure) return error.error;
  const known = ConnectError.from(error);
  const message = known.rawMessage;
  return { kind: kindOf(known, message, codesOf(error)), message };
}

function kindOf(known: ConnectError, message: string, codes: readonly string[]): EtcdErrorKind {
  if (codes.some((code) => TLS.test(code)) || /tlsv?1? alert|ERR_TLS|altname/i.test(message)) return 'tls';
  if (codes.some((code) => NOT_CONNECTED.includes(code)) || /ECONNREFUSED|ENOTFOUND/.test(message))
    return 'unreachable';
  if (codes.includes('ETIMEDOUT')) return 'unreachable';
  const reset = message.startsWith('http/2 ') && known.code !== Code.Canceled;
  if (reset || codes.some((code) => CUT.test(code))) return 'disconnected';
  if (message.startsWith('grpc: received message larger than max')) return 'tooLarge'; // what we sent, not what we got
  const said = message.startsWith('etcdserver:') || known.code === Code.Unknown ? wordsOf(message) : undefined;
  if (said) return said;
  if (message.startsWith('protocol error') || /message size|invalid (envelope|wire)|missing EndStream/i.test(message))
    return 'badAnswer';
  return BY_CODE[known.code] ?? 'other';
}

const wordsOf = (message: string): EtcdErrorKind | undefined => SAID.find(([words]) => words.test(message))?.[1];

/** Node tells what happened by a code somewhere in the chain of causes. */
function codesOf(error: unknown): readonly string[] {
  const codes: string[] = [];
  let current: unknown = error;
  for (let depth = 0; current instanceof Error && depth < 8; depth++) {
    if ('code' in current && typeof current.code === 'string') codes.push(current.code);
    current = current.cause;
  }
  return codes;
}
