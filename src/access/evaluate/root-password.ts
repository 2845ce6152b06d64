/**
 * The password of root: what the user's Secret says, and what the operator has kept. The user's edit of a Secret takes the old
 * password along, and without it nobody could tell etcd the new one: so the operator keeps the one that was last proven, and,
 * while it is changed, the one that is to come. Pure: Secrets come in.
 */
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import { keptPasswordName } from '../../api/names.ts';
import { wantsAuth } from '../../api/tls.ts';
import { holding } from '../../domain/ownership.ts';
import type { Secret } from '../../gen/kube.ts';
import type { Secrets } from './secret-set.ts';
import type { PasswordProblem, PasswordView } from './view.ts';

export const ROOT = 'root';
/** In the user's Secret, and in the operator's: what etcd was last seen to accept. */
export const PASSWORD = 'password';
/** In the operator's: what etcd is about to be told, or was told by somebody who did not live to see its answer. */
export const NEXT = 'next';

/** etcd keeps passwords with bcrypt, which has no room for more. */
const MOST_BYTES = 72;

export interface RootPassword {
  readonly view: PasswordView;
  readonly given: string | undefined;
  readonly kept: { readonly secret?: Secret; readonly password?: string; readonly next?: string };
  /** What etcd may accept, the likeliest first. */
  readonly logins: readonly { readonly user: string; readonly password: string }[];
}

const refOf = ({ spec }: EtcdCluster): string => spec.auth?.rootCredentialsSecretRef?.name ?? '';

export const passwordSecrets = (cluster: EtcdCluster): readonly string[] =>
  wantsAuth(cluster.spec) ? [refOf(cluster), keptPasswordName(cluster.metadata.name ?? '')] : [];

/** `undefined` when nobody has to log in. */
export function rootPassword(cluster: EtcdCluster, secrets: Secrets): RootPassword | undefined {
  if (!wantsAuth(cluster.spec)) return undefined;
  const name = keptPasswordName(cluster.metadata.name ?? '');
  const held = holding(secrets.get(name), cluster.metadata.uid ?? '');
  const secret = held.is === 'ours' ? held.object : undefined;
  const [password, next] = [textIn(secret, PASSWORD), textIn(secret, NEXT)];
  const kept = {
    ...(secret && { secret }),
    ...(password !== undefined && { password }),
    ...(next !== undefined && { next }),
  };
  const { given, problem } = givenIn(secrets.get(refOf(cluster)), refOf(cluster));
  const foreign: PasswordProblem | undefined =
    held.is === 'foreign'
      ? { reason: 'NameConflict', message: `Secret ${name} exists and belongs to ${held.owner}` }
      : undefined;
  const said = foreign ?? problem;
  const candidates = [password, next, given].filter((text) => text !== undefined);
  return {
    view: { ...(said && { problem: said }), kept: keptAs(given, kept) },
    given,
    kept,
    logins: [...new Set(candidates)].map((text) => ({ user: ROOT, password: text })),
  };
}

function keptAs(given: string | undefined, { password, next }: RootPassword['kept']): PasswordView['kept'] {
  if (next !== undefined) return 'intended';
  if (password === undefined) return 'nothing';
  return given === undefined || given === password ? 'same' : 'another';
}

/** What is empty is not there; what is not text, or too long, is no password of etcd. */
function textIn(secret: Secret | undefined, key: string): string | undefined {
  const bytes = bytesIn(secret, key);
  return bytes.length > 0 && bytes.length <= MOST_BYTES && isText(bytes) ? bytes.toString() : undefined;
}
const bytesIn = (secret: Secret | undefined, key: string): Buffer => Buffer.from(secret?.data?.[key] ?? '', 'base64');
const isText = (bytes: Buffer): boolean => Buffer.from(bytes.toString()).equals(bytes);

/** Byte for byte, a line end included: what clusters of the earlier operator have is not to be guessed at. */
function givenIn(
  secret: Secret | undefined,
  name: string,
): { readonly given?: string; readonly problem?: PasswordProblem } {
  const missing = (message: string) => ({ problem: { reason: 'AuthCredentialsMissing', message } });
  const invalid = (message: string) => ({ problem: { reason: 'AuthCredentialsInvalid', message } });
  const bytes = bytesIn(secret, PASSWORD);
  if (!secret)
    return missing(`Secret ${name} is not there: create it with the password of root under the key password`);
  if (bytes.length === 0) return missing(`Secret ${name} has no password: put the password of root under that key`);
  if (bytes.length > MOST_BYTES)
    return invalid(`the password in Secret ${name} has ${bytes.length} bytes, and etcd takes at most ${MOST_BYTES}`);
  if (!isText(bytes)) return invalid(`the password in Secret ${name} is not UTF-8 text`);
  return { given: bytes.toString() };
}
