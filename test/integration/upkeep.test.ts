/** Services, PodDisruptionBudgets and labels that the API server refuses, or that another writer changes back, hold nothing else up. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { clientServiceName } from '../../src/api/names.ts';
import { podDisruptionBudgets, pods, services } from '../../src/kube/resources.ts';
import { eventually, pause } from '../support/servers/processes.ts';
import { type Scene, scenery } from '../support/servers/scene.ts';
import { clusters, members, startWorld, type World } from '../support/servers/world.ts';

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(async () => {
  await world?.stop();
});
const { aScene, ends } = scenery(() => world);

const PATIENCE_MS = 120_000;
const IN_SYNC = 'ManagedObjectsInSync';

const becomes = ({ namespace }: Scene, type: string, status: string, reason?: string) =>
  world.patiently(PATIENCE_MS).condition(namespace, 'db', type, status, reason);

async function running(scene: Scene): Promise<void> {
  await world.createCluster(scene.namespace, 'db', { replicas: 3 });
  await becomes(scene, 'Progressing', 'False', 'Reconciled');
}

/** A user deletes the data of one member for good; the operator replaces it. */
async function loseMember({ namespace }: Scene): Promise<void> {
  const [lost] = await world.list(members, namespace);
  const { name = '', uid = '' } = lost?.metadata ?? {};
  await world.admin.delete(members, { namespace, name }, { uid });
  await eventually(
    'another member in its place',
    async () => {
      const now = await world.list(members, namespace);
      const voters = now.filter((m) => m.status?.isVoter && !m.metadata.deletionTimestamp);
      return voters.length === 3 && !now.some((m) => m.metadata.uid === uid) ? true : undefined;
    },
    { timeoutMs: PATIENCE_MS },
  );
}

const messageOf = async ({ namespace }: Scene): Promise<string | undefined> =>
  (await world.admin.get(clusters, { namespace, name: 'db' }))?.status?.conditions?.find((c) => c.type === IN_SYNC)
    ?.message;

test.each([
  ['refused by a policy', 403, 'Refused'],
  ['impossible, as with a full range of ClusterIPs', 500, 'Failed'],
])(
  'a Service and a PodDisruptionBudget that are %s keep no member from being replaced, and the condition names them',
  async (_why, code, reason) => {
    const scene = await aScene();
    await running(scene);
    const { namespace, proxy } = scene;
    const heal = ['services', 'poddisruptionbudgets'].map((resource) =>
      proxy.fault({ resource, write: true }, { do: 'answer', code }),
    );
    const name = clientServiceName('db');
    const uid = (await world.admin.get(services, { namespace, name }))?.metadata.uid ?? '';
    await world.admin.delete(services, { namespace, name }, { uid });
    await becomes(scene, IN_SYNC, 'False', reason);
    expect(await messageOf(scene)).toContain(`Service ${name}`);
    await loseMember(scene);
    const refused = proxy.calls.filter((call) => call.code === code && call.resource === 'services');
    expect(refused.length).toBeLessThan(30); // with back-off, although members cause events
    for (const stop of heal) stop();
    await eventually(
      'the Service, and no condition',
      async () => {
        const service = await world.admin.get(services, { namespace, name });
        return service && (await messageOf(scene)) === undefined ? true : undefined;
      },
      { timeoutMs: PATIENCE_MS },
    );
    await ends(scene);
  },
  4 * PATIENCE_MS,
);

test(
  'a label that another controller changes back at once is written with growing delays, and members are replaced meanwhile',
  async () => {
    const scene = await aScene();
    await running(scene);
    const { namespace, proxy } = scene;
    const labels = { team: 'a' };
    await world.admin.patch(clusters, { namespace, name: 'db' }, { spec: { additionalMetadata: { labels } } });
    let on = true;
    const reverting = (async () => {
      while (on) {
        const found = await world.admin.get(podDisruptionBudgets, { namespace, name: 'db' });
        if (found?.metadata.labels?.['team'] === 'a')
          await world.admin.patch(
            podDisruptionBudgets,
            { namespace, name: 'db' },
            { metadata: { labels: { team: 'theirs' } } },
          );
        await pause(20);
      }
    })();
    await becomes(scene, IN_SYNC, 'False', 'Overwritten');
    const before = proxy.calls.length;
    await loseMember(scene);
    await pause(3_000);
    const patches = proxy.calls
      .slice(before)
      .filter((call) => call.resource === 'poddisruptionbudgets' && call.verb === 'patch');
    expect(patches.length).toBeLessThan(12);
    expect(await messageOf(scene)).toContain('another controller or an admission webhook changes it');
    on = false;
    await reverting;
    await eventually('no condition', async () => ((await messageOf(scene)) === undefined ? true : undefined), {
      timeoutMs: PATIENCE_MS,
    });
    await ends(scene);
  },
  4 * PATIENCE_MS,
);

test(
  'a Pod that is rejected again and again is not created at full speed',
  async () => {
    const scene = await aScene();
    const { namespace, proxy } = scene;
    await running(scene);
    const [rejected] = await world.list(members, namespace);
    const name = rejected?.metadata.name ?? '';
    let on = true;
    const rejecting = (async () => {
      while (on) {
        const pod = await world.admin.get(pods, { namespace, name });
        if (pod && !pod.metadata.deletionTimestamp && pod.status?.phase !== 'Failed')
          await world.admin
            .patch(
              pods,
              { namespace, name },
              { status: { phase: 'Failed', reason: 'UnexpectedAdmissionError' } },
              { subresource: 'status' },
            )
            .catch(() => undefined); // it may be deleted meanwhile
        await pause(10);
      }
    })();
    await pause(20_000);
    const created = proxy.calls.filter((call) => call.verb === 'create' && call.resource === 'pods');
    expect(created.length).toBeLessThan(3 + 14);
    on = false;
    await rejecting;
    await becomes(scene, 'Available', 'True', 'QuorumHealthy');
    await ends(scene);
  },
  4 * PATIENCE_MS,
);
