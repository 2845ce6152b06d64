import { Code, ConnectError } from '@connectrpc/connect';
import { expect, test } from 'vitest';
import { classify, EtcdFailure, mayHaveHappened } from './errors.ts';

/** The messages and codes of etcd 3.5, 3.6 and 3.7; where a code differs between versions, each is a row. */
test.each([
  ['etcdserver: no leader', Code.Unavailable, 'noLeader'],
  ['etcdserver: leader changed', Code.Unavailable, 'noLeader'],
  ['etcdserver: request timed out, possibly due to previous leader failure', Code.Unavailable, 'noLeader'],
  ['etcdserver: request timed out', Code.Unavailable, 'timeout'],
  ['etcdserver: request timed out, possibly due to connection lost', Code.Unavailable, 'timeout'],
  ['etcdserver: request timed out, waiting for the applied index took too long', Code.Unavailable, 'timeout'],
  ['etcdserver: not leader', Code.FailedPrecondition, 'notLeader'],
  ['etcdserver: rpc not supported for learner', Code.Unavailable, 'learnerRefused'], // 3.5
  ['etcdserver: rpc not supported for learner', Code.FailedPrecondition, 'learnerRefused'], // 3.6, 3.7
  ['etcdserver: unhealthy cluster', Code.Unavailable, 'unhealthyCluster'],
  ['etcdserver: server stopped', Code.Unavailable, 'busy'],
  ['etcdserver: too many requests', Code.ResourceExhausted, 'busy'],
  ['etcdserver: mvcc: database space exceeded', Code.ResourceExhausted, 'noSpace'],
  ['etcdserver: corrupt cluster', Code.DataLoss, 'corrupt'],
  ['etcdserver: member not found', Code.NotFound, 'notFound'],
  ['etcdserver: requested lease not found', Code.NotFound, 'notFound'],
  ['etcdserver: bad leader transferee', Code.FailedPrecondition, 'notFound'],
  ['etcdserver: member ID already exist', Code.FailedPrecondition, 'alreadyExists'],
  ['etcdserver: user name already exists', Code.FailedPrecondition, 'alreadyExists'],
  ['etcdserver: Peer URLs already exists', Code.FailedPrecondition, 'peerURLExists'],
  ['etcdserver: given member URLs are invalid', Code.InvalidArgument, 'badPeerURL'],
  ['etcdserver: can only promote a learner member', Code.FailedPrecondition, 'notLearner'],
  [
    'etcdserver: can only promote a learner member which is in sync with leader',
    Code.FailedPrecondition,
    'learnerNotReady',
  ],
  ['etcdserver: too many learner members in cluster', Code.FailedPrecondition, 'tooManyLearners'],
  [
    'etcdserver: re-configuration failed due to not enough started members',
    Code.FailedPrecondition,
    'notEnoughStarted',
  ],
  ['etcdserver: mvcc: required revision has been compacted', Code.OutOfRange, 'compacted'],
  ['etcdserver: mvcc: required revision is a future revision', Code.OutOfRange, 'futureRevision'],
  ['etcdserver: request is too large', Code.InvalidArgument, 'tooLarge'],
  ['etcdserver: user name is empty', Code.InvalidArgument, 'authRequired'],
  ['etcdserver: authentication failed, invalid user ID or password', Code.InvalidArgument, 'authFailed'],
  ['etcdserver: invalid auth token', Code.Unauthenticated, 'invalidToken'],
  ['etcdserver: revision of auth store is old', Code.InvalidArgument, 'invalidToken'],
  ['etcdserver: permission denied', Code.PermissionDenied, 'permissionDenied'],
  ['etcdserver: user name not found', Code.FailedPrecondition, 'userUnknown'],
  ['auth: user not found', Code.Unknown, 'userUnknown'],
  ['etcdserver: member not found', Code.NotFound, 'notFound'],
  ['etcdserver: authentication is not enabled', Code.FailedPrecondition, 'authNotEnabled'],
  ['etcdserver: root user does not exist', Code.FailedPrecondition, 'rootMissing'],
  ['etcdserver: root user does not have root role', Code.FailedPrecondition, 'rootMissing'],
  ['etcdserver: wrong downgrade target version format', Code.InvalidArgument, 'badDowngradeVersion'],
  ['etcdserver: invalid downgrade target version', Code.InvalidArgument, 'badDowngradeVersion'],
  ['etcdserver: cluster has a downgrade job in progress', Code.FailedPrecondition, 'downgradeInProgress'],
  ['etcdserver: no inflight downgrade job', Code.FailedPrecondition, 'noDowngrade'],
  ['etcdserver: cluster ID mismatch', Code.FailedPrecondition, 'wrongCluster'],
  ['etcdserver: key is not provided', Code.InvalidArgument, 'other'],
] as const)('"%s" with code %s is %s', (message, code, kind) => {
  expect(classify(new ConnectError(message, code))).toEqual({ kind, message });
});

test.each([
  ['connect ECONNREFUSED 127.0.0.1:2379', Code.Unavailable, 'unreachable'],
  ['http/2 stream closed with error code INTERNAL_ERROR', Code.Internal, 'disconnected'],
  ['http/2 stream closed with error code REFUSED_STREAM (0x7)', Code.Unavailable, 'disconnected'],
  ['http/2 stream closed with error code CANCEL (0x8)', Code.Canceled, 'canceled'],
  ['the operation timed out', Code.DeadlineExceeded, 'timeout'],
  ['This operation was aborted', Code.Canceled, 'canceled'],
  ['unknown method Downgrade', Code.Unimplemented, 'unsupported'],
  ['message size 9000000 is larger than configured readMaxBytes 262144', Code.ResourceExhausted, 'badAnswer'],
  ['grpc: received message larger than max (2097165 vs. 2097152)', Code.ResourceExhausted, 'tooLarge'],
  ['protocol error: missing output message for unary method', Code.Unknown, 'badAnswer'],
] as const)('"%s" from the connection is classified too', (message, code, kind) => {
  expect(classify(new ConnectError(message, code))).toEqual({ kind, message });
});

test.each([
  ['ECONNREFUSED', 'unreachable'],
  ['EHOSTUNREACH', 'unreachable'],
  ['ETIMEDOUT', 'unreachable'],
  ['ECONNRESET', 'disconnected'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'tls'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'tls'],
  ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'tls'],
] as const)("Node's %s is %s", (code, kind) => {
  const cause = Object.assign(new Error('some words'), { code });
  expect(classify(new ConnectError('some words', Code.Internal, undefined, undefined, cause)).kind).toBe(kind);
});

test('an error that is no gRPC error is classified, too', () => {
  expect(classify(new TypeError('boom'))).toEqual({ kind: 'other', message: 'boom' });
});

test('a failure of ours keeps its kind', () => {
  const error = { kind: 'badDigest', message: 'truncated' } as const;
  expect(classify(new EtcdFailure(error))).toBe(error);
});

test('a call that was never sent has not happened; one that broke off may have', () => {
  expect(mayHaveHappened({ kind: 'unreachable', message: '' })).toBe(false);
  expect(mayHaveHappened({ kind: 'learnerRefused', message: '' })).toBe(false);
  expect(mayHaveHappened({ kind: 'timeout', message: '' })).toBe(true);
  expect(mayHaveHappened({ kind: 'disconnected', message: '' })).toBe(true);
});
