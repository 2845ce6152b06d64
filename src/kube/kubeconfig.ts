/** The API server's address and credentials: from a kubeconfig file, or from inside a Pod. */
import { readFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { parse } from 'yaml';
import { type ExecEntry, execIdentity } from './exec-credential.ts';
import { type Identity, type IdentitySource, rereading } from './identity.ts';
import { proxyFromEnvironment } from './proxy.ts';

interface ClusterEntry {
  readonly server?: string;
  readonly 'certificate-authority'?: string;
  readonly 'certificate-authority-data'?: string;
  readonly 'tls-server-name'?: string;
  readonly 'insecure-skip-tls-verify'?: boolean;
  readonly 'proxy-url'?: string;
}
interface UserEntry {
  readonly 'client-certificate'?: string;
  readonly 'client-certificate-data'?: string;
  readonly 'client-key'?: string;
  readonly 'client-key-data'?: string;
  readonly token?: string;
  readonly tokenFile?: string;
  readonly exec?: ExecEntry;
  readonly username?: string;
  readonly 'auth-provider'?: unknown;
  readonly as?: string;
  readonly 'as-groups'?: readonly string[];
}
interface ContextEntry {
  readonly cluster?: string;
  readonly user?: string;
  readonly namespace?: string;
}
export interface Kubeconfig {
  readonly 'current-context'?: string;
  readonly contexts?: readonly { readonly name: string; readonly context: ContextEntry }[] | null;
  readonly clusters?: readonly { readonly name: string; readonly cluster: ClusterEntry }[] | null;
  readonly users?: readonly { readonly name: string; readonly user: UserEntry }[] | null;
}

type Env = Readonly<Record<string, string | undefined>>;

const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';
const decode = (data: string): string => Buffer.from(data, 'base64').toString('utf8');

const text = async (data: string | undefined, file: string | undefined, folder: string): Promise<string | undefined> =>
  data ? decode(data) : file ? readFile(resolve(folder, file), 'utf8') : undefined;

/** Who reads the file: a user may act as another one and accept any API server, the operator may not. */
export type Reader = 'operator' | 'user';

/**
 * Unsupported settings are refused: to ignore them would authenticate as another user, or skip verification of the API
 * server.
 */
function refuseUnsupported(cluster: ClusterEntry, user: UserEntry, path: string, reader: Reader): void {
  const insecure = cluster['insecure-skip-tls-verify'] === true;
  const isOperator = reader === 'operator';
  const refused: readonly (readonly [boolean, string])[] = [
    [insecure && isOperator, 'insecure-skip-tls-verify: give the certificate-authority instead'],
    [cluster['proxy-url'] !== undefined && isOperator, 'proxy-url: reach the API server without a proxy'],
    [user.as !== undefined && isOperator, 'as: use credentials of that user instead'],
    [user['auth-provider'] !== undefined, 'auth-provider: use an exec plugin instead, as kubectl does since 1.26'],
    [user.username !== undefined, 'username: use a token or a certificate instead'],
  ];
  for (const [is, what] of refused)
    if (is) throw new Error(`${path} uses something that is not supported here, ${what}`);
}

/** Reads a file as kubectl does. Relative paths are relative to it. */
export async function readKubeconfig(path: string, env: Env = {}): Promise<Identity> {
  const content = await readFile(path, 'utf8').catch((error: Error) => {
    throw new Error(`cannot read the kubeconfig ${path}: ${error.message}`, { cause: error });
  });
  return identityIn((parse(content) ?? {}) as Kubeconfig, path, env);
}

/** The identity of the current context. `path`: of the file, for relative paths and messages. */
export async function identityIn(
  config: Kubeconfig,
  path: string,
  env: Env,
  reader: Reader = 'operator',
): Promise<Identity> {
  const folder = dirname(resolve(path));
  const current = config['current-context'] ?? '';
  const context = config.contexts?.find(({ name }) => name === current)?.context;
  if (!context)
    throw new Error(`${path} has no context called ${JSON.stringify(current)}: set current-context or name one`);
  const cluster = config.clusters?.find(({ name }) => name === context.cluster)?.cluster;
  if (!cluster?.server)
    throw new Error(`${path} has no server for the cluster ${JSON.stringify(context.cluster ?? '')}`);
  const user = config.users?.find(({ name }) => name === context.user)?.user ?? {};
  refuseUnsupported(cluster, user, path, reader);
  const ca = await text(cluster['certificate-authority-data'], cluster['certificate-authority'], folder);
  const server = cluster.server.replace(/\/+$/, '');
  const proxy = reader === 'user' ? cluster['proxy-url'] || proxyFromEnvironment(server, env) : undefined;
  const reach = {
    server,
    ...(proxy !== undefined && { proxy }),
    ...(ca !== undefined && { ca }),
    ...(cluster['tls-server-name'] && { serverName: cluster['tls-server-name'] }),
    ...(cluster['insecure-skip-tls-verify'] === true && { insecure: true }),
    ...(user.as !== undefined && { impersonate: { user: user.as, groups: user['as-groups'] ?? [] } }),
    ...(context.namespace && { namespace: context.namespace }),
  };
  const { exec } = user;
  return {
    ...reach,
    ...(await (exec ? execIdentity(exec, { env, folder, cluster: reach }) : credentials(user, folder))),
  };
}

async function credentials(user: UserEntry, folder: string): Promise<Partial<Identity>> {
  const [cert, key, tokenText] = await Promise.all([
    text(user['client-certificate-data'], user['client-certificate'], folder),
    text(user['client-key-data'], user['client-key'], folder),
    text(undefined, user.tokenFile, folder),
  ]);
  const token = tokenText?.trim() ?? user.token; // tokenFile takes precedence over token: it can be rotated
  return { ...(cert !== undefined && { cert }), ...(key !== undefined && { key }), ...(token && { token }) };
}

async function readServiceAccount(env: Env, folder: string): Promise<Identity> {
  const host = env['KUBERNETES_SERVICE_HOST'];
  if (!host) throw new Error('this is not a Pod (KUBERNETES_SERVICE_HOST is not set): pass --kubeconfig');
  const port = env['KUBERNETES_SERVICE_PORT'] ?? '443';
  const [token, ca] = await Promise.all([
    readFile(join(folder, 'token'), 'utf8'),
    readFile(join(folder, 'ca.crt'), 'utf8'),
  ]);
  return { server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`, token: token.trim(), ca };
}

export const identityFromKubeconfig = (path: string, env: Env, monotonic: () => number): IdentitySource =>
  rereading(() => readKubeconfig(path, env), monotonic);

export const identityFromPod = (env: Env, monotonic: () => number, folder = SERVICE_ACCOUNT): IdentitySource =>
  rereading(() => readServiceAccount(env, folder), monotonic);

/** The namespace that the Pod runs in. */
export const readOwnNamespace = async (): Promise<string | undefined> => {
  try {
    return (await readFile(`${SERVICE_ACCOUNT}/namespace`, 'utf8')).trim();
  } catch {
    return undefined;
  }
};
