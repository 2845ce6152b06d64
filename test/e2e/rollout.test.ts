/** Edits of the spec reach running members, one after the other, while clients write; a wrong edit breaks one member, and is taken back. */
import { describe, expect, test } from 'vitest';
import { settled } from '../support/journeys/at-rest.ts';
import { flagsOf, watchPods } from '../support/journeys/away.ts';
import { type AnObject, aTenant, becomes, conditionOf, KIND, type Tenant } from '../support/journeys/journey.ts';
import { aServingCluster, IN_MEMORY } from '../support/journeys/serving.ts';

const podsOf = (tenant: Tenant, name: string): Promise<readonly AnObject[]> =>
  tenant.list('pods', `etcd-operator.cozystack.io/cluster=${name}`);

const namesOf = (pods: readonly AnObject[]): readonly string[] => pods.map(({ metadata }) => metadata.name).sort();

const leaderOf = async (tenant: Tenant, name: string): Promise<string> =>
  String((await tenant.get(KIND, name)).status?.['leader' as never]);

describe('an edit', () => {
  test('restarts every member once, the leader last, and never two at a time', async () => {
    const tenant = await aTenant();
    const { endsWell } = await aServingCluster(tenant, 'edited', { replicas: 3 });
    const before = await podsOf(tenant, 'edited');
    const leader = await leaderOf(tenant, 'edited');
    const watched = watchPods(tenant, 'edited');
    await tenant.edit('edited', { options: { snapshotCount: 5_000 } });
    await becomes('all members to run with the option', async () => {
      const pods = await podsOf(tenant, 'edited');
      expect(pods.filter((pod) => flagsOf(pod).includes('--snapshot-count=5000'))).toHaveLength(3);
    });
    await settled(tenant, 'edited');
    const { fewestReady, created } = await watched.stop();
    expect(fewestReady).toBeGreaterThanOrEqual(2);
    expect([...created].sort()).toEqual([...namesOf(before), ...namesOf(before)].sort());
    expect(created.at(-1)).toBe(leader);
    await endsWell(3);
  });

  test.runIf(process.env['DEV_TEST_ALL'])('of members in memory replaces them one after the other', async () => {
    const tenant = await aTenant();
    const { endsWell } = await aServingCluster(tenant, 'fleeting', { replicas: 3, ...IN_MEMORY });
    const before = namesOf(await podsOf(tenant, 'fleeting'));
    await tenant.edit('fleeting', { options: { snapshotCount: 5_000 } });
    await becomes('all members to be other ones, with the option', async () => {
      const pods = await podsOf(tenant, 'fleeting');
      expect(pods.filter((pod) => flagsOf(pod).includes('--snapshot-count=5000'))).toHaveLength(3);
      expect(namesOf(pods).filter((name) => before.includes(name))).toEqual([]);
    });
    await endsWell(3);
  });

  test.runIf(process.env['DEV_TEST_ALL'])('of every field that changes the Pod reaches all members', async () => {
    const tenant = await aTenant();
    const { endsWell } = await aServingCluster(tenant, 'every', { replicas: 3 });
    const watched = watchPods(tenant, 'every');
    const container = (pod: AnObject) => (pod.spec['containers'] as readonly Record<string, unknown>[])[0] ?? {};
    const edits: readonly (readonly [Readonly<Record<string, unknown>>, (pod: AnObject) => unknown, unknown])[] = [
      [
        { resources: { requests: { cpu: '50m', memory: '96Mi' } } },
        (pod) => (container(pod)['resources'] as { requests: { cpu: string } }).requests.cpu,
        '50m',
      ],
      [{ terminationGracePeriodSeconds: 20 }, (pod) => pod.spec['terminationGracePeriodSeconds'], 20],
      [
        { nodeSelector: { 'kubernetes.io/os': 'linux' } },
        (pod) => (pod.spec['nodeSelector'] as Record<string, string> | undefined)?.['kubernetes.io/os'],
        'linux',
      ],
      [{ extraArgs: ['--log-level=warn'] }, (pod) => flagsOf(pod).includes('--log-level=warn'), true],
      [
        { tolerations: [{ key: 'example.com/etcd', operator: 'Exists' }] },
        (pod) => (pod.spec['tolerations'] as readonly { key?: string }[]).some(({ key }) => key === 'example.com/etcd'),
        true,
      ],
    ];
    for (const [edit, read, expected] of edits) {
      await tenant.edit('every', edit);
      await becomes(`${Object.keys(edit).join()} to reach all members`, async () =>
        expect((await podsOf(tenant, 'every')).map(read)).toEqual([expected, expected, expected]),
      );
      await settled(tenant, 'every');
    }
    expect((await watched.stop()).fewestReady).toBeGreaterThanOrEqual(2);
    await endsWell(3);
  });
});

