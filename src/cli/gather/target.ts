/** What a command works on: all members of a cluster, or one Pod. */

import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import { CLUSTER_LABEL } from '../../api/names.ts';
import { pods } from '../../kube/resources.ts';
import { type Context, UserError } from '../context.ts';
import { deniedForward } from './access-error.ts';
import { foreignAccess, foreignPlace } from './foreign-pod.ts';
import { type NamedCredentials, namedSecret } from './named-secret.ts';
import { clusters, readCluster, readMembers } from './objects.ts';
import { clusterSession, openSession, type Ports, type Session } from './session.ts';

export interface TargetFlags {
  readonly pod?: string;
  /** `name` or `namespace/name` of a Secret with a password, or a client certificate. */
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
  const denied = deniedForward(context.client.transport, context.namespace);
  const target = await open(context, name, flags);
  try {
    const lacking = await denied;
    if (lacking !== undefined) throw new UserError(lacking);
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
  const named = await namedSecret(client, namespace, credentialsSecret);
  if (pod !== undefined) return openPod(context, pod, named);
  if (name === undefined) throw new UserError('name a cluster, or one Pod of it with -p');
  const cluster = await readCluster(client, { namespace, name });
  const session = await clusterSession(context, cluster, await readMembers(client, cluster), { named });
  return { session, cluster };
}

async function openPod(
  context: Ports & Pick<Context, 'namespace'>,
  name: string,
  named: NamedCredentials,
): Promise<Target> {
  const { client, namespace } = context;
  const pod = await client.get(pods, { namespace, name });
  if (!pod) throw new UserError(`there is no Pod ${name} in namespace ${namespace}`);
  const label = pod.metadata.labels?.[CLUSTER_LABEL] ?? '';
  const cluster = await client.get(clusters, { namespace, name: label });
  const members = cluster ? await readMembers(client, cluster) : [];
  if (cluster && members.some((member) => member.pod?.metadata.uid === pod.metadata.uid))
    return { session: await clusterSession(context, cluster, members, { only: name, named }), cluster, pod: name };
  const session = await openSession(context, [foreignPlace(pod)], () => foreignAccess(client, pod, named));
  return { session, pod: name };
}
