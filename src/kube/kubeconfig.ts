/** Where the API server is and who we are: from a kubeconfig file, or from inside a Pod. */
import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { parse } from 'yaml';
import type { Identity, IdentitySource } from './transport.ts';

interface ClusterEntry {
  readonly server?: string;
  readonly 'certificate-authority'?: string;
  readonly 'certificate-authority-data'?: string;
}
interface UserEntry {
  readonly 'client-certificate'?: string;
  readonly 'client-certificate-data'?: string;
  readonly 'client-key'?: string;
  readonly 'client-key-data'?: string;
  readonly token?: string;
  readonly tokenFile?: string;
}
interface KubeconfigFile {
  readonly 'current-context'?: string;
  readonly contexts?: readonly {
    readonly name: string;
    readonly context: { readonly cluster: string; readonly user: string };
  }[];
  readonly clusters?: readonly { readonly name: string; readonly cluster: ClusterEntry }[];
  readonly users?: readonly { readonly name: string; readonly user: UserEntry }[];
}

/** Tokens in a Pod live for an hour and are replaced long before; the files are read again this often. */
const REREAD_MS = 30_000;
const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

const decode = (data: string): string => Buffer.from(data, 'base64').toString('utf8');

/** Reads one kubeconfig file. Relative paths in it are relative to the file. */
export async function readKubeconfig(path: string): Promise<Identity> {
  const file = parse(await readFile(path, 'utf8')) as KubeconfigFile;
  const name = file['current-context'];
  const context = file.contexts?.find((c) => c.name === name)?.context;
  if (!context) throw new Error(`${path} has no context called ${JSON.stringify(name ?? '')}: set current-context`);
  const cluster = file.clusters?.find((c) => c.name === context.cluster)?.cluster;
  if (!cluster?.server) throw new Error(`${path} has no server for the cluster ${JSON.stringify(context.cluster)}`);
  const user = file.users?.find((u) => u.name === context.user)?.user ?? {};
  const text = async (data: string | undefined, at: string | undefined): Promise<string | undefined> =>
    data !== undefined ? decode(data) : at !== undefined ? readFile(resolve(dirname(path), at), 'utf8') : undefined;
  const [ca, cert, key, tokenText] = await Promise.all([
    text(cluster['certificate-authority-data'], cluster['certificate-authority']),
    text(user['client-certificate-data'], user['client-certificate']),
    text(user['client-key-data'], user['client-key']),
    text(undefined, user.tokenFile),
  ]);
  const token = user.token ?? tokenText?.trim();
  return {
    server: cluster.server.replace(/\/+$/, ''),
    ...(ca !== undefined && { ca }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
    ...(token !== undefined && { token }),
  };
}

async function readServiceAccount(env: Readonly<Record<string, string | undefined>>): Promise<Identity> {
  const host = env['KUBERNETES_SERVICE_HOST'];
  if (!host) throw new Error('this is not a Pod (KUBERNETES_SERVICE_HOST is not set): pass --kubeconfig');
  const port = env['KUBERNETES_SERVICE_PORT'] ?? '443';
  const [token, ca] = await Promise.all([
    readFile(`${SERVICE_ACCOUNT}/token`, 'utf8'),
    readFile(`${SERVICE_ACCOUNT}/ca.crt`, 'utf8'),
  ]);
  return { server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`, token: token.trim(), ca };
}

/** Reads again from time to time; a file that cannot be read in the middle of its rotation leaves the last answer. */
export function rereading(read: () => Promise<Identity>, now: () => number): IdentitySource {
  let last: { readonly identity: Identity; readonly at: number } | undefined;
  return async () => {
    if (last && now() - last.at < REREAD_MS) return last.identity;
    try {
      last = { identity: await read(), at: now() };
    } catch (error) {
      if (!last) throw error;
      last = { ...last, at: now() };
    }
    return last.identity;
  };
}

export const identityFromKubeconfig = (path: string, now: () => number): IdentitySource =>
  rereading(() => readKubeconfig(path), now);

export const identityFromPod = (env: Readonly<Record<string, string | undefined>>, now: () => number): IdentitySource =>
  rereading(() => readServiceAccount(env), now);

/** The namespace that a Pod runs in. */
export const readOwnNamespace = async (): Promise<string | undefined> => {
  try {
    return (await readFile(`${SERVICE_ACCOUNT}/namespace`, 'utf8')).trim();
  } catch {
    return undefined;
  }
};
