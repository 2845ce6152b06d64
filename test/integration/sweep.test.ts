/**
 * A slice of `./dev test sweep`: some crash points of all user actions, the most frequent late events, and what the
 * earlier operator did not survive.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findCondition } from '../../src/domain/conditions.ts';
import { permutations } from '../support/permutations.ts';
import { eventually } from '../support/servers/processes.ts';
import { killPlans } from '../sweep/plans.ts';
import { Sweep } from '../sweep/sweep.ts';
import { WORKLOADS, type Workload, workloadCalled } from '../sweep/workloads.ts';

const CRASHES = 2;
/** Each case waits for its turn most of the time: its time limit is set where it is run. */
const MINUTES = 15 * 60_000;

let sweep: Sweep;
beforeAll(async () => {
  sweep = await Sweep.start();
});
afterAll(async () => {
  await sweep?.stop();
});

const expectWell = async (names: readonly string[]): Promise<void> => {
  expect((await sweep.run(names)).failures.join('\n\n')).toBe('');
};

/** From the first to the last, evenly. */
const spread = <T>(items: readonly T[], count: number): readonly T[] =>
  items.filter((_, i) => Math.floor((i * count) / items.length) !== Math.floor(((i - 1) * count) / items.length));

const crashes = async (workload: Workload, count: number): Promise<readonly string[]> =>
  spread(killPlans(workload, await sweep.reference(workload)), count);

/** The three disruptions that differ most; the others with `--all`. */
const inEveryRun: readonly string[] = ['create-3', 'shrink-5-3', 'replace'];
const workloads = WORKLOADS.filter(({ name }) => process.env['DEV_TEST_ALL'] || inEveryRun.includes(name));

test.concurrent.each(workloads)(
  'while $sentence, the operator is killed or gets events late, and the result is the same as without disruption',
  async (workload) => {
    const late = [`${workload.name}/late-etcdmembers-2s`, `${workload.name}/late-pods-2s`];
    await expectWell([...(await crashes(workload, CRASHES)), ...late]);
  },
  MINUTES,
);

test.concurrent(
  'objects of a deleted cluster are not created again by an operator that receives the deletion late',
  async () => {
    await expectWell(['delete/late-etcdclusters-2s']);
  },
  MINUTES,
);

describe.concurrent('what the earlier operator did not survive:', () => {
  test(
    'while three members are created, the operator is killed at many points, and each time they are ready ten seconds later',
    async () => {
      await expectWell(await crashes(workloadCalled('create-3'), process.env['DEV_TEST_ALL'] ? 10 : 5));
    },
    MINUTES,
  );

  test.each(
    permutations(2, [
      ['watch events of members are 8 seconds late, and there is one seed', 'late-etcdmembers-8s'],
      [
        'the operator is killed after it has created the seed and before it gets the response',
        'kill-after-create-etcdmembers-1',
      ],
      [
        'the operator is killed at its next write after it has created the seed',
        'kill-after-create-persistentvolumeclaims-1',
      ],
      ['watch events of members are 2 seconds late, and there is one seed', 'late-etcdmembers-2s'],
    ]),
  )('%s', (_what, fault) => expectWell([`create-3/${fault}`]), MINUTES);

  test.each([57, 60, 64])('a name of %i characters is refused at once, with the reason', async (length) => {
    await expect(sweep.tryCluster('n'.repeat(length), {})).rejects.toThrow('at most 56 characters');
  });
  test('a name with a dot is refused at once, with the reason', async () => {
    await expect(sweep.tryCluster('a.b', {})).rejects.toThrow('at most 56 characters');
  });
  test('a spec that is accepted and cannot be realised is reported in a condition within ten seconds', async () => {
    const rig = await sweep.tryCluster('db', { image: { repository: 'absent.example/etcd' } });
    const condition = await eventually(
      'a condition',
      () => findCondition(rig.cluster?.status?.conditions, 'Available'),
      {
        timeoutMs: 10_000,
      },
    );
    expect(condition.message).toContain('absent.example/etcd');
    await rig.stop();
  });
});
