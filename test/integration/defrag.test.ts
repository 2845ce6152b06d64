/** Defragmentations of real etcd processes by a real operator, which is killed in between. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { EtcdDefrag } from '../../src/api/etcd-defrag.ts';
import { API_VERSION, etcdDefrags } from '../../src/api/names.ts';
import type { Resource } from '../../src/kube/object.ts';
import { pods } from '../../src/kube/resources.ts';
import { type Child, eventually } from '../support/servers/processes.ts';
import { clusters, startWorld, type World } from '../support/servers/world.ts';

const defrags: Resource<EtcdDefrag> = etcdDefrags;
const MIB = new Uint8Array(1024 ** 2).fill(7);
const KEYS = 60;

let world: World;
let operator: Child;
let namespace: string;
beforeAll(async () => {
  world = await startWorld();
  operator = world.startOperator();
  namespace = await world.namespace();
  await world.createCluster(namespace, 'db', { replicas: 3 });
  await world.patiently(120_000).condition(namespace, 'db', 'Available', 'True', 'QuorumHealthy');
}, 180_000);
afterAll(async () => {
  await world?.stop();
});

/** Old revisions of the same keys, which compaction leaves as free space of every member. */
async function fill(): Promise<void> {
  const [pod] = await world.list(pods, namespace);
  const at = {
    endpoint: `http://${world.kubelet.addressOf(namespace, pod?.metadata.name ?? '')}:2379`,
    timeoutMs: 30_000,
  };
  let revision = 0n;
  for (let i = 0; i < KEYS; i++) {
    const written = await world.etcd.kv.put(at, 'k', MIB);
    if (!written.ok) throw new Error(written.error.message);
    revision = written.value;
  }
  const compacted = await world.etcd.kv.compact(at, revision, { physical: true });
  if (!compacted.ok) throw new Error(compacted.error.message);
}

async function defragment(name: string): Promise<EtcdDefrag> {
  const metadata = { namespace, name };
  const spec = { clusterRef: { name: 'db' }, rule: { all: true } };
  return world.admin.create(defrags, { apiVersion: API_VERSION, kind: 'EtcdDefrag', metadata, spec });
}
const finished = (name: string): Promise<NonNullable<EtcdDefrag['status']>> =>
  eventually(
    `EtcdDefrag ${name} to finish`,
    async () => {
      const status = (await world.admin.get(defrags, { namespace, name }))?.status;
      return status?.phase === 'Complete' || status?.phase === 'Failed' ? status : undefined;
    },
    { timeoutMs: 120_000, seen: () => operator.log().slice(-3_000) },
  );
const marker = async () => (await world.admin.get(clusters, { namespace, name: 'db' }))?.status?.defragmentation;

test('every member is defragmented once, and its free space is on its volume again', { timeout: 180_000 }, async () => {
  await fill();
  await defragment('first');
  const { phase, members = [] } = await finished('first');
  expect([phase, members.map(({ outcome }) => outcome)]).toEqual(['Complete', Array(3).fill('Defragmented')]);
  for (const { reclaimedBytes = 0 } of members) expect(reclaimedBytes).toBeGreaterThan((KEYS / 2) * MIB.length);
  await eventually('the marker to be removed', async () => ((await marker()) === undefined ? true : undefined));
});

test('one that has nothing to free is complete as well', { timeout: 180_000 }, async () => {
  await defragment('second');
  const { phase, members = [] } = await finished('second');
  expect([phase, members.map(({ outcome }) => outcome)]).toEqual(['Complete', Array(3).fill('Defragmented')]);
});

test('one goes on when the operator is killed meanwhile', { timeout: 180_000 }, async () => {
  await fill();
  await defragment('third');
  await eventually('a member to be recorded', marker);
  await operator.stop('SIGKILL');
  operator = world.startOperator();
  const { phase, members = [] } = await finished('third');
  expect([phase, members.map(({ outcome }) => outcome)]).toEqual(['Complete', Array(3).fill('Defragmented')]);
  await world.condition(namespace, 'db', 'Available', 'True', 'QuorumHealthy');
});
