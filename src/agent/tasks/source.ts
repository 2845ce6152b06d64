/** The member that a snapshot is taken from: its status, its database as a stream, and how either can fail. */
import type { FailureReason } from '../../domain/agent-result.ts';
import { MOUNTS, type SnapshotTask } from '../../domain/agent-task.ts';
import { mebibytes } from '../../domain/restore-space.ts';
import { type Access, type Ask, EtcdClient, type MemberStatus } from '../../etcd/client.ts';
import { type EtcdError, type EtcdErrorKind, EtcdFailure, type Result } from '../../etcd/errors.ts';
import { hexId } from '../../etcd/ids.ts';
import type { SnapshotStream } from '../../etcd/snapshot.ts';
import { AgentFailure } from '../failure.ts';
import type { Manifest } from '../format/manifest.ts';
import { neededSecretFile } from '../secrets.ts';

/** For a call that a healthy member serves at once. */
const QUESTION_MS = 10_000;
/** For a call that makes the member read all keys. */
const COUNT_MS = 60_000;
/**
 * The member applies nothing while it computes this hash, for a second or two each gigabyte. Above this size, only a follower
 * computes it: on a leader, or an only member, all writes of the cluster would wait. A restore drill can do without.
 */
const HASHED_BYTES = 64 * 1024 ** 2;
/** The stream of a slow store makes the member keep freed pages: after this growth the snapshot is given up. */
const MAX_GROWTH = 0.08;
const MIN_GROWTH_BYTES = 16 * 1024 ** 2;
/** Of the quota. */
const NEARLY_FULL = 0.9;
/** The revision may be compacted between two calls. */
const ATTEMPTS = 5;

export interface Facts {
  readonly clusterId: string;
  /** The approximate size of the stream. */
  readonly databaseBytes: number;
  readonly reported: Pick<Manifest, 'revision' | 'totalKeys' | 'etcdVersion' | 'storageVersion' | 'authEnabled'>;
  /** Computed by the member while it streams: of its keys at the revision, so the time does not matter. */
  readonly hash: Promise<Pick<Manifest, 'hash'>>;
}

export interface Source {
  facts(): Promise<Facts>;
  stream(): SnapshotStream;
  /** Why the stream must not be held up any longer. */
  growth(since: Facts): Promise<AgentFailure | undefined>;
  close(): void;
}

export type From = SnapshotTask['from'];

export async function openSource(from: From, signal: AbortSignal): Promise<Source> {
  const client = new EtcdClient(() => performance.now());
  const access = await accessTo(from);
  const ask = (timeoutMs: number): Ask => ({ endpoint: from.endpoint, timeoutMs, signal, access });
  const must = <T>(answer: Result<T>): T => {
    if (answer.ok) return answer.value;
    throw sourceFailure(from, answer.error, 'asked');
  };

  const revisionAndKeys = async (): Promise<{ readonly status: MemberStatus; readonly totalKeys: bigint }> => {
    for (let attempt = 1; ; attempt++) {
      const status = must(await client.status(ask(QUESTION_MS)));
      if (status.isLearner) throw sourceFailure(from, { kind: 'learnerRefused', message: '' }, 'asked');
      const { revision } = status;
      const counted = await client.kv.count(ask(COUNT_MS), { serializable: true, revision });
      const compacted = !counted.ok && counted.error.kind === 'compacted';
      if (!compacted || attempt === ATTEMPTS) return { status, totalKeys: must(counted) };
    }
  };

  const hashAt = async (status: MemberStatus): Promise<Pick<Manifest, 'hash'>> => {
    if (!isHashed(status)) return {};
    const { revision } = status;
    const answer = await client.maintenance.hashKV(ask(COUNT_MS), revision);
    if (!answer.ok) return {};
    const { hash, compactRevision } = answer.value;
    return { hash: { revision: Number(revision), hash, compactRevision: Number(compactRevision) } };
  };

  /** Needs a quorum. When it is lost, the operator's own record is used. */
  const authEnabled = async (): Promise<boolean> => {
    const answer = await client.auth.status(ask(QUESTION_MS));
    if (!answer.ok && NO_QUORUM.includes(answer.error.kind)) return from.auth;
    return must(answer).enabled;
  };

  return {
    facts: async () => {
      const { status, totalKeys } = await revisionAndKeys();
      const reported = {
        revision: Number(status.revision),
        totalKeys: Number(totalKeys),
        etcdVersion: status.version,
        ...(status.storageVersion !== undefined && { storageVersion: status.storageVersion }),
        authEnabled: await authEnabled(),
      };
      return { reported, hash: hashAt(status), clusterId: hexId(status.clusterId), databaseBytes: status.dbSize };
    },
    stream: () => client.maintenance.snapshot(ask(0)),
    growth: async ({ databaseBytes }) => {
      const status = await client.status(ask(QUESTION_MS));
      return status.ok ? grownTooMuch(from, databaseBytes, status.value) : undefined; // a dead member ends the stream itself
    },
    close: () => client.close(),
  };
}

