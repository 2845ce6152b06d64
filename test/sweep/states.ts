/** The states of a cluster between two workloads, and the way there without a fault. */
import type { Tls } from '../../src/api/tls.ts';
import { findCondition } from '../../src/domain/conditions.ts';
import { pods } from '../../src/kube/resources.ts';
import { eventually } from '../support/servers/processes.ts';
import { clusters } from '../support/servers/world.ts';
import { quiet } from './quiet.ts';
import { CLUSTER, type Rig, ROOT } from './rig.ts';

/**
 * `secured`: three members with mTLS and auth. `resumed` and `rotated`: as three and secured, but the Pods were created when all
 * members existed. `spent`: something is left that the next workload would not expect.
 */
export type State = 'none' | 'one' | 'three' | 'five' | 'paused' | 'resumed' | 'secured' | 'rotated' | 'spent';

const REPLICAS = { one: 1, three: 3, five: 5 } as const;
const MTLS: Tls = { client: { managed: {} }, peer: { managed: {} } };
const AUTH = { enabled: true, rootCredentialsSecretRef: { name: ROOT } };
const PREPARED_MS = 1_000;

/** The status is of the current generation, reports Reconciled, and this many members serve. */
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

export const settled = (replicas: number) => (rig: Rig) => atRest(rig, replicas) && rig.members.length === replicas;
export const isPaused = (rig: Rig) => atRest(rig, 0) && rig.ledger.ofKind(pods, rig.namespace).length === 0;
export const isSecured = (rig: Rig): boolean => {
  const holds = (type: string) => findCondition(rig.cluster?.status?.conditions, type)?.status === 'True';
  return settled(3)(rig) && holds('AuthEnabled') && holds('CertificatesValid');
};
export const isDeleted = (rig: Rig): boolean => rig.ledger.objects(rig.namespace).length === 0;

export async function secured(rig: Rig): Promise<void> {
  await rig.setPassword('first');
  await rig.createCluster({ replicas: 3, tls: MTLS, auth: AUTH });
}

export async function remove(rig: Rig): Promise<void> {
  const uid = rig.made?.metadata.uid ?? '';
  await rig.world.admin.delete(clusters, { namespace: rig.namespace, name: CLUSTER }, { uid });
}

/** Whether a cluster can be brought from one state to another. */
export function canBring(from: State, to: State): boolean {
  if (from === 'none' || from === to) return true;
  if (from === 'paused' || from === 'resumed') return to === 'none' || to === 'paused';
  return (from === 'one' || from === 'three' || from === 'five') && to !== 'secured';
}

export async function bring(rig: Rig, from: State, to: State): Promise<void> {
  if (from === to) return;
  // Members are paused as they are: three of them.
  const over: State = from === 'paused' || to === 'paused' ? 'three' : from;
  await reach(rig, from, over);
  await reach(rig, over, to);
  await quiet(rig, PREPARED_MS);
}

/** One step of the way. */
async function reach(rig: Rig, from: State, to: State): Promise<void> {
  if (from === to) return;
  if (to === 'none') await remove(rig);
  else if (to === 'secured') await secured(rig);
  else {
    const replicas = to === 'paused' ? 0 : REPLICAS[to as keyof typeof REPLICAS];
    if (from === 'none') await rig.createCluster({ replicas });
    else await rig.edit({ replicas });
  }
  await eventually(`the state ${to}`, () => isIn(rig, to) || undefined, {
    timeoutMs: 60_000,
    seen: () => rig.cluster?.status,
  });
}

const isIn = (rig: Rig, state: State): boolean => {
  if (state === 'none') return isDeleted(rig);
  if (state === 'secured') return isSecured(rig);
  return state === 'paused' ? isPaused(rig) : settled(REPLICAS[state as keyof typeof REPLICAS])(rig);
};
