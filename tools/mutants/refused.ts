/** Faults in what follows when every voter refuses a membership change. */
import { faults, type Mutant } from './mutant.ts';

export const refused: readonly Mutant[] = [
  ...faults('src/cluster/call.ts', [
    [
      'a voter that did not answer and counts as one that refused',
      'failures.every((kind) => kind',
      'failures.some((kind) => kind',
    ],
  ]),
  ...faults('src/cluster/observe.ts', [
    [
      'a PVC that is being deleted, and counts as there',
      "undefined ? 'present' : 'terminating'",
      "'' ? 'present' : 'present'",
    ],
    ['a refusal of another kind that restarts members', 'refusal?.kind === UNHEALTHY_CLUSTER', 'refusal'],
  ]),
];