export const isHashed = ({ dbSize, leader, memberId }: Pick<MemberStatus, 'dbSize' | 'leader' | 'memberId'>): boolean =>
  dbSize <= HASHED_BYTES || (leader !== 0n && leader !== memberId);

export function grownTooMuch(
  { member }: Pick<From, 'member'>,
  before: number,
  { dbSize, dbSizeQuota = Number.POSITIVE_INFINITY }: Pick<MemberStatus, 'dbSize' | 'dbSizeQuota'>,
): AgentFailure | undefined {
  const grown = dbSize - before;
  if (grown <= Math.max(MAX_GROWTH * before, MIN_GROWTH_BYTES) && (dbSize <= NEARLY_FULL * dbSizeQuota || grown <= 0))
    return undefined;
  return new AgentFailure(
    'SourceGrowing',
    `the database of member ${member} grew from ${mebibytes(before)} to ${mebibytes(dbSize)} while a slow store held up its stream, and the node’s disk has no room to spool it: the snapshot was given up to spare the member. Use a faster store, or nodes with more ephemeral storage`,
  );
}

async function accessTo({ endpoint, tls, auth }: From): Promise<Access> {
  const text = async (...file: Parameters<typeof neededSecretFile>): Promise<string> =>
    (await neededSecretFile(...file)).toString();
  const own = 'the Secret with the operator’s client certificate';
  const material = tls && {
    ca: await text(MOUNTS.etcdCa, 'ca.crt', 'the Secret with the CA bundle of the members'),
    serverName: tls.serverName,
    ...(tls.client && {
      cert: await text(MOUNTS.etcdClient, 'tls.crt', own),
      key: await text(MOUNTS.etcdClient, 'tls.key', own),
    }),
  };
  const password = auth ? await text(MOUNTS.etcdRoot, 'password', 'the Secret with the root password') : undefined;
  return {
    cluster: endpoint,
    ...(material && { tls: () => material }),
    ...(password !== undefined && { passwords: () => [{ user: 'root', password }] }),
  };
}

/** Each chunk as it is received; an error of the stream becomes an AgentFailure. */
export async function* piecesOf(from: From, stream: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* stream;
  } catch (error) {
    throw error instanceof EtcdFailure ? sourceFailure(from, error.error, 'streaming') : error;
  }
}

type Doing = 'asked' | 'streaming';

/** A member that responds to other calls, and not to this one. */
const NO_QUORUM: readonly EtcdErrorKind[] = ['noLeader', 'timeout'];

const AUTH_KINDS: readonly EtcdErrorKind[] = [
  'authRequired',
  'authFailed',
  'invalidToken',
  'permissionDenied',
  'userUnknown',
];

export function sourceFailure({ member, endpoint, auth }: From, { kind, message }: EtcdError, doing: Doing) {
  const who = `member ${member} at ${endpoint}`;
  const failed = (reason: FailureReason, text: string): AgentFailure => new AgentFailure(reason, text);
  if (kind === 'learnerRefused')
    return failed('NoMemberReachable', `${who} is a learner, which may lack data: wait until it is promoted`);
  if (kind === 'tls')
    return failed('NoMemberReachable', `TLS handshake with ${who} failed: ${message}. Check the certificates and CAs`);
  if (AUTH_KINDS.includes(kind)) {
    const what = auth
      ? 'refuses the root password of the Secret'
      : 'has auth enabled, and the agent has no root password';
    return failed('LoginRefused', `${who} ${what}: ${message}. Check spec.auth of the cluster and its Secret`);
  }
  if (kind === 'badDigest')
    return failed('DigestMismatch', `the stream of ${who} does not match its digest: ${message}. It will be retried`);
  if (kind === 'corrupt')
    return failed('NoMemberReachable', `${who} reports that its data is corrupt: ${message}. Replace the member`);
  if (doing === 'streaming')
    return failed(
      'StreamBroken',
      `the stream of ${who} broke: ${message}. It will be retried; check why the member stopped`,
    );
  return failed('NoMemberReachable', `${who} does not respond: ${message}. Check that it runs and is reachable`);
}
