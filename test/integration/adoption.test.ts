/** EtcdMembers without an owner, as etcd-migrate of the Go operator creates them: with a real API server and real etcd. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { PEER_AUTO_TLS_ANNOTATION } from '../../src/api/names.ts';
import { controllerOf } from '../../src/domain/ownership.ts';
import type { Resource } from '../../src/kube/object.ts';
import { events, pods } from '../../src/kube/resources.ts';
import { type Child, eventually } from '../support/servers/processes.ts';
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
  if (context.task.result?.state === 'fail') process.stderr.write(operator?.log() ?? '');
  await operator?.stop('SIGKILL');
});

const namesOf = (objects: readonly { readonly metadata: { readonly name?: string } }[]): readonly string[] =>
  objects.map(({ metadata }) => metadata.name ?? '').toSorted();

test('are adopted: the cluster is never reported as lost, a lost Pod comes back, a deleted member is removed from etcd', async () => {
  operator = world.startOperator();
  const namespace = await world.namespace();
  await world.createCluster(namespace, 'db', { replicas: 3 });
  await world.condition(namespace, 'db', 'Progressing', 'False', 'Reconciled');
  await operator.stop('SIGKILL');
  const created = await world.list(members, namespace);
  for (const { metadata } of created)
    await world.admin.patch(members, { namespace, name: metadata.name ?? '' }, { metadata: { ownerReferences: null } });
  const [lostPod, deleted, survivor = ''] = namesOf(created);
  const [kept] = (await world.list(pods, namespace)).filter(({ metadata }) => metadata.name === survivor);
  const remove = async (resource: Resource, name = ''): Promise<unknown> => {
    const uid = (await world.admin.get(resource, { namespace, name }))?.metadata.uid ?? '';
    return world.admin.delete(resource, { namespace, name }, { uid });
  };
  await remove(pods, lostPod);
  await remove(members, deleted);

  operator = world.startOperator();
  await eventually('the member to be replaced', async () => {
    const now = await world.list(members, namespace);
    const whole = now.length === 3 && !namesOf(now).includes(deleted ?? '');
    return whole && now.every((member) => controllerOf(member)?.name === 'db') ? true : undefined;
  });
  await world.condition(namespace, 'db', 'Available', 'True', 'QuorumHealthy');
  expect((await world.list(pods, namespace)).map(({ metadata }) => metadata.uid)).toContain(kept?.metadata.uid);
  const endpoint = `http://${world.kubelet.addressOf(namespace, survivor)}:2379`;
  const list = await world.etcd.memberList({ endpoint, timeoutMs: 2_000, linearizable: true });
  if (!list.ok) throw new Error(list.error.message);
  const now = await world.list(members, namespace);
  expect(list.value.members.map(({ name }) => name).toSorted()).toEqual(namesOf(now));
  const reasons = (await world.list(events, namespace)).map(({ reason }) => reason);
  expect(reasons).toContain('MembersAdopted');
  expect(reasons).not.toContain('AllMembersLost');
});

test('with --peer-auto-tls stay so: a lost Pod, a deleted member and a new one, also without the annotation', async () => {
  operator = world.startOperator();
  const namespace = await world.namespace();
  const annotations = { [PEER_AUTO_TLS_ANNOTATION]: 'true' };
  const created = await world.createCluster(namespace, 'db', { replicas: 0 });
  const at = { namespace, name: created.metadata.name ?? '' };
  await world.admin.patch(clusters, at, { metadata: { annotations }, spec: { replicas: 3 } });
  await world.condition(namespace, 'db', 'Progressing', 'False', 'Reconciled');
  await world.admin.patch(clusters, at, { metadata: { annotations: { [PEER_AUTO_TLS_ANNOTATION]: null } } });

  const [lostPod, deleted] = namesOf(await world.list(members, namespace));
  const remove = async (resource: Resource, name = ''): Promise<unknown> => {
    const uid = (await world.admin.get(resource, { namespace, name }))?.metadata.uid ?? '';
    return world.admin.delete(resource, { namespace, name }, { uid });
  };
  await remove(members, deleted);
  await eventually('the member to be replaced', async () => {
    const now = namesOf(await world.list(members, namespace));
    return now.length === 3 && !now.includes(deleted ?? '') ? true : undefined;
  });
  await remove(pods, lostPod);
  await world.admin.patch(clusters, at, { spec: { replicas: 4 } });
  await eventually('four members that serve', async () => {
    const { status } = (await world.admin.get(clusters, at)) ?? {};
    return status?.readyMembers === 4 || undefined;
  });
  await world.condition(namespace, 'db', 'PeersPinned', 'False', 'PeerAutoTLS');
  const commands = (await world.list(pods, namespace)).map(({ spec }) => spec?.containers[0]?.command ?? []);
  expect(commands.map((command) => command.includes('--peer-auto-tls'))).toEqual([true, true, true, true]);
  const endpoint = `http://${world.kubelet.addressOf(namespace, lostPod ?? '')}:2379`;
  const list = await world.etcd.memberList({ endpoint, timeoutMs: 2_000, linearizable: true });
  if (!list.ok) throw new Error(list.error.message);
  expect(list.value.members.flatMap(({ peerURLs }) => peerURLs.map((url) => URL.parse(url)?.protocol))).toEqual(
    commands.map(() => 'https:'),
  );
});
