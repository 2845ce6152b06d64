/** The result of an agent: text from a Pod in a user's namespace, so it is validated as untrusted input. */
import Type, { type Static } from 'typebox';
import { Check } from 'typebox/value';
import { ArtifactSchema } from '../api/etcd-snapshot.ts';
import type { DeepReadonly } from '../api/meta.ts';
import { printable } from '../lib/printable.ts';

/** An agent that the kernel killed leaves no result; the kubelet reports this reason for its container. */
export const OOM_KILLED = 'OOMKilled';
export const OUT_OF_MEMORY = 'OutOfMemory';

/** Transient: a retry may succeed. */
const TRANSIENT = [
  'NoMemberReachable',
  'LoginRefused', // a new password may not be applied yet
  'StreamBroken',
  'SourceGrowing', // the store may be faster later
  'DigestMismatch',
  'StoreUnreachable',
  'NoSpace', // space may be freed
  'RestoreToolFailed',
  OUT_OF_MEMORY,
  'TimedOut',
  'Internal',
] as const;
/** Permanent: a user has to act. */
const PERMANENT = [
  'AccessDenied',
  'BucketNotFound',
  'ObjectExists',
  'ObjectLocked',
  'ObjectNotFound',
  'ManifestDamaged',
  'SnapshotDamaged',
  'WrongKey',
  'SnapshotTooNew',
  'AuthRequired',
  'PathRefused',
  'Misconfigured',
  'DrillFailed',
] as const;
export const FAILURES = [...TRANSIENT, ...PERMANENT] as const;
export type FailureReason = (typeof FAILURES)[number];

/** The exit code of a permanent failure: the Job's podFailurePolicy does not retry it. */
export const HOPELESS_EXIT = 2;
export const exitCodeOf = (result: Result): number =>
  result.ok ? 0 : TRANSIENT.some((reason) => reason === result.reason) ? 1 : HOPELESS_EXIT;

/** The kubelet keeps this much of a termination message. */
export const MAX_RESULT_BYTES = 4096;
const MAX_MESSAGE = 2048;

/** Failures that are about one stored snapshot: it cannot be restored as it is stored. */
export const DAMAGE = ['SnapshotDamaged', 'ManifestDamaged', 'ObjectNotFound', 'WrongKey'] as const;
export type Damage = (typeof DAMAGE)[number];
/** With these, the result fits into a termination message. */
export const MAX_DAMAGE_MESSAGE = 512;
export const MAX_ABSENT = 20;

const snapshotName = () => Type.String({ pattern: '^[a-z0-9][-a-z0-9.]{0,62}$' });
const whole = () => Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });

const failed = Type.Object({
  ok: Type.Literal(false),
  reason: Type.Enum([...FAILURES]),
  message: Type.String({ maxLength: MAX_MESSAGE }),
});
const ended = [
  Type.Object({ ok: Type.Literal(true), task: Type.Literal('snapshot'), artifact: ArtifactSchema }),
  Type.Object({
    ok: Type.Literal(true),
    task: Type.Literal('restore'),
    revision: Type.Optional(whole()),
    /** The data directory was restored before, or the cluster is bootstrapped. */
    already: Type.Optional(Type.Boolean()),
    /** The object that was the newest, where the task does not name one; and how many newer ones were damaged. */
    /** The first location could not be read: the copy was restored. */
    fromCopy: Type.Optional(Type.Boolean()),
    key: Type.Optional(Type.String({ pattern: '^[^\\u0000-\\u001f\\u007f]{1,1024}$' })),
    passedOver: Type.Optional(whole()),
  }),
  Type.Object({
    ok: Type.Literal(true),
    task: Type.Literal('drill'),
    revision: whole(),
    totalKeys: whole(),
    hashCompared: Type.Boolean(),
    durationMilliseconds: whole(),
    /** From the first byte of the download until the restored etcd has accepted a write. */
    recoveryMilliseconds: Type.Optional(whole()),
  }),
  Type.Object({
    ok: Type.Literal(true),
    task: Type.Literal('prune'),
    kept: whole(),
    removed: whole(),
    /** Of those that were to be removed: the store refuses until their retention or legal hold ends. */
    locked: Type.Optional(whole()),
    /** Of those that were removed: the store keeps their bytes as older versions. */
    hidden: Type.Optional(whole()),
  }),
  Type.Object({
    ok: Type.Literal(true),
    task: Type.Literal('scrub'),
    /** Absent: nothing is stored. */
    snapshot: Type.Optional(Type.Object({ name: snapshotName(), uid: Type.Optional(Type.String({ maxLength: 64 })) })),
    sizeBytes: Type.Optional(whole()),
    /** Absent: the snapshot is as it was when it was stored. */
    damage: Type.Optional(
      Type.Object({ reason: Type.Enum([...DAMAGE]), message: Type.String({ maxLength: MAX_DAMAGE_MESSAGE }) }),
    ),
    /** Of the damaged ones that the task names: they are stored no longer. */
    absent: Type.Optional(Type.Array(snapshotName(), { maxItems: MAX_ABSENT })),
  }),
  Type.Object({
    ok: Type.Literal(true),
    task: Type.Literal('copy'),
    uri: Type.String({ pattern: '^[^\\u0000-\\u001f\\u007f]{1,2048}$' }),
  }),
  Type.Object({
    ok: Type.Literal(true),
    task: Type.Literal('probe'),
    /** What is not permitted, although snapshots can be stored: retention and scrubs need it. */
    cannotList: Type.Optional(Type.String({ maxLength: MAX_DAMAGE_MESSAGE })),
    cannotDelete: Type.Optional(Type.String({ maxLength: MAX_DAMAGE_MESSAGE })),
  }),
  Type.Object({ ok: Type.Literal(true), task: Type.Literal('install-tools') }),
] as const;

const ResultSchema = Type.Union([failed, ...ended]);
export type Result = DeepReadonly<Static<typeof ResultSchema>>;
export type Success = Extract<Result, { readonly ok: true }>;
export type SnapshotResult = Extract<Success, { readonly task: 'snapshot' }>;

/** `undefined`: not a result that an agent writes. */
export function parseResult(text: string | undefined): Result | undefined {
  if (text === undefined || Buffer.byteLength(text) > MAX_RESULT_BYTES) return undefined;
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!Check(ResultSchema, json)) return undefined;
  const result = json as Result;
  return result.ok ? result : { ...result, message: printable(result.message) };
}

/** What the agent writes, truncated to what the kubelet keeps. */
export function resultText(result: Result): string {
  if (result.ok) return JSON.stringify(result);
  for (let length = MAX_MESSAGE; ; length = Math.floor(length / 2)) {
    const text = JSON.stringify({ ...result, message: printable(result.message).slice(0, length) });
    if (Buffer.byteLength(text) <= MAX_RESULT_BYTES) return text;
  }
}
