/** What an agent tells: text from a Pod in somebody's namespace, and taken as such. */
import Type, { type Static } from 'typebox';
import { Check } from 'typebox/value';
import { ArtifactSchema } from '../api/etcd-snapshot.ts';
import type { DeepReadonly } from '../api/meta.ts';

/** Another attempt, a moment later, may end otherwise. */
const PASSING = [
  'NoMemberReachable',
  'LoginRefused', // a password may be on its way
  'StreamBroken',
  'DigestMismatch',
  'StoreUnreachable',
  'NoSpace', // others may make room
  'RestoreToolFailed',
  'TimedOut',
  'Internal',
] as const;
/** Somebody has to do something. */
const HOPELESS = [
  'AccessDenied',
  'BucketNotFound',
  'ObjectExists',
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
export const FAILURES = [...PASSING, ...HOPELESS] as const;
export type FailureReason = (typeof FAILURES)[number];

/** How the agent ends where another attempt is in vain: its Job makes none. */
export const HOPELESS_EXIT = 2;
export const exitCodeOf = (result: Result): number =>
  result.ok ? 0 : PASSING.some((reason) => reason === result.reason) ? 1 : HOPELESS_EXIT;

/** What Kubernetes keeps of a termination message. */
export const MAX_RESULT_BYTES = 4096;
const MAX_MESSAGE = 2048;

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
    /** The data was there already, or the cluster was begun. */
    already: Type.Optional(Type.Boolean()),
  }),
  Type.Object({
    ok: Type.Literal(true),
    task: Type.Literal('drill'),
    revision: whole(),
    totalKeys: whole(),
    hashCompared: Type.Boolean(),
    durationMilliseconds: whole(),
  }),
  Type.Object({ ok: Type.Literal(true), task: Type.Literal('prune'), kept: whole(), removed: whole() }),
  Type.Object({ ok: Type.Literal(true), task: Type.Literal('install-tools') }),
] as const;

const ResultSchema = Type.Union([failed, ...ended]);
export type Result = DeepReadonly<Static<typeof ResultSchema>>;
export type Success = Extract<Result, { readonly ok: true }>;
export type SnapshotResult = Extract<Success, { readonly task: 'snapshot' }>;

/** Letters that would move a cursor, or end a line of a log, have no place in a condition. */
const printable = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ').trim();

/** `undefined`: nothing that an agent of ours would write. */
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

/** As the agent writes it, within what Kubernetes keeps. */
export function resultText(result: Result): string {
  if (result.ok) return JSON.stringify(result);
  for (let length = MAX_MESSAGE; ; length = Math.floor(length / 2)) {
    const text = JSON.stringify({ ...result, message: printable(result.message).slice(0, length) });
    if (Buffer.byteLength(text) <= MAX_RESULT_BYTES) return text;
  }
}
