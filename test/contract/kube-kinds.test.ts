/** The API server's behaviour for the kinds that the operator uses, on a real one and on the model: list keys, PDBs, scale. */
import { describe, expect, test } from 'vitest';
import { API_VERSION, etcdClusters } from '../../src/api/names.ts';
import type { Pod, Service } from '../../src/gen/kube.ts';
import type { KubeObject, Ref, Resource } from '../../src/kube/object.ts';
import { podDisruptionBudgets, pods, services } from '../../src/kube/resources.ts';
import { eventually } from '../support/servers/processes.ts';
import { kitIn, uidOf } from './kube-kit.ts';
import { modelWorld, realWorld, refusal } from './kube-world.ts';

type Cluster = KubeObject & { readonly spec: { readonly replicas: number } & Readonly<Record<string, unknown>> };
const clusters: Resource<Cluster> = etcdClusters;

describe.each([
  ['the model', modelWorld],
  ['a real API server', realWorld],
])('%s', (_name, start) => {
  const kit = kitIn(start);
  const { aName } = kit;
  const refTo = ({ metadata }: KubeObject): Ref => kit.ref(metadata.name ?? '');

  const aPod = (labels: Readonly<Record<string, string>> = {}, more: object = {}) =>
    kit.client.create(pods, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: aName(), namespace: kit.namespace, labels },
      spec: { nodeName: 'node', containers: [{ name: 'etcd', image: 'i', ...more }] },
    });

  describe('server-side apply', () => {
    const aService = () =>
      kit.client.create(services, {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: aName(), namespace: kit.namespace },
        spec: { selector: { theirs: '1' }, ports: [{ name: 'theirs', port: 1, targetPort: 1, protocol: 'TCP' }] },
      });
    const apply = (service: Service, spec: object) =>
      kit.client.apply(services, refTo(service as KubeObject), uidOf(service as KubeObject), { spec });
    const portsOf = ({ spec }: Service) => spec?.ports?.map(({ port, targetPort }) => `${port}:${targetPort}`).sort();

    test('merges the ports of a Service by number, and removes only its own', async () => {
      const service = await aService();
      const ours = { name: 'ours', port: 2, targetPort: 2, protocol: 'TCP' };
      const also = { name: 'also', port: 3, targetPort: 3, protocol: 'TCP' };
      expect(portsOf(await apply(service, { ports: [ours, also] }))).toEqual(['1:1', '2:2', '3:3']);
      expect(portsOf(await apply(service, { ports: [{ ...ours, targetPort: 9 }] }))).toEqual(['1:1', '2:9']);
      expect(portsOf(await apply(service, { ports: [] }))).toEqual(['1:1']);
    });

    test('removes an item of its own, also when another manager has changed a part of it', async () => {
      const service = await aService();
      const ours = { name: 'ours', port: 2, targetPort: 2, protocol: 'TCP' };
      const applied = await apply(service, { ports: [ours] });
      const changed = applied.spec?.ports?.map((port) => (port.port === 2 ? { ...port, targetPort: 7 } : port));
      await kit.client.patch(services, refTo(service), { spec: { ports: changed } });
      expect(portsOf(await apply(service, { ports: [] }))).toEqual(['1:1']);
    });

    test('treats a selector as atomic', async () => {
      const service = await aService();
      expect((await apply(service, { selector: { ours: '1' } })).spec?.selector).toEqual({ ours: '1' });
    });

    test('merges finalizers as a set, and owners by their uid', async () => {
      const theirs = ['example.com/theirs'];
      const owner = await aService();
      const ownerOf = ({ metadata }: KubeObject) => ({
        apiVersion: 'v1',
        kind: 'Service',
        name: metadata.name ?? '',
        uid: uidOf({ metadata }),
      });
      const service = await aService();
      const at = refTo(service);
      const other = await aService();
      await kit.client.patch(services, at, { metadata: { finalizers: theirs, ownerReferences: [ownerOf(other)] } });
      const set = (metadata: object) => kit.client.apply(services, at, uidOf(service), { metadata });
      const both = await set({ finalizers: ['example.com/ours'], ownerReferences: [ownerOf(owner)] });
      expect(both.metadata.finalizers?.toSorted()).toEqual(['example.com/ours', ...theirs]);
      expect(both.metadata.ownerReferences).toHaveLength(2);
      const after = await set({});
      expect(after.metadata.finalizers).toEqual(theirs);
      expect(after.metadata.ownerReferences).toEqual([ownerOf(other)]);
      await kit.client.patch(services, at, { metadata: { finalizers: [] } });
    });

    test('merges containers by name', async () => {
      const pod = await aPod();
      const set = (containers: readonly object[]) =>
        kit.client.apply(pods, refTo(pod), uidOf(pod), { spec: { containers } });
      const after = await set([{ name: 'etcd', image: 'j' }]);
      expect(after.spec?.containers.map(({ name, image }) => `${name} ${image}`)).toEqual(['etcd j']);
    });
  });

  test('a name that is used again is another object', async () => {
    const first = await aPod();
    const made = { ...first, metadata: { name: first.metadata.name ?? '', namespace: kit.namespace } };
    await kit.client.delete(pods, refTo(first), { uid: uidOf(first) });
    await kit.world.finishPod(refTo(first));
    const second = await kit.client.create(pods, made);
    expect(uidOf(second)).not.toBe(uidOf(first));
    expect((await refusal(kit.client.delete(pods, refTo(first), { uid: uidOf(first) }))).code).toBe(409);
  });

  describe('the number of replicas', () => {
    const aCluster = () =>
      kit.client.create(clusters, {
        apiVersion: API_VERSION,
        kind: 'EtcdCluster',
        metadata: { name: aName(), namespace: kit.namespace, finalizers: ['example.com/a'] },
        spec: { replicas: 1, version: '3.6.16', storage: { size: '1Gi' } },
      });

    test('changes through the scale subresource, and increments the generation', async () => {
      const cluster = await aCluster();
      await kit.client.scale(clusters, refTo(cluster), 3);
      const after = await kit.client.get(clusters, refTo(cluster));
      expect([after?.spec.replicas, after?.metadata.generation]).toEqual([3, 2]);
      expect((await refusal(kit.client.scale(clusters, kit.ref('missing'), 3))).code).toBe(404);
    });

    test('a deletion that waits for finalizers increments the generation, too', async () => {
      const cluster = await aCluster();
      const left = await kit.client.delete(clusters, refTo(cluster), { uid: uidOf(cluster) });
      expect(left?.metadata.generation).toBe(2);
      await kit.client.patch(clusters, refTo(cluster), { metadata: { finalizers: [] } });
    });
  });

  describe('a PodDisruptionBudget', () => {
    const aBudget = (group: string, spec: object) =>
      kit.client.create(podDisruptionBudgets, {
        apiVersion: 'policy/v1',
        kind: 'PodDisruptionBudget',
        metadata: { name: aName(), namespace: kit.namespace },
        spec: { selector: { matchLabels: { group } }, ...spec },
      });
    const ready = (pod: KubeObject, is: boolean) =>
      kit.client.patch(
        pods,
        refTo(pod),
        { status: { phase: 'Running', conditions: [{ type: 'Ready', status: is ? 'True' : 'False' }] } },
        { subresource: 'status' },
      );
    /** Running Pods, as many of them ready as requested. */
    const running = async (group: string, all: number, well = all): Promise<readonly (Pod & KubeObject)[]> => {
      const made = await Promise.all(Array.from({ length: all }, () => aPod({ group })));
      for (const [i, pod] of made.entries()) await ready(pod, i < well);
      return made;
    };
    const says = (budget: KubeObject, expected: object) =>
      eventually(`a PDB with the status ${JSON.stringify(expected)}`, async () => {
        await kit.world.countDisruptions();
        const { status } = (await kit.client.get(podDisruptionBudgets, refTo(budget))) ?? {};
        return Object.entries(expected).every(([key, value]) => status?.[key as keyof typeof status] === value)
          ? status
          : undefined;
      });
    const evict = (pod: KubeObject) => kit.client.evict(refTo(pod), { uid: uidOf(pod) });
    const isBeingDeleted = async (pod: KubeObject) =>
      (await kit.client.get(pods, refTo(pod)))?.metadata.deletionTimestamp !== undefined;

    test('counts Pods that are ready and not being deleted, and allows as many evictions as minAvailable permits', async () => {
      const group = aName();
      const [a, b, c] = await running(group, 3);
      const budget = await aBudget(group, { minAvailable: 2 });
      if (!a || !b || !c) throw new Error('fewer than three Pods were created');
      await says(budget, { expectedPods: 3, currentHealthy: 3, desiredHealthy: 2, disruptionsAllowed: 1 });
      await evict(a);
      expect(await isBeingDeleted(a)).toBe(true);
      expect(await refusal(evict(b))).toMatchObject({ code: 429, reason: 'TooManyRequests' });
      expect(await isBeingDeleted(b)).toBe(false);
      await says(budget, { expectedPods: 3, currentHealthy: 2, disruptionsAllowed: 0 });
      await evict(a); // it is being deleted already: nothing more is disrupted
      await kit.world.finishPod(refTo(a));
      await says(budget, { expectedPods: 2, currentHealthy: 2, disruptionsAllowed: 0 });
      expect((await refusal(evict(c))).code).toBe(429);
    });

    test('that the disruption controller has not observed yet, or that was changed since, refuses evictions', async () => {
      const group = aName();
      const [pod] = await running(group, 2);
      if (!pod) throw new Error('fewer than two Pods were created');
      const budget = await aBudget(group, { minAvailable: 2 });
      expect((await refusal(evict(pod))).code).toBe(429);
      await says(budget, { disruptionsAllowed: 0, currentHealthy: 2 });
      await kit.client.patch(podDisruptionBudgets, refTo(budget), { spec: { minAvailable: 1 } });
      await says(budget, { disruptionsAllowed: 1, observedGeneration: 2 });
      await evict(pod);
    });

    test('allows the eviction of an unready Pod only while enough others are ready', async () => {
      const group = aName();
      const made = await running(group, 3, 2);
      const broken = made[2];
      const budget = await aBudget(group, { minAvailable: 2, unhealthyPodEvictionPolicy: 'IfHealthyBudget' });
      if (!broken || !made[0] || !made[1]) throw new Error('fewer than three Pods were created');
      await says(budget, { currentHealthy: 2, disruptionsAllowed: 0 });
      expect((await refusal(evict(made[0]))).code).toBe(429);
      await evict(broken);
      expect(await isBeingDeleted(broken)).toBe(true);
      await ready(made[1], false);
      await says(budget, { currentHealthy: 1 });
      expect((await refusal(evict(made[1]))).code).toBe(429);
    });

    test('with AlwaysAllow permits the eviction of an unready Pod at any time', async () => {
      const group = aName();
      const [broken] = await running(group, 1, 0);
      const budget = await aBudget(group, { minAvailable: 1, unhealthyPodEvictionPolicy: 'AlwaysAllow' });
      if (!broken) throw new Error('no Pod was created');
      await says(budget, { currentHealthy: 0, disruptionsAllowed: 0 });
      await evict(broken);
      expect(await isBeingDeleted(broken)).toBe(true);
    });

    test('that needs the expected number of Pods allows none without a controller that reports it', async () => {
      const group = aName();
      const [pod] = await running(group, 3);
      const budget = await aBudget(group, { maxUnavailable: 1 });
      if (!pod) throw new Error('fewer than three Pods were created');
      await says(budget, { disruptionsAllowed: 0 });
      expect((await refusal(evict(pod))).code).toBe(429);
    });

    test('does not block Pods that are not running or not selected; two PDBs on one Pod block it', async () => {
      const group = aName();
      await aBudget(group, { minAvailable: 1 });
      const waiting = await aPod({ group });
      await evict(waiting);
      expect(await isBeingDeleted(waiting)).toBe(true);
      const [other] = await running(aName(), 1);
      if (!other) throw new Error('no Pod was created');
      await evict(other);
      expect(await isBeingDeleted(other)).toBe(true);
      await aBudget(group, { minAvailable: 1 });
      const [twice] = await running(group, 1);
      if (!twice) throw new Error('no Pod was created');
      expect((await refusal(evict(twice))).code).toBe(500);
    });
  });
});
