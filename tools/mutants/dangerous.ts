/** Faults that lose data or a quorum, or begin a second cluster: the simulation alone must notice each, without any table. */
import { mutants } from './list.ts';
import type { Mutant } from './mutant.ts';

export const DANGEROUS: readonly (readonly [file: string, lets: string])[] = [
  ['src/api/ownership.ts', 'a healthy cluster that counts as lost after a migration'],
  ['src/cluster/gate.ts', 'the removal of a voter that the quorum needs'],
  ['src/cluster/gate.ts', 'half of an even number that counts as a quorum'],
  ['src/cluster/observe.ts', "a list without the quorum's word"],
  ['src/cluster/observe.ts', 'a cluster that is gone and is made again, because the cache is late'],
  ['src/cluster/rules/repair.ts', 'a replacement although the gate is closed'],
  ['src/cluster/rules/shrink.ts', 'a member that is taken out although the gate is closed'],
  ['src/cluster/rules/shrink.ts', 'members that are deleted, because an emptied one does not list them'],
  ['src/member/observe.ts', 'a Pod or a volume that counts as gone, because the cache is late'],
  ['src/member/rules/leaving.ts', 'a member that is let go, because nobody could be asked'],
  ['src/member/rules/running.ts', 'a second, empty cluster from a seed that had joined'],
  ['src/runtime/controller.ts', 'a pass that does not see what the one before it has made'],
  ['src/runtime/execute.ts', 'an act before its record'],
];

export const dangerous: readonly Mutant[] = mutants.filter(({ file, lets }) =>
  DANGEROUS.some(([f, l]) => f === file && l === lets),
);
