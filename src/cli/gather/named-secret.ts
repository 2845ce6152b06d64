/** The Secret of `-s`: a user and a password, a client certificate, or both. For users who may not read the Secrets of the operator. */
import { textOf } from '../../access/evaluate/secret-set.ts';
import type { Account } from '../../etcd/auth-tokens.ts';
import type { TlsMaterial } from '../../etcd/transport.ts';
import type { Client } from '../../kube/client.ts';
import { secrets } from '../../kube/resources.ts';
import { UserError } from '../context.ts';

export interface NamedCredentials {
  readonly account?: Account;
  readonly certificate?: Pick<TlsMaterial, 'ca' | 'cert' | 'key'>;
}

/** Of the types kubernetes.io/basic-auth and kubernetes.io/tls; without a username, the password is that of root. */
export async function namedSecret(
  client: Pick<Client, 'get'>,
  namespace: string,
  given: string | undefined,
): Promise<NamedCredentials> {
  if (given === undefined) return {};
  const slash = given.indexOf('/');
  const ref =
    slash < 0 ? { namespace, name: given } : { namespace: given.slice(0, slash), name: given.slice(slash + 1) };
  const secret = await client.get(secrets, ref);
  if (!secret) throw new UserError(`there is no Secret ${ref.name} in namespace ${ref.namespace}`);
  const [password, cert, key, ca] = ['password', 'tls.crt', 'tls.key', 'ca.crt'].map((each) => textOf(secret, each));
  if (!password && !(cert && key))
    throw new UserError(`Secret ${ref.name} has neither a password nor tls.crt and tls.key`);
  if (cert && key && !ca)
    throw new UserError(`Secret ${ref.name} has no ca.crt: the certificates of the members cannot be verified`);
  return {
    ...(password && { account: { user: textOf(secret, 'username') || 'root', password } }),
    ...(cert && key && ca && { certificate: { ca, cert, key } }),
  };
}
