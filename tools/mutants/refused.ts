/** Faults in what follows when every voter refuses a membership change. */
import { faults, type Mutant } from './mutant.ts';

export const refused: readonly Mutant[] = [
  ...faults('src/cluster/observe.ts', [
    [
      'a PVC that is being deleted, and counts as there',
      "undefined ? 'present' : 'terminating'",
      "'' ? 'present' : 'present'",
    ],
  ]),
];
