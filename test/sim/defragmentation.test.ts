/** Defragmentations, and remedies of full databases, under faults. Worlds of their own: among all other faults, few clusters are at rest for long enough. */
import { expect, test } from 'vitest';
import { run } from './run.ts';
import type { Scope } from './script.ts';
import { search } from './search.ts';

const SCOPE: Scope = {
  replicas: [1, 3, 3, 3, 5],
  media: [''],
  actions: [
    'defragment',
    'defragment',
    'defragment',
    'outgrow',
    'outgrow',
    'stream',
    'stream',
    'killOperator',
    'killOperator',
    'freezeOperator',
    'holdWatch',
    'apiTrouble',
    'etcdTrouble',
    'etcdTrouble',
    'deletePod',
    'crash',
    'nodeOff',
    'isolate',
    'deleteMember',
    'scale',
    'suspend',
  ],
  securedOneIn: 1_000_000,
  secured: ['rotateCA'],
  remedies: true,
};
const MUST_HAPPEN = [
  'defragment',
  'outgrow',
  'stream',
  'operator killed',
  'defragmented',
  'defragmentation not answered',
  'etcd: compact',
  'etcd: disarm',
];

test('under faults never two members are away, none is defragmented during its stream, every EtcdDefrag ends, and so does NOSPACE', async () => {
  const tally = new Set<string>();
  const found = await search({
    seed: Number(process.env['SEED'] ?? 1),
    scope: SCOPE,
    steps: Number(process.env['STEPS'] ?? 100_000) / 2,
    shrink: true,
    seen: (outcome) => {
      for (const kind of outcome.tally.keys()) tally.add(kind);
    },
  });
  const { broken, story = [] } = found ? await run(found.script, true) : { broken: undefined };
  expect(broken, [...story, JSON.stringify(found?.script)].join('\n')).toBeUndefined();
  expect(MUST_HAPPEN.filter((kind) => !tally.has(kind))).toEqual([]);
}, 600_000);
