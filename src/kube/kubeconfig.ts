/** The API server's address and credentials: from kubeconfig files, or from inside a Pod. */
import { readFile } from 'node:fs/promises';
import { delimiter, dirname, join, resolve } from 'node:path';
import { parse } from 'yaml';
import { type ExecEntry, execIdentity } from './exec-credential.ts';
import { type Identity, type IdentitySource, rereading } from './identity.ts';

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
}
interface ContextEntry {
  readonly cluster?: string;
  readonly user?: string;
  readonly namespace?: string;
}
interface KubeconfigFile {
  readonly 'current-context'?: string;
  readonly contexts?: readonly { readonly name: string; readonly context: ContextEntry }[] | null;
  readonly clusters?: readonly { readonly name: string; readonly cluster: ClusterEntry }[] | null;
  readonly users?: readonly { readonly name: string; readonly user: UserEntry }[] | null;
}

type Env = Readonly<Record<string, string | undefined>>;

/** An entry and the folder that its relative paths are resolved against. */
interface Placed<T> {
  readonly entry: T;
  readonly folder: string;
}

interface Merged {
  readonly files: string;
  readonly current: string;
  readonly contexts: ReadonlyMap<string, Placed<ContextEntry>>;
  readonly clusters: ReadonlyMap<string, Placed<ClusterEntry>>;
  readonly users: ReadonlyMap<string, Placed<UserEntry>>;
}

const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';
const decode = (data: string): string => Buffer.from(data, 'base64').toString('utf8');

/** The files that kubectl would read: those in KUBECONFIG, else ~/.kube/config. */
export function kubeconfigFiles(env: Env, home: string): readonly string[] {
  const listed = (env['KUBECONFIG'] ?? '').split(delimiter).filter((file) => file !== '');
  return listed.length > 0 ? listed : [join(home, '.kube', 'config')];
}

/** Merges as kubectl does: the first file that defines a name wins. A missing file is skipped if there are several. */
async function merge(files: readonly string[]): Promise<Merged> {
  const contexts = new Map<string, Placed<ContextEntry>>();
  const clusters = new Map<string, Placed<ClusterEntry>>();
  const users = new Map<string, Placed<UserEntry>>();
  let current = '';
  for (const path of files) {
    const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' && files.length > 1) return '';
      throw new Error(`cannot read the kubeconfig ${path}: ${error.message}`, { cause: error });
    });
    const file = (parse(text) ?? {}) as KubeconfigFile;
    const folder = dirname(resolve(path));
    current ||= file['current-context'] ?? '';
    const put = <T>(map: Map<string, Placed<T>>, name: string, entry: T): void => {
      if (!map.has(name)) map.set(name, { entry, folder });
    };
    for (const { name, context } of file.contexts ?? []) put(contexts, name, context);
    for (const { name, cluster } of file.clusters ?? []) put(clusters, name, cluster);
    for (const { name, user } of file.users ?? []) put(users, name, user);
  }
  return { files: files.join(', '), current, contexts, clusters, users };
}

const text = async (data: string | undefined, file: string | undefined, folder: string): Promise<string | undefined> =>
  data ? decode(data) : file ? readFile(resolve(folder, file), 'utf8') : undefined;

/**
 * Unsupported settings are refused: to ignore them would authenticate as another user, or skip verification of the API
 * server.
 */
function refuseUnsupported(cluster: ClusterEntry, user: UserEntry, files: string): void {
  const refused: readonly (readonly [boolean, string])[] = [
    [cluster['insecure-skip-tls-verify'] === true, 'insecure-skip-tls-verify: give the certificate-authority instead'],
    [cluster['proxy-url'] !== undefined, 'proxy-url: reach the API server without a proxy'],
    [user.as !== undefined, 'as: use credentials of that user instead'],
    [user['auth-provider'] !== undefined, 'auth-provider: use an exec plugin instead, as kubectl does since 1.26'],
    [user.username !== undefined, 'username: use a token or a certificate instead'],
  ];
  for (const [is, what] of refused)
    if (is) throw new Error(`${files} uses something that is not supported here, ${what}`);
}

/** Reads the files as kubectl does. Relative paths are relative to the file that contains them. */
export async function readKubeconfig(files: readonly string[], contextName?: string, env: Env = {}): Promise<Identity> {
  const merged = await merge(files);
  const name = contextName ?? merged.current;
  const context = merged.contexts.get(name)?.entry;
  if (!context)
    throw new Error(`${merged.files} has no context called ${JSON.stringify(name)}: set current-context or name one`);
  const cluster = merged.clusters.get(context.cluster ?? '');
  if (!cluster?.entry.server)
    throw new Error(`${merged.files} has no server for the cluster ${JSON.stringify(context.cluster ?? '')}`);
  const user = merged.users.get(context.user ?? '') ?? { entry: {}, folder: '' };
  refuseUnsupported(cluster.entry, user.entry, merged.files);
  const ca = await text(
    cluster.entry['certificate-authority-data'],
    cluster.entry['certificate-authority'],
    cluster.folder,
  );
  const reach = {
    server: cluster.entry.server.replace(/\/+$/, ''),
    ...(ca !== undefined && { ca }),
    ...(cluster.entry['tls-server-name'] && { serverName: cluster.entry['tls-server-name'] }),
    ...(context.namespace && { namespace: context.namespace }),
  };
  const { exec } = user.entry;
  if (exec) return { ...reach, ...(await execIdentity(exec, { env, folder: user.folder, cluster: reach })) };
  return { ...reach, ...(await credentials(user)) };
}

async function credentials({ entry, folder }: Placed<UserEntry>): Promise<Partial<Identity>> {
  const [cert, key, tokenText] = await Promise.all([
    text(entry['client-certificate-data'], entry['client-certificate'], folder),
    text(entry['client-key-data'], entry['client-key'], folder),
    text(undefined, entry.tokenFile, folder),
  ]);
  const token = tokenText?.trim() ?? entry.token; // tokenFile takes precedence over token: it can be rotated
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

export interface KubeconfigOptions {
  readonly files: readonly string[];
  readonly context?: string;
  readonly env?: Env;
  readonly monotonic: () => number;
}

export const identityFromKubeconfig = ({ files, context, env, monotonic }: KubeconfigOptions): IdentitySource =>
  rereading(() => readKubeconfig(files, context, env), monotonic);

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
