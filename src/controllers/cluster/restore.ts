/** What is said about the snapshot that a cluster begins with. Nothing of it matters once the cluster is recorded. */

import { type ConditionUpdate, NO_OPERATOR_IMAGE, OPERATOR_IMAGE_NOT_CONFIGURED } from '../../api/conditions.ts';
import { parseResult } from '../../domain/agent-result.ts';
import { keyOf } from '../../domain/agent-task.ts';
import type { ContainerStatus, Pod } from '../../gen/kube.ts';
import { isFormed, type Observed } from './observed.ts';

export const RESTORED = 'Restored';
export const RESTORING = 'Restoring';

/** How far the containers of a seed are that run before its etcd. */
export type RestoreView =
  | { readonly is: 'running'; readonly what: string }
  | { readonly is: 'failed'; readonly reason: string; readonly message: string }
  | { readonly is: 'done' };

const ended = ({ state, lastState }: ContainerStatus) => state?.terminated ?? lastState?.terminated;

/** From what Kubernetes keeps of the last words of a container: untrusted, so what is not ours is not repeated. */
function failureOf(container: ContainerStatus): RestoreView | undefined {
  const end = ended(container);
  if (!end || end.exitCode === 0) return undefined;
  const result = parseResult(end.message);
  if (result && !result.ok) return { is: 'failed', reason: result.reason, message: result.message };
  const how = `container ${container.name} ended with exit code ${end.exitCode} (${end.reason ?? 'Error'})`;
  return { is: 'failed', reason: 'AgentFailed', message: `${how} and did not say why: see its log` };
}

const waitingFor = ({ name, state }: ContainerStatus): string => {
  const { reason = '', message = '' } = state?.waiting ?? {};
  return reason === '' || reason === 'PodInitializing'
    ? name
    : `${name}: ${[reason, message].filter(Boolean).join(': ')}`;
};

export function restoreOf(pod: Pod): RestoreView | undefined {
  if (!pod.spec?.initContainers?.some(({ name }) => name === 'restore')) return undefined;
  const statuses = pod.status?.initContainerStatuses ?? [];
  const current = statuses.find(({ state }) => state?.terminated?.exitCode !== 0);
  if (!current) return statuses.length === 0 ? { is: 'running', what: 'its Pod' } : { is: 'done' };
  return failureOf(current) ?? { is: 'running', what: waitingFor(current) };
}

const sourceOf = (o: Observed) => o.cluster.spec.bootstrap?.restore?.source;

/** Where the snapshot is, for people. */
function placeOf(o: Observed): string {
  const source = sourceOf(o);
  if (!source) return '';
  const { s3, gcs, azure, pvc } = source;
  const [where = ''] = [
    ...(s3 ? [`s3://${s3.bucket}`] : []),
    ...(gcs ? [`gs://${gcs.bucket}`] : []),
    ...(azure ? [`container ${azure.container}`] : []),
    ...(pvc ? [`volume ${pvc.claimName}`] : []),
  ];
  return `${where}/${keyOf(source)}`;
}

/** Why a snapshot cannot be restored at all, if so: a cluster is not begun without the data that it is to have. */
export const restoreImpossible = (o: Observed): string | undefined =>
  sourceOf(o) !== undefined && !isFormed(o) && o.images.operator === undefined ? NO_OPERATOR_IMAGE : undefined;

/** What keeps the seed from starting its etcd. */
export function restoreMessage(view: RestoreView | undefined): string | undefined {
  if (!view || view.is === 'done') return undefined;
  return view.is === 'failed'
    ? `the snapshot cannot be restored (${view.reason}), and is tried again: ${view.message}`
    : `restoring the snapshot: waiting for ${view.what}`;
}

const PROGRESS = {
  running: 'is being restored',
  done: 'is restored, and its etcd has not answered yet',
} as const;

/** Only of a cluster that begins with a snapshot. */
export function restoreConditions(o: Observed, formed: boolean): readonly ConditionUpdate[] {
  if (!sourceOf(o)) return [];
  const say = (status: 'True' | 'False', reason: string, message: string): readonly ConditionUpdate[] => [
    { type: RESTORED, status, reason, message },
  ];
  if (formed) return say('True', RESTORED, `the cluster began with the data of ${placeOf(o)}`);
  const impossible = restoreImpossible(o);
  if (impossible !== undefined) return say('False', OPERATOR_IMAGE_NOT_CONFIGURED, impossible);
  const view = o.members.flatMap(({ pod }) => (pod.is === 'present' && pod.restore ? [pod.restore] : []))[0];
  if (view?.is === 'failed') return say('False', view.reason, `${placeOf(o)}: ${view.message}`);
  return say(
    'False',
    RESTORING,
    `${placeOf(o)} ${view ? PROGRESS[view.is] : 'will be restored when the first member starts'}`,
  );
}
