/** Reads Secrets by name and evaluates them; a failed read is a value, not an exception. */
import type { EtcdCluster } from '../api/etcd-cluster.ts';
import type { Client } from '../kube/client.ts';
import { secrets } from '../kube/resources.ts';
import { tryGet } from '../kube/try-get.ts';
import { type Evaluation, evaluate } from './evaluate/evaluate.ts';
import type { EvalContext, Secrets } from './evaluate/secret-set.ts';
import { YieldingEvaluation } from './yielding.ts';

export interface UnreadSecret {
  readonly secret: string;
  readonly message: string;
}

/** All of these Secrets, or those that could not be read. */
export async function readSecrets(
  client: Pick<Client, 'get'>,
  namespace: string,
  names: readonly string[],
  signal?: AbortSignal,
): Promise<Secrets | { readonly unread: readonly UnreadSecret[] }> {
  const read = await Promise.all(
    names.map(async (name) => ({ name, result: await tryGet(client, secrets, { namespace, name }, signal) })),
  );
  const unread = read.flatMap(({ name, result }) => (result.ok ? [] : [{ secret: name, message: result.message }]));
  if (unread.length > 0) return { unread };
  return new Map(read.map(({ name, result }) => [name, result.ok ? result.object : undefined]));
}

/** The names of the CA bundle Secrets follow from the contents of the others: they are read after those. */
export async function readAndEvaluate(
  client: Pick<Client, 'get'>,
  cluster: EtcdCluster,
  names: readonly string[],
  around: EvalContext,
  signal?: AbortSignal,
): Promise<
  | { readonly secrets: Secrets; readonly judged: Evaluation; readonly pieces: YieldingEvaluation }
  | { readonly unread: readonly UnreadSecret[] }
> {
  const { namespace = '' } = cluster.metadata;
  const pieces = new YieldingEvaluation();
  const first = await readSecrets(client, namespace, names, signal);
  if ('unread' in first) return first;
  const judged = await pieces.run(() => evaluate(cluster, first, around));
  const more = [...judged.bundles.keys()].filter((name) => !first.has(name));
  if (more.length === 0) return { secrets: first, judged, pieces };
  const others = await readSecrets(client, namespace, more, signal);
  if ('unread' in others) return others;
  const all: Secrets = new Map([...first, ...others]);
  return { secrets: all, judged: await pieces.run(() => evaluate(cluster, all, around)), pieces };
}
