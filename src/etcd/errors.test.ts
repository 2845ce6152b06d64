import { Code, ConnectError } from '@connectrpc/connect';
import { expect, test } from 'vitest';
import { classify } from './errors.ts';

test.each([
  ['connect ECONNREFUSED 127.0.0.1:2379', Code.Unavailable, 'unreachable'],
  ['http/2 stream closed with error code INTERNAL_ERROR', Code.Internal, 'unreachable'],
  ['the operation timed out', Code.DeadlineExceeded, 'timeout'],
  ['etcdserver: no leader', Code.Unavailable, 'noLeader'],
  ['etcdserver: rpc not supported for learner', Code.Unavailable, 'learner'],
  ['etcdserver: user name is empty', Code.InvalidArgument, 'authRequired'],
  ['etcdserver: permission denied', Code.PermissionDenied, 'authRequired'],
  ['etcdserver: invalid auth token', Code.Unauthenticated, 'authRejected'],
  ['etcdserver: key is not provided', Code.InvalidArgument, 'other'],
] as const)('"%s" is told apart', (message, code, kind) => {
  expect(classify(new ConnectError(message, code))).toEqual({ kind, message });
});

test('what is no gRPC error is still an answer', () => {
  expect(classify(new TypeError('boom'))).toEqual({ kind: 'other', message: 'boom' });
});