describe('a wrong edit breaks one member, and the next edit takes it back:', () => {
  const wrong: readonly (readonly [string, Readonly<Record<string, unknown>>, Readonly<Record<string, unknown>>])[] = [
    ['a flag that etcd refuses', { extraArgs: ['--no-such-flag=1'] }, { extraArgs: null }],
    ['an image that does not exist', { image: { digest: `sha256:${'0'.repeat(64)}` } }, { image: null }],
    ['a node that does not exist', { nodeSelector: { 'kubernetes.io/hostname': 'absent' } }, { nodeSelector: null }],
  ];
  test.runIf(process.env['DEV_TEST_ALL']).each(wrong)('%s', async (_what, edit, back) => {
    const tenant = await aTenant();
    const { endsWell } = await aServingCluster(tenant, 'mistake', { replicas: 3 });
    const watched = watchPods(tenant, 'mistake');
    await tenant.edit('mistake', edit);
    await becomes('one member to be away for the edit', async () => {
      const cluster = await tenant.get(KIND, 'mistake');
      expect(cluster.status?.readyMembers).toBe(2);
      expect(conditionOf(cluster, 'Available')).toMatchObject({ status: 'True' });
    });
    await tenant.edit('mistake', back);
    await settled(tenant, 'mistake');
    const { fewestReady } = await watched.stop();
    expect(fewestReady).toBeGreaterThanOrEqual(2);
    await endsWell(3);
  });

  test('and without one, the operator gives the member back what it had', async () => {
    const tenant = await aTenant();
    const { endsWell } = await aServingCluster(tenant, 'hopeless', { replicas: 3, progressDeadlineSeconds: 30 });
    await tenant.edit('hopeless', { extraArgs: ['--no-such-flag=1'] });
    await becomes('the rollout to fail, with all members ready', async () => {
      const cluster = await tenant.get(KIND, 'hopeless');
      expect(conditionOf(cluster, 'Progressing')).toMatchObject({ reason: 'RolloutFailed' });
      expect(cluster.status?.readyMembers).toBe(3);
    });
    await tenant.edit('hopeless', { extraArgs: null });
    await endsWell(3);
  });
});

test.runIf(process.env['DEV_TEST_ALL'])('another value of the annotation restarts every member once', async () => {
  const tenant = await aTenant();
  const { endsWell } = await aServingCluster(tenant, 'again', { replicas: 3 });
  const before = await podsOf(tenant, 'again');
  const uids = before.map(({ metadata }) => metadata.uid);
  const watched = watchPods(tenant, 'again');
  await tenant.kubectl('annotate', KIND, 'again', 'etcd-operator.cozystack.io/restarted-at=now');
  await becomes('every Pod to be another one', async () => {
    const pods = await podsOf(tenant, 'again');
    expect(pods.filter(({ metadata }) => !uids.includes(metadata.uid))).toHaveLength(3);
  });
  await settled(tenant, 'again');
  const { created, fewestReady } = await watched.stop();
  expect([...created].sort()).toEqual([...namesOf(before), ...namesOf(before)].sort());
  expect(fewestReady).toBeGreaterThanOrEqual(2);
  await endsWell(3);
});
