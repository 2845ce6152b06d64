/**
 * The root password: the user's Secret, and the operator's own copy. A user who edits the Secret overwrites the old password, which the
 * operator needs to set the new one: so it keeps the password that etcd last accepted and, during a change, the next one. Pure.
 */
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import { keptPasswordName } from '../../api/names.ts';
import { wantsAuth } from '../../api/tls.ts';
import type { Blocked } from '../../domain/disruption.ts';
import { holding } from '../../domain/ownership.ts';
import type { Secret } from '../../gen/kube.ts';
import { present } from '../../lib/present.ts';
import type { Secrets } from './secret-set.ts';
import type { PasswordView } from './view.ts';

export const ROOT = 'root';
/** In the user's Secret; in the operator's copy, the password that etcd last accepted. */
export const PASSWORD = 'password';
/** In the operator's copy: the password that is about to be set, or was set by an operator that was killed before etcd responded. */
export const NEXT = 'next';

/** etcd hashes passwords with bcrypt, which takes at most 72 bytes. */
const MAX_BYTES = 72;

export interface RootPassword {
  readonly view: PasswordView;
  readonly given: string | undefined;
  readonly kept: { readonly secret?: Secret; readonly password?: string; readonly next?: string };
  /** Credentials that etcd may accept, the likeliest first. */
  readonly passwords: readonly { readonly user: string; readonly password: string }[];
}

const refOf = ({ spec }: EtcdCluster): string => spec.auth?.rootCredentialsSecretRef?.name ?? '';

export const passwordSecrets = (cluster: EtcdCluster): readonly string[] =>
  wantsAuth(cluster.spec) ? [refOf(cluster), keptPasswordName(cluster.metadata.name ?? '')] : [];

/** `undefined` when auth is not enabled in the spec. */
export function rootPassword(cluster: EtcdCluster, secrets: Secrets): RootPassword | undefined {
  if (!wantsAuth(cluster.spec)) return undefined;
  const name = keptPasswordName(cluster.metadata.name ?? '');
  const held = holding(secrets.get(name), cluster.metadata.uid ?? '');
  const secret = held.is === 'ours' ? held.object : undefined;
  const [password, next] = [textIn(secret, PASSWORD), textIn(secret, NEXT)];
  const kept = present({ secret, password, next });
  const { given, problem } = givenIn(secrets.get(refOf(cluster)), refOf(cluster));
  const foreign: Blocked | undefined =
    held.is === 'foreign'
      ? { reason: 'NameConflict', message: `Secret ${name} exists and belongs to ${held.owner}` }
      : undefined;
  const worst = foreign ?? problem;
  const candidates = [password, next, given].filter((text) => text !== undefined);
  return {
    view: { ...(worst && { problem: worst }), kept: keptAs(given, kept) },
    given,
    kept,
    passwords: [...new Set(candidates)].map((text) => ({ user: ROOT, password: text })),
  };
}

function keptAs(given: string | undefined, { password, next }: RootPassword['kept']): PasswordView['kept'] {
  if (next !== undefined) return 'intended';
  if (password === undefined) return 'nothing';
  return given === undefined || given === password ? 'same' : 'another';
}

/** An empty value counts as missing; one that is not UTF-8, or too long, is not a password that etcd accepts. */
function textIn(secret: Secret | undefined, key: string): string | undefined {
  const bytes = bytesIn(secret, key);
  return bytes.length > 0 && bytes.length <= MAX_BYTES && isText(bytes) ? bytes.toString() : undefined;
}
const bytesIn = (secret: Secret | undefined, key: string): Buffer => Buffer.from(secret?.data?.[key] ?? '', 'base64');
const isText = (bytes: Buffer): boolean => Buffer.from(bytes.toString()).equals(bytes);

/** Byte for byte, a trailing newline included: clusters of the earlier operator may have it in their password. */
function givenIn(secret: Secret | undefined, name: string): { readonly given?: string; readonly problem?: Blocked } {
  const missing = (message: string) => ({ problem: { reason: 'AuthCredentialsMissing', message } });
  const invalid = (message: string) => ({ problem: { reason: 'AuthCredentialsInvalid', message } });
  const bytes = bytesIn(secret, PASSWORD);
  if (!secret) return missing(`Secret ${name} does not exist: create it with the root password under the key password`);
  if (bytes.length === 0) return missing(`Secret ${name} has no key password: add the root password under that key`);
  if (bytes.length > MAX_BYTES)
    return invalid(
      `the password in Secret ${name} has ${bytes.length} bytes, and etcd accepts at most ${MAX_BYTES}: use a shorter one`,
    );
  if (!isText(bytes)) return invalid(`the password in Secret ${name} is not UTF-8 text: use another one`);
  return { given: bytes.toString() };
}
