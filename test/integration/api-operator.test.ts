/** How the operator implements the API: conditions for unsupported kinds, the PodDisruptionBudget, and the details of the status. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { etcdDefragPolicies, etcdDefrags } from '../../src/api/names.ts';
import type { Pod } from '../../src/gen/kube.ts';
import type { Resource } from '../../src/kube/object.ts';
import { persistentVolumeClaims, podDisruptionBudgets, pods, services } from '../../src/kube/resources.ts';
import { type Written, written } from '../support/servers/api-server.ts';
import { type Child, eventually, pause, stands } from '../support/servers/processes.ts';
import { clusters, members, startWorld, type World } from '../support/servers/world.ts';

let world: World;
let operator: Child;
beforeAll(async () => {
  world = await startWorld();
  operator = world.startOperator('--etcd-image-allowed=mirror.example.com/*');
});
afterAll(async () => {
  await world?.stop();
});
afterEach((context) => {
  if (context.task.result?.state === 'fail') process.stderr.write(operator.log());
});

const made = async (namespace: string): Promise<readonly string[]> => {
  const kinds: readonly Resource[] = [members, services, pods, persistentVolumeClaims, podDisruptionBudgets];
  return (await Promise.all(kinds.map((kind) => world.list(kind, namespace)))).flat().map((o) => o.metadata.name ?? '');
};
const edit = (namespace: string, spec: Readonly<Record<string, unknown>>) =>
  world.admin.patch(clusters, { namespace, name: 'db' }, { spec });

describe('a running cluster', () => {
  let namespace: string;
  beforeAll(async () => {
    namespace = await world.namespace();
    await world.createCluster(namespace, 'db', { additionalMetadata: { labels: { team: 'a' } } });
    await world.condition(namespace, 'db', 'Progressing', 'False', 'Reconciled');
  });

  test('is defragmented as an EtcdDefrag of the Go operator asks for, and as its policy does', async () => {
    const spec = { clusterRef: { name: 'db' }, rule: { all: true } };
    await world.admin.create(etcdDefrags, written(etcdDefrags, namespace, 'once', spec));
    const finished = await eventually('the EtcdDefrag has finished', async () => {
      const found = await world.admin.get<Written>(etcdDefrags, { namespace, name: 'once' });
      return found?.status?.['completedAt'] === undefined ? undefined : found;
    });
    expect(finished.status).toMatchObject({
      phase: 'Complete',
      defragmented: 1,
      members: [{ role: 'leader', outcome: 'Defragmented', dbSizeBefore: expect.any(Number) }],
      conditions: [{ type: 'DefragChecked', status: 'True', reason: 'Complete' }],
    });
    const policy = { clusterRef: { name: 'db' }, schedule: '* * * * *', suspend: true };
    await world.admin.create(etcdDefragPolicies, written(etcdDefragPolicies, namespace, 'nightly', policy));
    const suspended = await eventually('the condition of the policy', async () => {
      const found = await world.admin.get<Written>(etcdDefragPolicies, { namespace, name: 'nightly' });
      return found?.status?.['conditions'] ? found : undefined;
    });
    expect(suspended.status?.['conditions']).toMatchObject([{ type: 'Active', status: 'False', reason: 'Suspended' }]);
  });

  test('reports its members, its leader, its version and how many members it may lose before it loses quorum', async () => {
    const cluster = await eventually('the members in the status', async () => {
      const found = await world.admin.get(clusters, { namespace, name: 'db' });
      return found?.status?.leader === undefined ? undefined : found;
    });
    const [member] = await world.list(members, namespace);
    const name = member?.metadata.name ?? '';
    expect(cluster.status).toMatchObject({
      defaults: '1',
      leader: name,
      version: '3.6.16',
      updatedMembers: 1,
      brokenMembers: 0,
      quorum: { needed: 1, healthy: 1, margin: 0 },
      members: [{ name, role: 'leader', version: '3.6.16', databaseSize: '16Mi', quotaUsedPercent: 0 }],
      observed: { options: { quotaBackendBytes: 402653184, autoCompactionRetention: '1h' }, spread: 'Preferred' },
    });
    expect(cluster.status?.members?.[0]?.id).toBe(member?.status?.memberID);
    expect(cluster.status?.conditions?.map((c) => c.type)).toEqual(['Available', 'Progressing', 'Degraded']);
  });

  test('does not write its status because clients write', async () => {
    const [member] = await world.list(members, namespace);
    const endpoint = `http://${world.kubelet.addressOf(namespace, member?.metadata.name ?? '')}:2379`;
    const ref = { namespace, name: 'db' };
    const status = async () => (await world.admin.get(clusters, ref))?.status ?? {};
    const before = await stands('coalesced status writes', status, 3_000);
    for (let i = 0; i < 50; i++)
      expect((await world.etcd.put({ endpoint, timeoutMs: 5_000 }, `key-${i}`, 'x'.repeat(100_000))).ok).toBe(true);
    const asked = await world.admin.patch(clusters, ref, { metadata: { annotations: { look: 'now' } } });
    await pause(1_000); // the reconcile that the annotation has caused
    const after = await world.admin.get(clusters, ref);
    expect(after?.status).toEqual(before);
    expect(after?.metadata.resourceVersion).toBe(asked.metadata.resourceVersion);
  });

  test('has a PodDisruptionBudget and the user’s additional metadata', async () => {
    const [budget] = await world.list(podDisruptionBudgets, namespace);
    expect(budget?.metadata).toMatchObject({ name: 'db', labels: { team: 'a' } });
    expect(budget?.spec).toMatchObject({ minAvailable: 1, unhealthyPodEvictionPolicy: 'IfHealthyBudget' });
    for (const kind of [services, pods, persistentVolumeClaims, members] as readonly Resource[])
      for (const object of await world.list(kind, namespace))
        expect(object.metadata.labels).toMatchObject({ team: 'a' });
  });

  test('additional metadata reaches the Services and the PodDisruptionBudget at once, and is removed from them again', async () => {
    await edit(namespace, { additionalMetadata: { labels: { team: null, squad: 'b' }, annotations: { note: 'x' } } });
    const carriers = async (): Promise<readonly Written[]> =>
      [...(await world.list(services, namespace)), ...(await world.list(podDisruptionBudgets, namespace))] as Written[];
    await eventually('the new label everywhere', async () => {
      const all = await carriers();
      const right = all.every(
        ({ metadata: { labels = {}, annotations = {} } }) =>
          labels['squad'] === 'b' && labels['team'] === undefined && annotations['note'] === 'x',
      );
      return right && all.length === 3 ? true : undefined;
    });
    await edit(namespace, { additionalMetadata: { labels: { team: 'a', squad: null }, annotations: null } });
    await world.condition(namespace, 'db', 'Progressing', 'False', 'Reconciled');
  });

  test('restarts its member with each field that was edited', async () => {
    const podHas = (flag: string) =>
      eventually(`a Pod with ${flag}`, async () => {
        const [pod] = (await world.list(pods, namespace)) as Pod[];
        return pod?.spec?.containers[0]?.command?.includes(flag) ? pod : undefined;
      });
    await edit(namespace, { tolerations: [{ operator: 'Exists' }], options: { logLevel: 'warn' } });
    expect((await podHas('--log-level=warn')).spec?.tolerations).toContainEqual({ operator: 'Exists' });
    const edited = await world.condition(namespace, 'db', 'Progressing', 'False', 'Reconciled');
    expect(edited.status?.updatedMembers).toBe(1);
    await edit(namespace, { tolerations: null, options: { logLevel: 'info' } });
    await podHas('--log-level=info');
    await edit(namespace, { options: null });
    await world.condition(namespace, 'db', 'Progressing', 'False', 'Reconciled');
  });

  test('loses its PodDisruptionBudget when that is disabled, and gets it back', async () => {
    await edit(namespace, { podDisruptionBudget: { enabled: false } });
    const budgets = () => world.list(podDisruptionBudgets, namespace);
    await eventually('no budget', async () => ((await budgets()).length === 0 ? true : undefined));
    await edit(namespace, { podDisruptionBudget: null });
    await eventually('a budget', async () => ((await budgets()).length === 1 ? true : undefined));
  });
});

test('a foreign PodDisruptionBudget of the same name is not changed, and the status names its owner', async () => {
  const namespace = await world.namespace();
  const spec = { minAvailable: 5, selector: { matchLabels: { app: 'web' } } };
  const metadata = { namespace, name: 'db' };
  const foreign = await world.admin.create(podDisruptionBudgets, {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata,
    spec,
  });
  await world.createCluster(namespace, 'db');
  const cluster = await world.condition(namespace, 'db', 'Degraded', 'True', 'NameConflict');
  expect(cluster.status?.conditions?.find((c) => c.type === 'Degraded')?.message).toContain(
    'PodDisruptionBudget db exists and belongs to no controller',
  );
  const now = await world.admin.get(podDisruptionBudgets, metadata);
  expect(now?.spec).toEqual(foreign.spec);
  expect(now?.metadata.generation).toBe(foreign.metadata.generation);
});

test('two clusters that would share the name of a Service do not overwrite each other’s', async () => {
  const namespace = await world.namespace();
  await world.createCluster(namespace, 'db');
  await world.condition(namespace, 'db', 'Available', 'True');
  await world.createCluster(namespace, 'db-client');
  const second = await world.condition(namespace, 'db-client', 'Available', 'False', 'NameConflict');
  expect(second.status?.conditions?.[0]?.message).toContain('Service db-client exists and belongs to EtcdCluster db');
  await world.condition(namespace, 'db', 'Available', 'True', 'QuorumHealthy');
});

/** The message of a cluster repeats that of a member, and each may be coalesced for half a minute. */
const A_MINUTE = { timeoutMs: 75_000 };

