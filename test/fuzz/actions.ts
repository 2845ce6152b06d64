/**
 * What a user, a machine or chance does to a running cluster. No action destroys what the operator would need to keep the data:
 * of a quorum, only the operator itself can take it away.
 */
import { volumeClaimName } from '../../src/api/names.ts';
import { ApiError } from '../../src/kube/errors.ts';
import { type KubeObject, pathOf, type Resource } from '../../src/kube/object.ts';
import { persistentVolumeClaims, podDisruptionBudgets, pods, secrets, services } from '../../src/kube/resources.ts';
import { pause } from '../support/servers/processes.ts';
import { clusters, members } from '../support/servers/world.ts';
import { CLUSTER, type Rig, ROOT } from '../sweep/rig.ts';
import { type PatchStep, randomEdit } from './edits.ts';
import type { ActionName } from './plan.ts';
import type { Random } from './random.ts';
import type { Shape } from './shapes.ts';

/** What happened in this round so far. */
export interface Round {
  /** The member whose PVC was deleted while its Pod ran: only the operator may take its Pod away. */
  kept?: string;
  paused: boolean;
  disturbedAt: number;
  /** The uids of the objects that a user deleted. */
  readonly deleted: Set<string>;
}

/** When objects were deleted that the operator keeps as they are. */
export type Corrected = Map<string, readonly number[]>;

export interface Turn {
  readonly rig: Rig;
  readonly shape: Shape;
  readonly random: Random;
  readonly round: Round;
  readonly corrected: Corrected;
}

/** Does it, and describes it. */
type Action = (turn: Turn) => Promise<string>;

const keyOf = ({ kind, metadata }: KubeObject): string => `${kind} ${metadata.name}`;
const nameOf = ({ metadata }: KubeObject): string => metadata.name ?? '';
const namesOf = (objects: readonly KubeObject[]): string => objects.map(nameOf).join(', ') || 'nothing';
const present = <T extends KubeObject>({ rig }: Turn, resource: Resource<T>): readonly T[] =>
  rig.ledger
    .ofKind(resource, rig.namespace)
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .toSorted((a, b) => nameOf(a).localeCompare(nameOf(b)));

async function remove(turn: Turn, resource: Resource, objects: readonly KubeObject[]): Promise<string> {
  const { rig, round } = turn;
  for (const { metadata } of objects) round.deleted.add(metadata.uid ?? '');
  const { admin } = rig.world;
  await Promise.all(
    objects.map(async (object) => {
      const ref = { namespace: rig.namespace, name: nameOf(object) };
      await admin.delete(resource, ref, { uid: object.metadata.uid ?? '' }).catch(unlessReplaced);
    }),
  );
  return namesOf(objects);
}

/** Another object of this name exists by now. */
const unlessReplaced = (error: unknown): void => {
  if (!(error instanceof ApiError) || error.code !== 409) throw error;
};

/** One, a minority, or all of them. */
const share = <T>(random: Random, all: readonly T[]): readonly T[] =>
  random.some(all, random.of([1, 1, minority(all.length), all.length]) ?? 1);
const minority = (count: number): number => Math.floor((count - 1) / 2);

const disturb = ({ round }: Turn): void => {
  round.disturbedAt = performance.now();
};

const deletePods: Action = async (turn) => {
  disturb(turn);
  const mine = present(turn, pods).filter((pod) => nameOf(pod) !== turn.round.kept);
  return remove(turn, pods, share(turn.random, mine));
};

/** A PVC that a Pod uses stays until the Pod is deleted: the data is there as long as the operator leaves the Pod alone. */
const deletePVC: Action = async (turn) => {
  const ready = turn.rig.world.kubelet.running(turn.rig.namespace).filter((run) => run.ready);
  const claims = present(turn, persistentVolumeClaims).filter((claim) =>
    ready.some(({ pod }) => volumeClaimName(nameOf(pod)) === nameOf(claim)),
  );
  const chosen = turn.random.some(claims, 1);
  const kept = ready.find(({ pod }) => chosen.some((claim) => volumeClaimName(nameOf(pod)) === nameOf(claim)));
  if (kept) turn.round.kept = nameOf(kept.pod);
  return remove(turn, persistentVolumeClaims, chosen);
};

