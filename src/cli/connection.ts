/** From the flags to the API server: kubeconfig files, context and namespace, as kubectl has them. */
import { existsSync } from 'node:fs';
import { HttpClient } from '../kube/http-client.ts';
import { type Identity, type IdentitySource, rereading } from '../kube/identity.ts';
import { identityFromPod, readOwnNamespace } from '../kube/kubeconfig.ts';
import { kubeconfigFiles, readKubeconfigs } from '../kube/kubeconfig-files.ts';
import { listenForPod } from '../kube/port-forward.ts';
import { Transport } from '../kube/transport.ts';
import { type Reach, UserError } from './context.ts';

export interface ConnectionFlags {
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly namespace?: string;
  readonly as?: string;
  readonly asGroup?: readonly string[];
}

type Env = Readonly<Record<string, string | undefined>>;

/** In `managedFields` of what the plugin changes: the change of a user, not of the operator. */
const FIELD_MANAGER = 'kubectl-etcd';

export interface Connection {
  readonly client: HttpClient;
  readonly namespace: string;
}

export async function connect(flags: ConnectionFlags, env: Env, home: string): Promise<Connection> {
  const source = sourceOf(flags, env, home);
  const identity = await source().catch((error: unknown) => {
    throw new UserError(error instanceof Error ? error.message : String(error), { cause: error });
  });
  const client = new HttpClient(new Transport(source), undefined, FIELD_MANAGER);
  const namespace = flags.namespace ?? identity.namespace ?? (await readOwnNamespace()) ?? 'default';
  return { client, namespace };
}

/** Without any kubeconfig, a Pod uses its ServiceAccount. */
function sourceOf(flags: ConnectionFlags, env: Env, home: string): IdentitySource {
  const { kubeconfig, context, as: user, asGroup: groups = [] } = flags;
  const monotonic = (): number => performance.now();
  const files = kubeconfig === undefined ? kubeconfigFiles(env, home) : [kubeconfig];
  const present = files.some((file) => existsSync(file));
  if (!present && env['KUBERNETES_SERVICE_HOST'] !== undefined) return identityFromPod(env, monotonic);
  if (!present)
    throw new UserError(`there is no kubeconfig at ${files.join(', ')}: set KUBECONFIG, or pass --kubeconfig`);
  const read = async (): Promise<Identity> => ({
    ...(await readKubeconfigs(files, context, env)),
    ...(user !== undefined && { impersonate: { user, groups } }),
  });
  return rereading(read, monotonic);
}

/** Through the API server, which needs no other way into the cluster. */
export const forwarding =
  (transport: Transport, signal: AbortSignal): Reach =>
  async (pod, port) => {
    let failed: unknown;
    const onError = (error: unknown): void => {
      failed = error;
    };
    const local = await listenForPod(transport, pod, port, { signal, onError });
    return { address: `127.0.0.1:${local.port}`, error: () => failed, close: () => local.close() };
  };
