/** Reports the restore of a snapshot into a new cluster, until the cluster ID is recorded. */

import type { EtcdClusterStatus } from '../../api/etcd-cluster-status.ts';
import { OOM_KILLED, OUT_OF_MEMORY, parseResult } from '../../domain/agent-result.ts';
import { keyOf } from '../../domain/agent-task.ts';
import {
  type ConditionUpdate,
  conditionOf,
  NO_OPERATOR_IMAGE,
  OPERATOR_IMAGE_NOT_CONFIGURED,
} from '../../domain/conditions.ts';
import type { ContainerStatus, Pod } from '../../gen/kube.ts';
import { present } from '../../lib/present.ts';
import { type ClusterFacts, isFormed, type MemberView } from './observed.ts';

export const RESTORED = 'Restored';
export const RESTORING = 'Restoring';

/** The state of the init containers of a seed. */
export type RestoreView =
  | { readonly is: 'running'; readonly what: string }
  | { readonly is: 'failed'; readonly reason: string; readonly message: string }
  /** The object that the agent chose, where the spec leaves it to it. */
  | { readonly is: 'done'; readonly key?: string; readonly passedOver?: number };

const termination = ({ state, lastState }: ContainerStatus) => state?.terminated ?? lastState?.terminated;

/** From the termination message of the container. It is untrusted, so only a valid agent result is repeated. */
function failureOf(container: ContainerStatus): RestoreView | undefined {
  const end = termination(container);
  if (!end || end.exitCode === 0) return undefined;
  const result = parseResult(end.message);
  if (result && !result.ok) return { is: 'failed', reason: result.reason, message: result.message };
  if (end.reason === OOM_KILLED)
    return {
      is: 'failed',
      reason: OUT_OF_MEMORY,
      message: `container ${container.name} was killed at its memory limit: create the cluster again with a larger bootstrap.restore.resources.limits.memory`,
    };
  const how = `container ${container.name} ended with exit code ${end.exitCode} (${end.reason ?? 'Error'})`;
  return { is: 'failed', reason: 'AgentFailed', message: `${how} without a result: see its log` };
}

const waitingFor = ({ name, state }: ContainerStatus): string => {
  const { reason = '', message = '' } = state?.waiting ?? {};
  return reason === '' || reason === 'PodInitializing'
    ? name
    : `${name}: ${[reason, message].filter(Boolean).join(': ')}`;
};

function doneBy(statuses: readonly ContainerStatus[]): RestoreView {
  const result = parseResult(statuses.find(({ name }) => name === 'restore')?.state?.terminated?.message);
  if (!result?.ok || result.task !== 'restore') return { is: 'done' };
  const { key, passedOver } = result;
  return { is: 'done', ...present({ key, passedOver }) };
}

/** To be latched with the cluster ID: the seed's Pod, which reports it, is replaced later. */
export function chosenBy(o: ClusterFacts, { pod }: MemberView): Pick<EtcdClusterStatus, 'restore'> {
  const view = pod.is === 'present' ? pod.restore : undefined;
  if (view?.is !== 'done' || view.key === undefined || !sourceOf(o)?.latest) return {};
  const { key, passedOver } = view;
  return { restore: { ...o.cluster.status?.restore, key, ...present({ passedOver }) } };
}

export function restoreOf(pod: Pod): RestoreView | undefined {
  if (!pod.spec?.initContainers?.some(({ name }) => name === 'restore')) return undefined;
  const statuses = pod.status?.initContainerStatuses ?? [];
  const current = statuses.find(({ state }) => state?.terminated?.exitCode !== 0);
  if (!current) return statuses.length === 0 ? { is: 'running', what: 'its Pod' } : doneBy(statuses);
  return failureOf(current) ?? { is: 'running', what: waitingFor(current) };
}

const sourceOf = (o: ClusterFacts) => o.cluster.spec.bootstrap?.restore?.source;

/** The location of the snapshot, for messages. */
function placeOf(o: ClusterFacts): string {
  const source = sourceOf(o);
  if (!source) return '';
  const { s3, gcs, azure, pvc } = source;
  const chosen = o.cluster.status?.restore;
  const key = chosen?.key ?? `${source.latest ? 'the newest snapshot in ' : ''}${keyOf(source)}`;
  if (s3) return `s3://${s3.bucket}/${key}`;
  if (gcs) return `gs://${gcs.bucket}/${key}`;
  return azure ? `container ${azure.container}/${key}` : `volume ${pvc?.claimName ?? ''}/${key}`;
}

/** Why a snapshot cannot be restored at all, or `undefined`: a cluster is never bootstrapped without the data that the spec asks for. */
export const restoreImpossible = (o: ClusterFacts): string | undefined =>
  sourceOf(o) !== undefined && !isFormed(o) && o.images.operator === undefined ? NO_OPERATOR_IMAGE : undefined;

/** Why the seed has not started etcd yet. */
export function restoreMessage(view: RestoreView | undefined): string | undefined {
  if (!view || view.is === 'done') return undefined;
  return view.is === 'failed'
    ? `restoring the snapshot failed (${view.reason}) and is retried: ${view.message}`
    : `restoring the snapshot: waiting for ${view.what}`;
}

const PROGRESS = {
  running: 'is being restored',
  done: 'is restored, and etcd has not responded yet',
} as const;

/** The condition Restored, only of a cluster that is restored from a snapshot. */
export function restoreConditions(o: ClusterFacts, formed: boolean): readonly ConditionUpdate[] {
  if (!sourceOf(o)) return [];
  const condition = conditionOf(RESTORED);
  const { passedOver = 0, snapshot } = o.cluster.status?.restore ?? {};
  const also = `${snapshot === undefined ? '' : `, which is EtcdSnapshot ${snapshot}`}${passedOver > 0 ? `; ${passedOver} newer snapshots were damaged` : ''}`;
  if (formed) return [condition('True', RESTORED, `the cluster was restored from ${placeOf(o)}${also}`)];
  const impossible = restoreImpossible(o);
  if (impossible !== undefined) return [condition('False', OPERATOR_IMAGE_NOT_CONFIGURED, impossible)];
  if (o.restoreBlockedBy) return [condition('False', o.restoreBlockedBy.reason, o.restoreBlockedBy.message)];
  const view = o.members.flatMap(({ pod }) => (pod.is === 'present' && pod.restore ? [pod.restore] : []))[0];
  if (view?.is === 'failed') return [condition('False', view.reason, `${placeOf(o)}: ${view.message}`)];
  const progress = view ? PROGRESS[view.is] : 'will be restored when the first member starts';
  return [condition('False', RESTORING, `${placeOf(o)} ${progress}`)];
}
