/** Verbs that edit the EtcdCluster: the operator does the work. */

import { targetOf } from '../../api/defaults.ts';
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import { ROTATE_CA_ANNOTATION } from '../../api/names.ts';
import { type ActFlags, isAgreed } from '../confirm.ts';
import { type Context, UserError } from '../context.ts';
import { readCluster, readMembers } from '../gather/objects.ts';
import { type ClusterEdit, patchCluster } from './patch-cluster.ts';

interface Edit extends ClusterEdit {
  /** After `This will`. */
  readonly plan: string;
}

async function edit(
  context: Context,
  name: string,
  flags: ActFlags,
  decide: (cluster: EtcdCluster) => Promise<Edit | string> | Edit | string,
): Promise<number> {
  const ref = { namespace: context.namespace, name };
  const cluster = await readCluster(context.client, ref);
  const decided = await decide(cluster);
  if (typeof decided === 'string') {
    context.note(decided);
    return 0;
  }
  if (!(await isAgreed(context, decided.plan, { ...flags }))) return 0;
  await patchCluster(context, cluster, decided);
  context.note(`done; follow it with: kubectl etcd status ${name} -n ${context.namespace} --watch`);
  return 0;
}

const replicasOf = ({ spec, status }: EtcdCluster): number => targetOf(spec, status).replicas;

function parseReplicas(text: string): number {
  if (!/^\d{1,2}$/.test(text))
    throw new UserError(`the number of members must be a whole number, not ${JSON.stringify(text)}`);
  return Number(text);
}

export const scale = (context: Context, name: string, to: string, flags: ActFlags): Promise<number> =>
  edit(context, name, flags, (cluster) => {
    const [before, after] = [replicasOf(cluster), parseReplicas(to)];
    if (after === 0) throw new UserError('0 members pause the cluster: use kubectl etcd pause');
    if (before === after) return `${name} has ${before} members already`;
    const even = after % 2 === 0 ? `; ${after} tolerate no more failures than ${after - 1}` : '';
    return { plan: `scale ${name} from ${before} to ${after} members${even}`, spec: { replicas: after } };
  });

export const pause = (context: Context, name: string, flags: ActFlags): Promise<number> =>
  edit(context, name, flags, (cluster) => {
    if (replicasOf(cluster) === 0) return `${name} is paused already`;
    if (cluster.spec.storage?.medium === 'Memory')
      throw new UserError(`${name} has its data in memory only, which would be lost`);
    return {
      plan: `pause ${name}: it serves nothing until it is resumed, and keeps its volumes`,
      spec: { replicas: 0 },
    };
  });

/** With as many members as it had: their EtcdMembers are kept. */
export const resume = (
  context: Context,
  name: string,
  flags: ActFlags & { readonly replicas?: string },
): Promise<number> =>
  edit(context, name, flags, async (cluster) => {
    if (replicasOf(cluster) > 0) return `${name} is not paused`;
    const kept = (await readMembers(context.client, cluster)).length;
    const replicas = flags.replicas === undefined ? kept : parseReplicas(flags.replicas);
    if (replicas === 0) throw new UserError(`${name} has no member that was kept: pass --replicas`);
    return { plan: `resume ${name} with ${replicas} members`, spec: { replicas } };
  });

export const suspend = (context: Context, name: string, wanted: boolean, flags: ActFlags): Promise<number> =>
  edit(context, name, flags, ({ spec }) => {
    if ((spec.suspend === true) === wanted) return `${name} is ${wanted ? 'suspended already' : 'not suspended'}`;
    const plan = wanted
      ? `suspend the operator for ${name}: nothing is repaired, renewed or scaled until it is unsuspended`
      : `let the operator act on ${name} again`;
    return { plan, spec: { suspend: wanted } };
  });

export const rotateCA = (context: Context, name: string, flags: ActFlags): Promise<number> =>
  edit(context, name, flags, ({ spec }) => {
    if (!spec.tls?.client?.managed && !spec.tls?.peer?.managed)
      throw new UserError(
        `the operator manages no CA of ${name}: change the CA in the Secrets or the issuer that the spec names`,
      );
    const annotations = { [ROTATE_CA_ANNOTATION]: new Date(context.now()).toISOString() };
    return {
      plan: `rotate the CAs of ${name}: its members restart one after the other, twice`,
      metadata: { annotations },
    };
  });
