/** What happens in one round: which actions, and when. It follows from the seed and the number of the round alone. Pure. */
import { Random } from './random.ts';
import type { Shape } from './shapes.ts';

export type ActionName =
  | 'edit'
  | 'delete Pods'
  | 'delete a Service'
  | 'delete the PDB'
  | 'delete EtcdMembers'
  | 'delete a managed Secret'
  | 'delete a PVC'
  | 'lose a member'
  | 'kill the operator'
  | 'stop the operator'
  | 'kill etcd';

export interface Step {
  readonly action: ActionName;
  /** After the step before. */
  readonly afterMs: number;
  /** Of the action's own choices. */
  readonly seed: number;
}

interface Kind {
  readonly action: ActionName;
  readonly weight: number;
  /** It cannot be taken back: at most one of these in a round, and first. */
  readonly costly?: true;
}

const KINDS: readonly Kind[] = [
  { action: 'edit', weight: 40 },
  { action: 'delete Pods', weight: 12 },
  { action: 'kill etcd', weight: 12 },
  { action: 'kill the operator', weight: 12 },
  { action: 'stop the operator', weight: 6 },
  { action: 'delete EtcdMembers', weight: 8 },
  { action: 'delete a Service', weight: 5 },
  { action: 'delete the PDB', weight: 5 },
  { action: 'delete a managed Secret', weight: 8, costly: true },
  { action: 'delete a PVC', weight: 8, costly: true },
  { action: 'lose a member', weight: 8, costly: true },
];

const suits = ({ inMemory, secured }: Shape, action: ActionName, pvcs: boolean): boolean => {
  if (action === 'delete a managed Secret') return secured;
  if (action === 'delete a PVC') return !inMemory && pvcs;
  return action !== 'delete Pods' || !inMemory; // a Pod with data in memory is lost with it
};

/** `pvcs`: whether PVCs are deleted while their Pods run. */
export function planRound(
  seed: number,
  round: number,
  shape: Shape,
  { pvcs }: { readonly pvcs: boolean },
): readonly Step[] {
  const random = new Random(seed, round);
  const kinds = KINDS.filter(({ action }) => suits(shape, action, pvcs));
  const chosen = Array.from({ length: random.between(2, 6) }, () => random.weighted(kinds));
  const [costly] = chosen.filter((kind) => kind.costly);
  const ordered = [...(costly ? [costly] : []), ...chosen.filter((kind) => !kind.costly)];
  return ordered.map(({ action }) => ({
    action,
    afterMs: random.of([0, 0, 50, 200, 700, 1_500, 3_000]) ?? 0,
    seed: random.int(2 ** 31),
  }));
}