/** At rest, and with three members or more: the others are a quorum. With data in memory a minority is lost at once. */
const loseMember: Action = async (turn) => {
  const { rig, shape, random } = turn;
  const mine = present(turn, pods);
  if (mine.length < 3) return 'nothing: no member could be lost without the quorum';
  disturb(turn);
  if (shape.inMemory)
    return `Pods ${await remove(turn, pods, random.some(mine, random.between(1, minority(mine.length))))}`;
  const [pod] = random.some(mine, 1);
  const name = pod ? nameOf(pod) : '';
  if (random.int(2) === 0) {
    await rig.world.kubelet.loseData(rig.namespace, name);
    return `the disk of ${name} is emptied`;
  }
  const claims = present(turn, persistentVolumeClaims).filter((claim) => nameOf(claim) === volumeClaimName(name));
  await remove(turn, persistentVolumeClaims, claims);
  return `PVC and Pod ${await remove(turn, pods, pod ? [pod] : [])}`;
};

const killEtcd: Action = async (turn) => {
  disturb(turn);
  const running = turn.rig.world.kubelet.running(turn.rig.namespace).filter((run) => run.alive);
  const chosen = share(turn.random, running);
  for (const { child } of chosen) if (child) signal(child.pid, 'SIGKILL');
  return namesOf(chosen.map(({ pod }) => pod));
};

const killOperator: Action = async ({ rig }) => {
  await rig.kill();
  await rig.start();
  return 'and start another one';
};

const stopOperator: Action = async ({ rig, random }) => {
  const ms = random.of([200, 1_000, 3_000, 8_000]) ?? 0;
  const { pid } = rig.operator;
  signal(pid, 'SIGSTOP');
  await pause(ms);
  signal(pid, 'SIGCONT');
  return `for ${ms} ms`;
};

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // it has ended by itself
  }
}

/** As kubectl does it: unknown fields are errors. */
export async function patchSpec({ rig }: Pick<Turn, 'rig'>, steps: readonly object[]): Promise<void> {
  await rig.world.admin.transport.json(pathOf(clusters, rig.namespace, CLUSTER), {
    method: 'PATCH',
    body: steps,
    query: { fieldValidation: 'Strict' },
    contentType: 'application/json-patch+json',
  });
}

const edit: Action = async (turn) => {
  const { rig, round, random } = turn;
  const read = () => rig.world.admin.get(...rig.clusterRef);
  const before = await read();
  const steps = randomEdit(random, { ...before?.spec });
  const shown = steps
    .map(({ op, path, value }) => (op === 'remove' ? `-${path}` : `${path}=${JSON.stringify(value)}`))
    .join(' ')
    .slice(0, 400);
  const refusal = await patchSpec(turn, steps).then(() => undefined, refusalOf);
  const after = await read();
  if (after?.spec.replicas === 0) round.paused = true;
  if (refusal === undefined) return shown;
  if (after?.metadata.generation !== before?.metadata.generation)
    throw new Error(`a refused edit changed the spec: ${shown}`);
  if (!isClear(refusal, steps)) throw new Error(`the refusal of ${shown} names none of its fields: ${refusal}`);
  return `${shown}: refused: ${refusal.slice(0, 200)}`;
};

function refusalOf(error: unknown): string {
  if (error instanceof ApiError && [400, 403, 422].includes(error.code)) return error.serverMessage;
  throw error;
}

const isClear = (refusal: string, steps: readonly PatchStep[]): boolean =>
  steps.some(({ path }) => refusal.includes(path.split('/').at(-1) ?? ''));

/** Four times in ten minutes is another controller's work for the operator: it reports that, and waits longer each time. */
const MAX_CORRECTED = 3;
const CORRECTED_WITHIN_MS = 10 * 60_000;

const removeCorrected = async (turn: Turn, resource: Resource, objects: readonly KubeObject[]): Promise<string> => {
  const now = performance.now();
  const recent = (object: KubeObject): readonly number[] =>
    (turn.corrected.get(keyOf(object)) ?? []).filter((at) => now - at < CORRECTED_WITHIN_MS);
  const chosen = objects.filter((object) => recent(object).length < MAX_CORRECTED);
  for (const object of chosen) turn.corrected.set(keyOf(object), [...recent(object), now]);
  return remove(turn, resource, chosen);
};

export const ACTIONS: Readonly<Record<ActionName, Action>> = {
  edit,
  'delete Pods': deletePods,
  'delete a Service': (turn) => removeCorrected(turn, services, turn.random.some(present(turn, services), 1)),
  'delete the PDB': (turn) => removeCorrected(turn, podDisruptionBudgets, present(turn, podDisruptionBudgets)),
  'delete EtcdMembers': (turn) => remove(turn, members, share(turn.random, present(turn, members))),
  'delete a managed Secret': (turn) =>
    remove(
      turn,
      secrets,
      turn.random.some(
        present(turn, secrets).filter((secret) => nameOf(secret) !== ROOT),
        1,
      ),
    ),
  'delete a PVC': deletePVC,
  'lose a member': loseMember,
  'kill the operator': killOperator,
  'stop the operator': stopOperator,
  'kill etcd': killEtcd,
};
