/** Helpers of the suites about members. */
import { test } from 'vitest';
import type { MemberEntry } from '../../src/etcd/client.ts';
import type { Result } from '../../src/etcd/errors.ts';
import { initialCluster } from '../support/servers/etcd.ts';
import { ask, type EtcdWorld, must, type WorldNode } from './etcd-world.ts';

export interface Kit extends EtcdWorld {
  idOf(node: WorldNode): Promise<bigint>;
  /** By name: etcd lists by id, which is as good as random. */
  list(node: WorldNode): Promise<readonly MemberEntry[]>;
  /** Peers count as healthy once they have been connected for 5 s; until then membership changes are refused. */
  accepted<T>(what: string, change: () => Promise<Result<T>>): Promise<T>;
  /** Three members, the leader first. */
  ledBy(): Promise<[WorldNode, WorldNode, WorldNode]>;
  /** Adds a learner to the seed, starts it, and promotes it. */
  grow(seed: WorldNode, name: string, others?: readonly WorldNode[]): Promise<WorldNode>;
}

/** Errors that are temporary. */
const PASSING = ['unhealthyCluster', 'learnerNotReady', 'noLeader', 'timeout'];

function kitOf(world: EtcdWorld): Kit {
  const { etcd, node, until } = world;
  const { members, maintenance } = etcd;
  const idOf = async (each: WorldNode): Promise<bigint> => must(await maintenance.status(ask(each))).memberId;
  const accepted = <T>(what: string, change: () => Promise<Result<T>>): Promise<T> =>
    until(what, async () => {
      const answer = await change();
      return !answer.ok && PASSING.includes(answer.error.kind) ? undefined : must(answer);
    });
  const list: Kit['list'] = async (each) => {
    const { members: listed } = await accepted('the list', () => members.list(ask(each), { linearizable: true }));
    return listed.toSorted((a, b) => a.name.localeCompare(b.name));
  };
  return {
    ...world,
    accepted,
    idOf,
    list,
    ledBy: async () => {
      const nodes = await world.together(3);
      const { leader } = must(await maintenance.status(ask(nodes[0])));
      const ids = new Map<WorldNode, bigint>();
      for (const each of nodes) ids.set(each, await idOf(each));
      const first = (each: WorldNode): number => Number(ids.get(each) !== leader);
      return nodes.toSorted((x, y) => first(x) - first(y)) as [WorldNode, WorldNode, WorldNode];
    },
    grow: async (seed, name, others = []) => {
      const grown = node(name);
      // A change whose response was late may have been carried out: then etcd reports that the member exists.
      const added = await accepted(`${name} is added`, async () => {
        const answer = await members.add(ask(seed), [grown.peerURL], { learner: true });
        if (answer.ok) return { ok: true, value: answer.value.added };
        const there =
          answer.error.kind === 'peerURLExists' &&
          (await list(seed)).find(({ peerURLs }) => peerURLs.includes(grown.peerURL));
        return there ? { ok: true, value: there } : answer;
      });
      grown.start({ initialCluster: initialCluster([seed, ...others, grown]), state: 'existing' });
      await grown.ready();
      await accepted<unknown>(`${name} is promoted`, async () => {
        const answer = await members.promote(ask(seed), added.id);
        return !answer.ok && answer.error.kind === 'notLearner' ? { ok: true, value: undefined } : answer;
      });
      return grown;
    },
  };
}

/** Gives each test a kit of its own. */
export const inKit = (start: () => Promise<EtcdWorld>) =>
  test.extend<{ kit: Kit }>({
    // oxlint-disable-next-line no-empty-pattern -- vitest reads the names of what a fixture needs
    kit: async ({}, use) => {
      const world = await start();
      await use(kitOf(world));
      await world.close();
    },
  });
