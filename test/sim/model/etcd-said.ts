/** The errors with which etcd refuses a call, as the client reports them. */
import type { EtcdError, EtcdErrorKind } from '../../../src/etcd/errors.ts';

const WORDS = {
  notEnoughStarted: 're-configuration failed due to not enough started members',
  unhealthyCluster: 'unhealthy cluster',
  peerURLExists: 'Peer URLs already exists',
  alreadyExists: 'it already exists',
  badPeerURL: 'given member URLs are invalid',
  tooManyLearners: 'too many learner members in cluster',
  learnerNotReady: 'can only promote a learner member which is in sync with leader',
  notLearner: 'can only promote a learner member',
  notFound: 'not found',
  learnerRefused: 'rpc not supported for learner',
  notLeader: 'not leader',
  timeout: 'request timed out',
  busy: 'cluster version not found during downgrade',
  noSpace: 'mvcc: database space exceeded',
  corrupt: 'corrupt cluster',
  compacted: 'mvcc: required revision has been compacted',
  futureRevision: 'mvcc: required revision is a future revision',
  tooLarge: 'request is too large',
  authRequired: 'user name is empty',
  userUnknown: 'user name not found',
  authFailed: 'authentication failed, invalid user ID or password',
  invalidToken: 'invalid auth token',
  permissionDenied: 'permission denied',
  authNotEnabled: 'authentication is not enabled',
  rootMissing: 'root user does not have root role',
  badDowngradeVersion: 'invalid downgrade target version',
  downgradeInProgress: 'cluster has a downgrade job in progress',
  noDowngrade: 'no inflight downgrade',
} as const satisfies Partial<Record<EtcdErrorKind, string>>;

export type Refusal = keyof typeof WORDS;
export const etcdError = (kind: Refusal): EtcdError => ({ kind, message: `etcdserver: ${WORDS[kind]}` });

/** No call of ours returns a value of this shape, so it can only be an error. */
export const isRefusal = (value: unknown): value is EtcdError =>
  typeof value === 'object' && value !== null && 'kind' in value && 'message' in value;
