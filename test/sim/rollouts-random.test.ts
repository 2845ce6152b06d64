/** Edits of templates and versions under faults. Worlds of their own: among all other faults, few clusters are well for as long as a rollout takes. */
import { expect, test } from 'vitest';
import { run } from './run.ts';
import type { Scope } from './script.ts';
import { search } from './search.ts';

const SCOPE: Scope = {
  replicas: [1, 3, 3, 3, 5],
  media: ['', '', 'Memory'],
  actions: [
    ...Array.from({ length: 14 }, () => 'roll' as const),
    'killOperator',
    'killOperator',
    'killOperator',
    'freezeOperator',
    'jumpClock',
    'holdWatch',
    'mergeWatch',
    'breakWatches',
    'apiTrouble',
    'etcdTrouble',
    'refusePods',
    'deletePod',
    'deleteAllPods',
    'crash',
    'wipe',
    'loseVolume',
    'nodeOff',
    'nodeCutOff',
    'nodeGone',
    'isolate',
    'slowLearner',
    'deleteMember',
    'deleteClaim',
    'scale',
    'scale',
    'edit',
    'suspend',
    'editForbidden',
  ],
  securedOneIn: 1_000_000,
  secured: ['rotateCA'],
};
const MUST_HAPPEN = [
  'options',
  'resources',
  'patch',
  'minorUp',
  'minorDown',
  'noImage',
  'noImageOfNextMinor',
  'noFlag',
  'noNode',
  'onDelete',
  'restart',
].map((what) => `roll: ${what}`);

test('under faults never two members are away for an edit, and every rollout ends with what was asked for last', async () => {
  const tally = new Set<string>();
  const found = await search({
    seed: Number(process.env['SEED'] ?? 1),
    scope: SCOPE,
    steps: Number(process.env['STEPS'] ?? 200_000),
    shrink: true,
    seen: (outcome) => {
      for (const kind of outcome.tally.keys()) tally.add(kind);
    },
  });
  const { broken, story = [] } = found ? await run(found.script, true) : { broken: undefined };
  expect(broken, [...story, JSON.stringify(found?.script)].join('\n')).toBeUndefined();
  expect(MUST_HAPPEN.filter((kind) => !tally.has(kind))).toEqual([]);
}, 1_800_000);
