/** Whether a cluster is as its spec says, and its status reports it: what is missing, as sentences. */

import { isDeepStrictEqual } from 'node:util';
import { targetOf } from '../../src/api/defaults.ts';
import { TEMPLATE_FIELDS } from '../../src/api/template.ts';
import { findCondition } from '../../src/domain/conditions.ts';
import type { Rig } from '../sweep/rig.ts';

export function missing(rig: Rig): readonly string[] {
  const { cluster, members } = rig;
  if (!cluster) return ['there is no cluster'];
  const { spec, status, metadata } = cluster;
  const { replicas = 0 } = spec;
  const ready = rig.world.kubelet.running(rig.namespace).filter((run) => run.ready).length;
  const terminating = rig.ledger.objects(rig.namespace).filter((o) => o.metadata.deletionTimestamp !== undefined);
  const condition = (type: string) => findCondition(status?.conditions, type);
  const [available, progressing] = [condition('Available'), condition('Progressing')];
  const current = [available, progressing].every((c) => c?.observedGeneration === metadata.generation);
  return [
    ...(members.length === replicas ? [] : [`${members.length} EtcdMembers of ${replicas}`]),
    ...(ready === replicas ? [] : [`${ready} Pods of ${replicas} are ready`]),
    ...(status?.readyMembers === replicas ? [] : [`readyMembers is ${status?.readyMembers}`]),
    ...(available?.status === 'True' ? [] : [`Available is ${available?.status}/${available?.reason}`]),
    ...(progressing?.status === 'False' && progressing.reason === 'Reconciled' ? [] : notReconciled(rig)),
    ...(condition('Degraded')?.status === 'False' ? [] : [`Degraded is ${condition('Degraded')?.reason}`]),
    ...(condition('ManagedObjectsInSync') ? [`not in sync: ${condition('ManagedObjectsInSync')?.message}`] : []),
    ...(current ? [] : ['the conditions are of an earlier generation']),
    ...terminating.map((o) => `${o.kind} ${o.metadata.name} is being deleted`),
  ];
}

/** This build does not resize volumes: a member that joined while storage.size was another one keeps it. */
function notReconciled({ cluster, members }: Rig): readonly string[] {
  const progressing = findCondition(cluster?.status?.conditions, 'Progressing');
  const seen = `Progressing is ${progressing?.status}/${progressing?.reason}`;
  if (!cluster || !['SpecChanged', 'DeadlineExceeded'].includes(progressing?.reason ?? '')) return [seen];
  const target = targetOf(cluster.spec, cluster.status);
  const differs = members.some(({ spec }) =>
    TEMPLATE_FIELDS.some((field) => !isDeepStrictEqual(spec[field], target[field])),
  );
  return differs ? [] : [`${seen}, although every member has the template of the spec`];
}
