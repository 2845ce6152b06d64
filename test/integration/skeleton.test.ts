/** The whole slice with real servers: a user's EtcdCluster becomes an etcd that accepts writes, and is deleted without a trace. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { ROLE_LABEL } from '../../src/api/names.ts';
import type { KubeObject, Resource } from '../../src/kube/object.ts';
import { events, persistentVolumeClaims, pods, services } from '../../src/kube/resources.ts';
import { watch } from '../../src/kube/watcher.ts';
import { type Child, eventually, pause } from '../support/servers/processes.ts';
import { clusters, members, startWorld, type World } from '../support/servers/world.ts';

let world: World;
let operator: Child | undefined;

beforeAll(async () => {
  world = await startWorld();
});
afterAll(async () => {
  await world?.stop();
});
afterEach(async (context) => {
  world.kubelet.hold(false);
  if (context.task.result?.state === 'fail') process.stderr.write(operator?.log() ?? '');
  await operator?.stop('SIGKILL');
  operator = undefined;
});

const available = (namespace: string, name: string) => world.condition(namespace, name, 'Available', 'True');
const ask = (namespace: string, pod: string) => ({
  endpoint: `http://${world.kubelet.addressOf(namespace, pod)}:2379`,
  timeoutMs: 2000,
});
const versions = async (namespace: string): Promise<readonly string[]> => {
  const kinds: readonly Resource[] = [clusters, members, services, pods, persistentVolumeClaims];
  const all = await Promise.all(kinds.map((kind) => world.list(kind, namespace)));
  return all.flat().map((o) => `${o.metadata.name} ${o.metadata.resourceVersion}`);
};

describe('creating a cluster', () => {
  test('leads to an etcd that accepts writes, and a status that reports it', async () => {
    operator = world.startOperator();
    const namespace = await world.namespace();
    await world.createCluster(namespace, 'db');
    const cluster = await available(namespace, 'db');
    const [member, ...others] = await world.list(members, namespace);
    expect(others).toEqual([]);
    const name = member?.metadata.name ?? '';
    expect(name).toMatch(/^db-[a-z0-9]{5}$/);
    const list = await world.etcd.memberList({ ...ask(namespace, name), linearizable: true });
    if (!list.ok) throw new Error(list.error.message);
    expect(cluster.status).toMatchObject({
      clusterID: list.value.clusterId.toString(16).padStart(16, '0'),
      clusterToken: `${namespace}-db-${cluster.metadata.uid}`,
      readyMembers: 1,
      selector: 'etcd-operator.cozystack.io/cluster=db',
      observed: { replicas: 1, version: '3.6.16', storage: { size: '1Gi', medium: '' } },
    });
    expect((await world.etcd.put(ask(namespace, name), 'k', 'v')).ok).toBe(true);
    expect(await world.etcd.get(ask(namespace, name), 'k')).toEqual({ ok: true, value: 'v' });
    await world.condition(namespace, 'db', 'Progressing', 'False', 'Reconciled');
    await world.condition(namespace, 'db', 'Degraded', 'False', 'QuorumHealthy');
    expect(cluster.status?.conditions?.every((c) => c.observedGeneration === 1)).toBe(true);
    await eventually('the member to be open to clients', async () => {
      const [pod] = await world.list(pods, namespace);
      return pod?.metadata.labels?.[ROLE_LABEL] === 'voter' || undefined;
    });
    expect((await world.list(services, namespace)).map((s) => s.metadata.name)).toEqual(['db', 'db-client']);
    const reported = async (): Promise<readonly string[]> =>
      (await world.list(events, namespace))
        .filter((e) => e.reportingController === 'etcd-operator')
        .map((e) => `${e.regarding?.kind} ${e.type} ${e.reason}`);
    const expected = ['EtcdCluster Normal ClusterDiscovered', 'EtcdCluster Normal QuorumHealthy'];
    const all = await eventually(
      `Events: ${expected.join(', ')}`,
      async () => {
        const now = await reported();
        return expected.every((each) => now.includes(each)) ? now : undefined;
      },
      { seen: reported },
    );
    expect(all.filter((t) => t.includes('Warning'))).toEqual([]);
  });

  test('survives a restart of the operator in the middle', async () => {
    operator = world.startOperator();
    world.kubelet.hold(true);
    const namespace = await world.namespace();
    await world.createCluster(namespace, 'db');
    await eventually('the Pod', async () => (await world.list(pods, namespace))[0]);
    await operator.stop('SIGTERM');
    operator = world.startOperator();
    world.kubelet.hold(false);
    await available(namespace, 'db');
    expect((await world.list(members, namespace)).length).toBe(1);
  });

  test('creates exactly one seed when the operator is killed right after creating it', async () => {
    const namespace = await world.namespace();
    operator = world.startOperator();
    const killed = new AbortController();
    const first = operator;
    void watch({
      client: world.admin,
      resource: members,
      namespace,
      signal: killed.signal,
      emit: (event) => {
        if (event.type === 'put') void first.stop('SIGKILL').then(() => killed.abort());
      },
      onError: () => {},
      sleep: pause,
      random: () => 0,
    });
    await world.createCluster(namespace, 'db');
    await first.ended;
    const [before] = await world.list(members, namespace);
    operator = world.startOperator();
    await available(namespace, 'db');
    expect((await world.list(members, namespace)).map((m) => m.metadata.uid)).toEqual([before?.metadata.uid]);
  });
});

describe('faults', () => {
  test('a foreign Service of the same name is not changed, and the status names its owner', async () => {
    operator = world.startOperator();
    const namespace = await world.namespace();
    const ref = { namespace, name: 'db-client' };
    const spec = { ports: [{ port: 80 }], selector: { app: 'web' } };
    const foreign = await world.admin.create(services, { apiVersion: 'v1', kind: 'Service', metadata: ref, spec });
    await world.createCluster(namespace, 'db');
    const cluster = await world.condition(namespace, 'db', 'Available', 'False', 'NameConflict');
    expect(cluster.status?.conditions?.[0]?.message).toContain('Service db-client exists and belongs to no controller');
    await pause(1_000);
    expect((await world.admin.get(services, ref))?.metadata.resourceVersion).toBe(foreign.metadata.resourceVersion);
    expect(await world.list(members, namespace)).toEqual([]);
    await world.admin.delete(services, ref, { uid: foreign.metadata.uid ?? '' });
    await available(namespace, 'db');
  });

  test.runIf(process.env['DEV_TEST_ALL'])(
    'a Pod that a policy refuses is reported in the status of the cluster, and created once the policy allows it',
    async () => {
      operator = world.startOperator();
      const namespace = await world.namespace();
      const path = `/api/v1/namespaces/${namespace}/limitranges`;
      const spec = { limits: [{ type: 'Container', max: { memory: '16Mi' } }] };
      await world.admin.transport.json(path, { method: 'POST', body: { metadata: { name: 'tiny' }, spec } });
      await world.createCluster(namespace, 'db');
      await eventually(
        'the reason in the status',
        async () => {
          const cluster = await world.admin.get(clusters, { namespace, name: 'db' });
          return cluster?.status?.conditions?.find((c) =>
            c.message.includes('must be less than or equal to memory limit of 16Mi'),
          );
        },
        { timeoutMs: 75_000 },
      ); // the message of a member, which is coalesced, and then that of the cluster
      await world.admin.transport.json(`${path}/tiny`, { method: 'DELETE' });
      // By now the operator backs off longer and longer, and an API server may cache a lookup for half a minute.
      await world.patiently(80_000).condition(namespace, 'db', 'Available', 'True');
    },
    180_000,
  );

  test('a Pod that is deleted comes back at once, with its data', async () => {
    operator = world.startOperator();
    const namespace = await world.namespace();
    await world.createCluster(namespace, 'db');
    await available(namespace, 'db');
    const [pod] = await world.list(pods, namespace);
    const name = pod?.metadata.name ?? '';
    await world.etcd.put(ask(namespace, name), 'kept', 'yes');
    world.kubelet.hold(true); // until the operator has observed the deletion
    await world.admin.delete(pods, { namespace, name }, { uid: pod?.metadata.uid ?? '' });
    await world.condition(namespace, 'db', 'Available', 'False', 'QuorumLost');
    world.kubelet.hold(false);
    await available(namespace, 'db');
    expect(await world.etcd.get(ask(namespace, name), 'kept')).toEqual({ ok: true, value: 'yes' });
  });

  test('a Pod that has ended for good is replaced', async () => {
    operator = world.startOperator();
    const namespace = await world.namespace();
    await world.createCluster(namespace, 'db');
    await available(namespace, 'db');
    const [pod] = await world.list(pods, namespace);
    const ref = { namespace, name: pod?.metadata.name ?? '' };
    await world.admin.patch(pods, ref, { status: { phase: 'Failed', reason: 'Evicted' } }, { subresource: 'status' });
    await eventually('another Pod', async () => {
      const now = await world.admin.get(pods, ref);
      return now && now.metadata.uid !== pod?.metadata.uid ? now : undefined;
    });
    await available(namespace, 'db');
  });

  test('the only member is removed when a user deletes it, and its data is kept: another one takes over first', async () => {
    operator = world.startOperator();
    const namespace = await world.namespace();
    await world.createCluster(namespace, 'db');
    const { clusterID } = (await available(namespace, 'db')).status ?? {};
    const [member] = await world.list(members, namespace);
    const name = member?.metadata.name ?? '';
    await world.etcd.put(ask(namespace, name), 'k', 'kept');
    await world.admin.delete(members, { namespace, name }, { uid: member?.metadata.uid ?? '' });
    const replacement = await eventually('another member alone', async () => {
      const [only, ...others] = await world.list(members, namespace);
      const ready = only?.status?.conditions?.some((c) => c.type === 'Ready' && c.status === 'True');
      return others.length === 0 && only?.metadata.name !== name && ready ? only?.metadata.name : undefined;
    });
    const cluster = await world.condition(namespace, 'db', 'Progressing', 'False', 'Reconciled');
    expect(cluster.status?.clusterID).toBe(clusterID);
    expect(await world.etcd.get(ask(namespace, replacement), 'k')).toEqual({ ok: true, value: 'kept' });
    const reasons = (await world.list(events, namespace)).map((event) => event.reason);
    expect(reasons).toContain('AllMembersDeleted');
    expect(reasons).not.toContain('QuorumLost');
  });

  test('the only member has lost its volume and is deleted: a loss, not a reason to bootstrap a second cluster', async () => {
    operator = world.startOperator();
    const namespace = await world.namespace();
    await world.createCluster(namespace, 'db');
    const { clusterID } = (await available(namespace, 'db')).status ?? {};
    const [claim] = await world.list(persistentVolumeClaims, namespace);
    const [member] = await world.list(members, namespace);
    const remove = (kind: Resource, object: KubeObject | undefined) =>
      world.admin.delete(kind, { namespace, name: object?.metadata.name ?? '' }, { uid: object?.metadata.uid ?? '' });
    // Between the two, a running operator adds a learner that takes the data over: here nothing is left to take over.
    await operator.stop('SIGKILL');
    await remove(persistentVolumeClaims, claim);
    await remove(pods, (await world.list(pods, namespace))[0]);
    operator = world.startOperator();
    await world.condition(namespace, 'db', 'Available', 'False', 'AllMembersLost');
    await remove(members, member);
    await eventually('it to be deleted', async () =>
      (await world.list(members, namespace)).length === 0 ? true : undefined,
    );
    await pause(2_000);
    const cluster = await world.condition(namespace, 'db', 'Available', 'False', 'AllMembersLost');
    expect(cluster.status?.conditions?.map((c) => `${c.type}=${c.status}/${c.reason}`)).toEqual([
      'Available=False/AllMembersLost',
      'Progressing=False/AllMembersLost',
      'Degraded=True/AllMembersLost',
    ]);
    expect(await world.list(members, namespace)).toEqual([]);
    expect(cluster.status?.clusterID).toBe(clusterID);
  });

  test('data in memory that is lost with its Pod is reported, and no second cluster is bootstrapped', async () => {
    operator = world.startOperator();
    const namespace = await world.namespace();
    await world.createCluster(namespace, 'db', { storage: { medium: 'Memory', size: '64Mi' } });
    await available(namespace, 'db');
    expect(await world.list(persistentVolumeClaims, namespace)).toEqual([]);
    const [pod] = await world.list(pods, namespace);
    await world.admin.delete(pods, { namespace, name: pod?.metadata.name ?? '' }, { uid: pod?.metadata.uid ?? '' });
    await world.condition(namespace, 'db', 'Available', 'False', 'AllMembersLost');
    await pause(1_000);
    expect(await world.list(pods, namespace)).toEqual([]);
  });
});

describe('two operators', () => {
  const lease = '/apis/coordination.k8s.io/v1/namespaces/default/leases/aa20b3a9.etcd-operator.cozystack.io';
  const holder = async () => {
    const { spec } = await world.admin.transport.json<{ spec: { holderIdentity: string } }>(lease);
    return spec.holderIdentity || undefined;
  };

  test('the second acts as soon as the first ends; one that lost the Lease ends by itself', async () => {
    const flags = ['--leader-elect', '--namespace=default'];
    const first = world.startOperator(...flags);
    const firstHolder = await eventually('a holder', holder);
    const second = world.startOperator(...flags);
    operator = second;
    const namespace = await world.namespace();
    await eventually('the second to wait', () => second.log().includes('waiting for the lease') || undefined);
    await first.stop('SIGTERM');
    expect(await first.ended).toBe(0);
    const started = performance.now();
    await eventually('another holder', async () => ((await holder()) === firstHolder ? undefined : await holder()));
    expect(performance.now() - started).toBeLessThan(10_000); // one that is not given up runs out after 13 s at the earliest
    await world.createCluster(namespace, 'db');
    await available(namespace, 'db');
    const stolen = { spec: { holderIdentity: 'another-operator', leaseDurationSeconds: 1 } };
    await world.admin.transport.json(lease, {
      method: 'PATCH',
      body: stolen,
      contentType: 'application/merge-patch+json',
    });
    expect(await operator.ended).toBe(1);
    expect(operator.log()).toContain('lost the Lease');
  });
});

test('deleting a cluster leaves nothing behind', async () => {
  operator = world.startOperator();
  const namespace = await world.namespace();
  const cluster = await world.createCluster(namespace, 'db');
  await available(namespace, 'db');
  await world.admin.delete(clusters, { namespace, name: 'db' }, { uid: cluster.metadata.uid ?? '' });
  const left = async (): Promise<readonly string[]> => versions(namespace);
  await eventually('everything to be deleted', async () => ((await left()).length === 0 ? true : undefined), {
    seen: left,
  });
});

describe('an invalid spec is refused at once', () => {
  test.each([
    ['a name that is too long', 'a'.repeat(57), {}, 'at most 56 characters'],
    ['a name with a dot', 'a.b', {}, 'at most 56 characters'],
    ['a name that starts with a digit', '1a', {}, 'must start with a letter'],
    ['no disk space', 'db', { storage: { size: '0' } }, 'storage.size is 0: it must be greater than zero'],
    ['a version that is none', 'db', { version: 'latest' }, 'spec.version'],
  ])('%s', async (_what, name, spec, sentence) => {
    const namespace = await world.namespace();
    await expect(world.createCluster(namespace, name, spec)).rejects.toThrow(sentence);
  });

  test.each([
    ['shrinking', { storage: { size: '1Gi' } }, 'storage.size cannot be reduced'],
    ['another medium', { storage: { medium: 'Memory' } }, 'storage.medium cannot change'],
    ['another class', { storage: { storageClassName: 'slow' } }, 'storage.storageClassName cannot change'],
    ['no class', { storage: { storageClassName: null } }, 'storage.storageClassName cannot be added or removed'],
  ])('%s an existing cluster', async (_what, spec, sentence) => {
    const namespace = await world.namespace();
    await world.createCluster(namespace, 'db', { storage: { size: '2Gi', storageClassName: 'fast' } });
    await expect(world.admin.patch(clusters, { namespace, name: 'db' }, { spec })).rejects.toThrow(sentence);
  });
});
