/** What a user does to a cluster. Each is prepared in peace, and only then the trouble begins. */
import { findCondition } from '../../src/api/conditions.ts';
import { eventually } from '../support/processes.ts';
import { clusters } from '../support/world.ts';
import { CLUSTER, type Rig } from './rig.ts';

export interface Workload {
  readonly name: string;
  /** Completes "The operator is killed while …". */
  readonly sentence: string;
  readonly prepare?: (rig: Rig) => Promise<void>;
  readonly act: (rig: Rig) => Promise<void>;
  readonly done: (rig: Rig) => boolean;
  /** The user wants members to stop or go as a whole. */
  readonly stopping?: true;
}

/** The status speaks of the present spec, says that all is done, and this many members serve. */
function atRest(rig: Rig, replicas: number): boolean {
  const { cluster } = rig;
  const progressing = findCondition(cluster?.status?.conditions, 'Progressing');
  const available = findCondition(cluster?.status?.conditions, 'Available');
  return (
    progressing?.status === 'False' &&
    progressing.observedGeneration === cluster?.metadata.generation &&
    (available?.status === 'True') === replicas > 0 &&
    (cluster?.status?.readyMembers ?? 0) === replicas &&
    rig.world.kubelet.running(rig.namespace).filter((run) => run.ready).length === replicas
  );
}

const settled = (replicas: number) => (rig: Rig) =>
  atRest(rig, replicas) && rig.members.length === Math.max(replicas, 1);

const until = (rig: Rig, what: string, holds: (rig: Rig) => boolean): Promise<unknown> =>
  eventually(what, () => holds(rig) || undefined, { timeoutMs: 60_000, seen: () => rig.cluster?.status });

const made = (replicas: number) => async (rig: Rig) => {
  await rig.createCluster({ replicas });
  await until(rig, `a cluster of ${replicas}`, settled(replicas));
};

export const WORKLOADS: readonly Workload[] = [
  {
    name: 'create-1',
    sentence: 'a cluster of one is made',
    act: (rig) => rig.createCluster({ replicas: 1 }),
    done: settled(1),
  },
  {
    name: 'delete-1',
    sentence: 'a cluster of one is deleted',
    prepare: made(1),
    act: (rig) => remove(rig),
    done: (rig) => rig.ledger.objects(rig.namespace).length === 0,
    stopping: true,
  },
];

async function remove(rig: Rig): Promise<void> {
  const uid = rig.made?.metadata.uid ?? '';
  await rig.world.admin.delete(clusters, { namespace: rig.namespace, name: CLUSTER }, { uid });
}

export function workloadCalled(name: string): Workload {
  const found = WORKLOADS.find((workload) => workload.name === name);
  if (!found) throw new Error(`there is no workload ${name}; there are ${WORKLOADS.map((w) => w.name).join(', ')}`);
  return found;
}
