/** Pods that are deleted, one by one or all at once, and processes that die: members come back with their data. */
import { expect, onTestFinished, test } from 'vitest';
import { crash } from '../../local/faults.ts';
import { UserClient } from '../support/etcd-client.ts';
import { settled } from '../support/journeys/at-rest.ts';
import { type AnObject, aTenant, becomes, MEMBER_KIND, type Tenant } from '../support/journeys/journey.ts';
import { aServingCluster, IN_MEMORY } from '../support/journeys/serving.ts';

const uids = (objects: readonly AnObject[]): readonly string[] => objects.map((object) => object.metadata.uid);

/** Every Pod was replaced. */
const replaced = (tenant: Tenant, before: readonly AnObject[]): Promise<void> =>
  becomes('other Pods', async () => {
    const now = await tenant.list('pods');
    expect(now).toHaveLength(before.length);
    expect(uids(now).filter((uid) => uids(before).includes(uid))).toEqual([]);
  });

test('Pods that are deleted one after the other, then all at once, come back as the same members', async () => {
  const tenant = await aTenant();
  const { endsWell } = await aServingCluster(tenant, 'phoenix', { replicas: 3 });
  const members = uids(await tenant.list(MEMBER_KIND));
  for (const pod of await tenant.list('pods')) {
    await tenant.kubectl('delete', 'pod', pod.metadata.name, '--wait=true');
    // The status may still be the previous one: first wait until another Pod is ready.
    await becomes('another Pod in its place', () =>
      tenant.kubectl('wait', '--for=condition=Ready', `pod/${pod.metadata.name}`, '--timeout=120s'),
    );
    await settled(tenant, 'phoenix');
  }
  const last = await tenant.list('pods');
  await tenant.kubectl('delete', 'pod', '--all', '--wait=false');
  await replaced(tenant, last);
  await endsWell(3);
  expect(uids(await tenant.list(MEMBER_KIND))).toEqual(members);
});

test('a leader whose Pod is deleted hands over while it still serves, and no election is needed', async () => {
  const tenant = await aTenant();
  const { endsWell } = await aServingCluster(tenant, 'handed', { replicas: 3, ...IN_MEMORY });
  const etcd = new UserClient(() => performance.now());
  onTestFinished(() => etcd.close());
  const pods = await tenant.list('pods');
  const statusOf = async ({ status: { podIP } = {} }: AnObject) => {
    const answer = await etcd.status({ endpoint: `http://${podIP}:2379`, timeoutMs: 1_000 });
    if (!answer.ok) throw new Error(answer.error.message);
    return answer.value;
  };
  const all = await Promise.all(pods.map(async (pod) => ({ pod, status: await statusOf(pod) })));
  const old = all.find(({ status }) => status.leader === status.memberId);
  const follower = all.find((each) => each !== old);
  if (!old || !follower) throw new Error('no member leads');
  await tenant.kubectl('delete', 'pod', old.pod.metadata.name, '--wait=false');
  const started = performance.now();
  const after = await becomes(
    'another leader',
    async () => {
      const status = await statusOf(follower.pod);
      expect(status.leader).not.toBe(old.status.leader);
      return status;
    },
    10,
  );
  const tookMs = Math.round(performance.now() - started);
  process.stdout.write(
    `another leader ${tookMs} ms after the deletion, term ${old.status.raftTerm} → ${after.raftTerm}\n`,
  );
  expect((await statusOf(old.pod)).leader).toBe(after.leader); // it goes on as a follower
  expect(after.raftTerm).toBe(old.status.raftTerm + 1n);
  await endsWell(3);
});

test.runIf(process.env['DEV_TEST_ALL'])(
  'Pods that a node shutdown left Failed and Succeeded are created again',
  async () => {
    const tenant = await aTenant();
    const { endsWell } = await aServingCluster(tenant, 'shutdown', { replicas: 3 });
    const pods = await tenant.list('pods');
    for (const [index, pod] of pods.entries()) {
      const status = {
        phase: index === 0 ? 'Succeeded' : 'Failed',
        reason: 'Terminated',
        message: 'Pod was terminated in response to imminent node shutdown.',
      };
      await tenant.kubectl('patch', 'pod', pod.metadata.name, '--subresource=status', '-p', JSON.stringify({ status }));
    }
    await replaced(tenant, pods);
    await endsWell(3);
  },
);

test.runIf(process.env['DEV_TEST_ALL'])(
  'etcd processes that are killed again and again are restarted, and no member is replaced',
  async () => {
    const tenant = await aTenant();
    const { writer, endsWell } = await aServingCluster(tenant, 'tough', { replicas: 3 });
    const members = uids(await tenant.list(MEMBER_KIND));
    for (let round = 0; round < 4; round++) {
      const pods = await tenant.list('pods');
      const pod = pods[Math.floor(Math.random() * pods.length)];
      await crash(tenant.cluster, tenant.namespace, pod?.metadata.name ?? '');
      await writer.served();
    }
    await endsWell(3);
    expect(uids(await tenant.list(MEMBER_KIND))).toEqual(members);
  },
);
