/** What a command works on: all members of a cluster, or one Pod. */

import { textOf } from '../../access/evaluate/secret-set.ts';
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import { CLUSTER_LABEL } from '../../api/names.ts';
import type { Account } from '../../etcd/auth-tokens.ts';
import type { Client } from '../../kube/client.ts';
import { pods, secrets } from '../../kube/resources.ts';
import { type Context, UserError } from '../context.ts';
import { foreignAccess, foreignPlace } from './foreign-pod.ts';
import { clusters, readCluster, readMembers } from './objects.ts';
import { clusterSession, openSession, type Ports, type Session } from './session.ts';

export interface TargetFlags {
  readonly pod?: string;
  /** `name` or `namespace/name` of a Secret with username and password. */
  readonly credentialsSecret?: string;
}

export interface Target {
  readonly session: Session;
  /** Absent for a Pod without one. */
  readonly cluster?: EtcdCluster;
  /** The only member that the command may use. */
  readonly pod?: string;
}

/** Runs the work with open ways to the members, and closes them. */
export async function onTarget<T>(
  context: Ports & Pick<Context, 'namespace'>,
  name: string | undefined,
  flags: TargetFlags,
  work: (target: Target) => Promise<T>,
): Promise<T> {
  const target = await open(context, name, flags);
  try {
    const { missing } = target.session.credentials;
    if (missing !== undefined) throw new UserError(missing);
    if (target.session.reached.length === 0)
      throw new UserError(`no member of ${name ?? flags.pod ?? ''} has a running Pod: see kubectl etcd status`);
    return await work(target);
  } finally {
    target.session.close();
  }
}

async function open(
  context: Ports & Pick<Context, 'namespace'>,
  name: string | undefined,
  { pod, credentialsSecret }: TargetFlags,
): Promise<Target> {
  const { client, namespace } = context;
  const account = await accountIn(client, namespace, credentialsSecret);
  if (pod !== undefined) return openPod(context, pod, account);
  if (name === undefined) throw new UserError('name a cluster, or one Pod of it with -p');
  const cluster = await readCluster(client, { namespace, name });
  const session = await clusterSession(context, cluster, await readMembers(client, cluster), { account });
  return { session, cluster };
}

async function openPod(
  context: Ports & Pick<Context, 'namespace'>,
  name: string,
  account: Account | undefined,
): Promise<Target> {
  const { client, namespace } = context;
  const pod = await client.get(pods, { namespace, name });
  if (!pod) throw new UserError(`there is no Pod ${name} in namespace ${namespace}`);
  const label = pod.metadata.labels?.[CLUSTER_LABEL] ?? '';
  const cluster = await client.get(clusters, { namespace, name: label });
  const members = cluster ? await readMembers(client, cluster) : [];
  if (cluster && members.some((member) => member.pod?.metadata.uid === pod.metadata.uid))
    return { session: await clusterSession(context, cluster, members, { only: name, account }), cluster, pod: name };
  const session = await openSession(context, [foreignPlace(pod)], () => foreignAccess(client, pod, account));
  return { session, pod: name };
}

/** A Secret of the type kubernetes.io/basic-auth; without a username, it is that of root. */
async function accountIn(
  client: Pick<Client, 'get'>,
  namespace: string,
  given: string | undefined,
): Promise<Account | undefined> {
  if (given === undefined) return undefined;
  const slash = given.indexOf('/');
  const ref =
    slash < 0 ? { namespace, name: given } : { namespace: given.slice(0, slash), name: given.slice(slash + 1) };
  const secret = await client.get(secrets, ref);
  if (!secret) throw new UserError(`there is no Secret ${ref.name} in namespace ${ref.namespace}`);
  const password = textOf(secret, 'password');
  if (!password) throw new UserError(`Secret ${ref.name} has no password`);
  return { user: textOf(secret, 'username') || 'root', password };
}
