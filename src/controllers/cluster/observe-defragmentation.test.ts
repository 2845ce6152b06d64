/** What is observed of the member that is being defragmented. */
import { expect, test } from 'vitest';
import type { ModelNode } from '../../../test/sim/model/etcd.ts';
import { NOW } from '../../../test/support/builders/builders.ts';
import { DEFRAG_UID, MI } from '../../../test/support/builders/defrags.ts';
import { modelWorld, nameOf, putInCache, runningCluster } from '../../../test/support/builders/ports.ts';
import { iso } from '../../lib/time.ts';
import { NO_MEMORY } from '../../runtime/plan.ts';
import { clusterResource } from './controller.ts';
import { observe } from './observe.ts';
import type { MemberView } from './observed.ts';

const BEFORE = 500 * MI;
const EMPTY = 16_384;

/** A cluster whose second member has a database with free space, and is recorded as being defragmented. */
async function aWorld() {
  const world = modelWorld();
  const [, second] = await runningCluster(world, 3);
  if (!second?.disk) throw new Error('there is no second member');
  second.disk.dbSize = BEFORE;
  const defragmentation = {
    member: nameOf(2),
    defrag: 'nightly',
    uid: DEFRAG_UID,
    attempt: 1,
    startedAt: iso(NOW),
    dbSizeBefore: BEFORE,
  };
  const at = { namespace: 'ns', name: 'db' };
  const body = { status: { defragmentation } };
  putInCache(world.clusters, await world.client.patch(clusterResource, at, body, { subresource: 'status' }));
  return { world, second };
}
const observed = async (world: Awaited<ReturnType<typeof aWorld>>['world']): Promise<MemberView | undefined> => {
  const o = await observe(world, 'ns/db', new AbortController().signal, NO_MEMORY);
  return o?.members.find(({ object }) => object.metadata.name === nameOf(2));
};
const facts = (m: MemberView | undefined) => [m?.answersReads, m?.self?.databaseBytes];

test('while etcd is busy, it answers no read, and is asked for none', async () => {
  const { world, second } = await aWorld();
  world.model.defragment(second, 60_000);
  const asked: string[] = [];
  const read: typeof world.etcd.kv.read = (ask) => {
    asked.push(ask.endpoint);
    return world.etcd.kv.read(ask);
  };
  const etcd = { ...world.etcd, kv: { ...world.etcd.kv, read } };
  expect([facts(await observed({ ...world, etcd })), asked]).toEqual([[false, undefined], []]);
});

test('afterwards, its size is the present one', async () => {
  const { world, second } = await aWorld();
  expect(facts(await observed(world))).toEqual([true, BEFORE]);
  world.model.defragment(second, 0);
  expect(facts(await observed(world))).toEqual([true, EMPTY]);
});

/** etcd answers the status a moment before it begins, and the read when it has finished. */
const betweenStatusAndRead = (
  world: Awaited<ReturnType<typeof aWorld>>['world'],
  happens: (node: ModelNode) => void,
) => {
  const read: typeof world.etcd.kv.read = (ask) => {
    const node = world.model.nodes.find(({ endpoint }) => endpoint === ask.endpoint);
    if (node) happens(node);
    return world.etcd.kv.read(ask);
  };
  return { ...world, etcd: { ...world.etcd, kv: { ...world.etcd.kv, read } } };
};

test('a size from before the end does not count: the read has waited for the end', async () => {
  const { world } = await aWorld();
  const late = betweenStatusAndRead(world, (node) => {
    world.model.defragment(node, 1_500);
    world.model.advance(1_500);
  });
  expect(facts(await observed(late))).toEqual([true, EMPTY]);
});

test('it does not count as finished when it stops after the read', async () => {
  const { world } = await aWorld();
  const { kv } = world.etcd;
  const read: typeof kv.read = async (ask) => {
    const answer = await kv.read(ask);
    const node = world.model.nodes.find(({ endpoint }) => endpoint === ask.endpoint);
    if (node) world.model.stop(node);
    return answer;
  };
  expect(facts(await observed({ ...world, etcd: { ...world.etcd, kv: { ...kv, read } } }))).toEqual([false, BEFORE]);
});
