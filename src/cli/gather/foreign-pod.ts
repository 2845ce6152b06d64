/** A Pod that runs etcd without an EtcdCluster: how it is reached follows from its command line and its volumes. */
import { dirname } from 'node:path';
import { textOf } from '../../access/evaluate/secret-set.ts';
import type { TlsMaterial } from '../../etcd/transport.ts';
import type { Pod } from '../../gen/kube.ts';
import type { Client } from '../../kube/client.ts';
import { secrets } from '../../kube/resources.ts';
import { UserError } from '../context.ts';
import type { ClusterAccess } from './access.ts';
import type { NamedCredentials } from './named-secret.ts';
import type { Place } from './session.ts';

/** The server certificate of such a Pod must have this name. */
const HOST = 'localhost';

const flagsOf = (pod: Pod): readonly string[] => {
  const container = pod.spec?.containers.find(({ name }) => name === 'etcd') ?? pod.spec?.containers[0];
  return [...(container?.command ?? []), ...(container?.args ?? [])];
};
const valueOf = (flags: readonly string[], name: string): string | undefined =>
  flags.find((flag) => flag.startsWith(`--${name}=`))?.slice(name.length + 3);

const certificateFile = (pod: Pod): string | undefined => valueOf(flagsOf(pod), 'cert-file');

/** Clients must have a certificate. */
const isMutual = (pod: Pod): boolean =>
  flagsOf(pod).some((flag) => /^--client-cert-auth(=true)?$/.test(flag) || flag.startsWith('--trusted-ca-file='));

export const foreignPlace = (pod: Pod): Place => ({
  name: pod.metadata.name ?? '',
  namespace: pod.metadata.namespace ?? '',
  scheme: certificateFile(pod) === undefined ? 'http' : 'https',
  host: HOST,
});

/** The Secret behind the folder of the certificate; with mTLS, the server's own certificate is the client's, too. */
export async function foreignAccess(
  client: Pick<Client, 'get'>,
  pod: Pod,
  { account, certificate }: NamedCredentials,
): Promise<ClusterAccess> {
  const { namespace = '', name = '' } = pod.metadata;
  const base = { cluster: `${namespace}/${name}`, ...(account && { passwords: () => [account] }) };
  const file = certificateFile(pod);
  if (file === undefined) return { access: base };
  if (certificate) return { access: { ...base, tls: () => ({ ...certificate, serverName: HOST }) } };
  const secretName = secretBehind(pod, dirname(file));
  if (secretName === undefined)
    throw new UserError(`${name} serves TLS, and no Secret is mounted at ${dirname(file)}: its CA is unknown`);
  const secret = await client.get(secrets, { namespace, name: secretName });
  if (!secret) throw new UserError(`Secret ${secretName}, which ${name} mounts, does not exist`);
  const [ca, cert, key] = ['ca.crt', 'tls.crt', 'tls.key'].map((each) => textOf(secret, each));
  if (!ca) throw new UserError(`Secret ${secretName} has no ca.crt: the certificate of ${name} cannot be verified`);
  const material: TlsMaterial = { ca, serverName: HOST, ...(isMutual(pod) && cert && key && { cert, key }) };
  return { access: { ...base, tls: () => material } };
}

function secretBehind(pod: Pod, folder: string): string | undefined {
  const container = pod.spec?.containers.find(({ name }) => name === 'etcd') ?? pod.spec?.containers[0];
  const mount = container?.volumeMounts?.find(({ mountPath }) => mountPath.replace(/\/$/, '') === folder);
  const volume = pod.spec?.volumes?.find(({ name }) => name === mount?.name);
  return volume?.secret?.secretName ?? volume?.projected?.sources?.find(({ secret }) => secret)?.secret?.name;
}