test('a PriorityClass that does not exist is named in the status and an Event, and the Pod is created once it does', async () => {
  const namespace = await world.namespace();
  await world.createCluster(namespace, 'db', { priorityClassName: 'vital' });
  const refusal = 'no PriorityClass with name vital was found';
  const condition = await eventually(
    'the message of the API server',
    async () => {
      const found = await world.admin.get(clusters, { namespace, name: 'db' });
      const available = found?.status?.conditions?.find((c) => c.type === 'Available');
      return available?.message.includes(refusal) ? available : undefined;
    },
    A_MINUTE,
  );
  expect(condition.status).toBe('False');
  const [member] = await world.list(members, namespace);
  expect(member?.status?.conditions).toMatchObject([{ type: 'Ready', status: 'False', reason: 'PodNotReady' }]);
  expect(member?.status?.conditions?.[0]?.message).toContain('the API server refuses: ');
  expect(member?.status?.conditions?.[0]?.message).toContain(refusal);
  expect(await world.list(pods, namespace)).toEqual([]);
  await world.admin.transport.json('/apis/scheduling.k8s.io/v1/priorityclasses', {
    method: 'POST',
    body: { metadata: { name: 'vital' }, value: 1000 },
  });
  await world.patiently(80_000).condition(namespace, 'db', 'Available', 'True'); // the operator backs off meanwhile
  const events = await world.admin.transport.json<{ items: { note: string; type: string; reason: string }[] }>(
    `/apis/events.k8s.io/v1/namespaces/${namespace}/events`,
  );
  expect(events.items).toContainEqual(
    expect.objectContaining({ type: 'Warning', reason: 'Refused', note: expect.stringContaining(refusal) }),
  );
}, 200_000);

describe('images', () => {
  test('from other repositories are not run, and the status names the administrator’s list', async () => {
    const namespace = await world.namespace();
    await world.createCluster(namespace, 'db', { image: { repository: 'evil.example.com/etcd' } });
    const cluster = await world.condition(namespace, 'db', 'Available', 'False', 'ImageNotAllowed');
    expect(cluster.status?.conditions?.[0]?.message).toContain('quay.io/coreos/etcd, mirror.example.com/*');
    expect(await made(namespace)).toEqual([]);
  });

  test('from the administrator’s list are run, by their digest', async () => {
    const namespace = await world.namespace();
    const digest = `sha256:${'0'.repeat(64)}`;
    await world.createCluster(namespace, 'db', { image: { repository: 'mirror.example.com/etcd', digest } });
    const [pod] = await eventually('the Pod', async () => {
      const found = await world.list(pods, namespace);
      return found.length > 0 ? found : undefined;
    });
    expect(pod?.spec?.containers[0]?.image).toBe(`mirror.example.com/etcd:v3.6.16@${digest}`);
  });
});
