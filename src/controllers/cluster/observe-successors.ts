/** Asks the API server, before a Pod is taken away, whether it would accept its successor. */
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdMember } from '../../api/etcd-member.ts';
import { identity } from '../../domain/ownership.ts';
import type { Pod } from '../../gen/kube.ts';
import type { Client } from '../../kube/client.ts';
import { ApiError, isNotLeading, isRefusal } from '../../kube/errors.ts';
import { pods } from '../../kube/resources.ts';
import { restartedBy } from './decide.ts';
import { type Gathered, nameOf, type Successor } from './observed.ts';

export interface SuccessorPorts {
  readonly client: Pick<Client, 'dryRunCreate'>;
  /** The Pod that the member controller would create. */
  readonly podOf: (member: EtcdMember, cluster: EtcdCluster) => Pod;
}

/**
 * A dry run for each member that would be restarted now: while none is, the API server is not asked. When the first one may not
 * be restarted, the rules may choose another one.
 */
export async function observeSuccessors(
  ports: SuccessorPorts,
  gathered: Gathered,
  signal: AbortSignal,
): Promise<readonly Successor[]> {
  const checked: Successor[] = [];
  for (;;) {
    const next = restartedBy({ ...gathered, successors: checked });
    if (!next || checked.some(({ member }) => member === nameOf(next.member))) return checked;
    const { aboutAll, ...answer } = await check(ports, gathered.cluster, next.successor, signal);
    if (aboutAll) return gathered.members.map((m) => ({ ...answer, member: nameOf(m) }));
    checked.push(answer);
  }
}

async function check(
  { client, podOf }: SuccessorPorts,
  cluster: EtcdCluster,
  object: EtcdMember,
  signal: AbortSignal,
): Promise<Successor & { readonly aboutAll?: boolean }> {
  const { name: member } = identity(object);
  const pod = podOf(object, cluster);
  const { name: _taken, ...metadata } = pod.metadata; // its Pod still has it
  try {
    await client.dryRunCreate(pods, { ...pod, metadata: { ...metadata, generateName: `${member}-` } }, signal);
    return { member };
  } catch (error) {
    if (signal.aborted || !(error instanceof ApiError)) throw error;
    // isNotLeading: with --observe-only not even a dry run is sent.
    if (isNotLeading(error) || NO_REFUSAL.some((text) => error.serverMessage.includes(text))) return { member };
    const { message, serverMessage } = error;
    const how = isRefusal(error) ? `the API server refuses: ${serverMessage}` : message;
    // A webhook that hangs takes ten seconds: asked for each member, the reconcile would end before its status is written.
    const aboutAll = error.code === 0 || error.code === 429 || error.code >= 500;
    return { member, refusedBy: `its Pod could not be recreated now: ${how}`, aboutAll };
  }
}

/** The quota still counts the Pod that would be deleted; and a webhook that does not support dry runs was not asked. */
const NO_REFUSAL = ['exceeded quota', 'does not support dry run'];
