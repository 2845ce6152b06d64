/** Changes to a model of etcd, which the contract suite compares with the real one. */
import { describe, expect, test } from 'vitest';
import { ModelEtcd, type ModelNode } from '../../../test/sim/model/etcd.ts';
import { modelPorts } from '../../../test/sim/model/etcd-ports.ts';
import type { Etcd } from '../../etcd/client.ts';
import type { EtcdError } from '../../etcd/errors.ts';
import { hexId } from '../../etcd/ids.ts';
import type { EtcdCall, EtcdChange } from './calls.ts';
import { executeEtcdCall } from './execute-etcd-call.ts';

const { signal } = new AbortController();
const JOINER = 'http://joiner:2380';

/** A cluster of one voter, and members that join it. */
function aCluster() {
  const model = new ModelEtcd();
  const seed = model.node('seed');
  model.start(seed, { initialCluster: `seed=${seed.peerURL}`, state: 'new' });
  model.advance(10_000);
  return { model, seed, etcd: modelPorts(model), clusterID: hexId(groupOf(seed).clusterId) };
}
const groupOf = ({ disk }: ModelNode) => {
  if (!disk) throw new Error('the member has no disk');
  return disk.group;
};
const entries = (seed: ModelNode): readonly string[] =>
  [...groupOf(seed).members.values()].map((m) => `${m.isLearner ? 'learner' : 'voter'} ${m.peerURLs[0]}`);
const idOf = (seed: ModelNode, url: string): string =>
  hexId([...groupOf(seed).members.values()].find((m) => m.peerURLs[0] === url)?.id ?? 0n);

const call = (clusterID: string, endpoints: readonly string[], change: EtcdChange): EtcdCall => ({
  is: 'etcd',
  ...change,
  target: 'x',
  cluster: 'ns/db',
  clusterID,
  endpoints,
  hosts: {},
});
const outcome = (promise: Promise<void>): Promise<string> =>
  promise.then(() => 'done').catch((error: unknown) => String(error));

/** The same etcd, whose first response to a change gets lost, whether the change was made or not. */
function losing(etcd: Etcd, kind: EtcdError['kind']): Etcd {
  let lost = false;
  const members: Etcd['members'] = {
    ...etcd.members,
    add: async (...args) => {
      const answer = await etcd.members.add(...args);
      if (lost) return answer;
      lost = true;
      return { ok: false, error: { kind, message: 'the response got lost' } };
    },
  };
  return { ...etcd, members };
}

test('an added member is a learner until it has the data', async () => {
  const { seed, etcd, clusterID } = aCluster();
  await executeEtcdCall(etcd, call(clusterID, [seed.endpoint], { name: 'addLearner', peerURL: JOINER }), signal);
  expect(entries(seed)).toEqual([`voter ${seed.peerURL}`, `learner ${JOINER}`]);
});

test('a change that was made already succeeds: an addition whose response got lost, a removal by another client', async () => {
  const { model, seed, etcd, clusterID } = aCluster();
  const make = (change: EtcdChange): Promise<string> =>
    outcome(executeEtcdCall(etcd, call(clusterID, [seed.endpoint], change), signal));
  expect(await make({ name: 'addLearner', peerURL: JOINER })).toBe('done');
  expect(await make({ name: 'addLearner', peerURL: JOINER })).toBe('done'); // the id is derived from the second
  model.advance(1_000);
  expect(await make({ name: 'addLearner', peerURL: JOINER })).toBe('done');
  const id = idOf(seed, JOINER);
  expect(await make({ name: 'remove', id })).toBe('done');
  expect(await make({ name: 'remove', id })).toBe('done');
  expect(await make({ name: 'promote', id: hexId(groupOf(seed).leader ?? 0n) })).toBe('done');
  expect(entries(seed)).toEqual([`voter ${seed.peerURL}`]);
});

test('a refusal of etcd is retried later, with the message of etcd', async () => {
  const { seed, etcd, clusterID } = aCluster();
  await executeEtcdCall(etcd, call(clusterID, [seed.endpoint], { name: 'addLearner', peerURL: JOINER }), signal);
  const promotion = call(clusterID, [seed.endpoint], { name: 'promote', id: idOf(seed, JOINER) });
  expect(await outcome(executeEtcdCall(etcd, promotion, signal))).toMatch(/^RetryLater: etcd refuses: /);
});

test('a change that may have been made is not sent to another member', async () => {
  const { model, seed, etcd, clusterID } = aCluster();
  const asked: string[] = [];
  const counting: Etcd = {
    ...etcd,
    members: {
      ...etcd.members,
      add: (ask, ...rest) => {
        asked.push(ask.endpoint);
        return etcd.members.add(ask, ...rest);
      },
    },
  };
  const addition = call(clusterID, [seed.endpoint, seed.endpoint], { name: 'addLearner', peerURL: JOINER });
  expect(await outcome(executeEtcdCall(losing(counting, 'timeout'), addition, signal))).toMatch(/^RetryLater/);
  expect(asked).toHaveLength(1);
  const unreachable = model.node('unreachable').endpoint;
  const elsewhere = call(clusterID, [unreachable, seed.endpoint], { name: 'remove', id: idOf(seed, JOINER) });
  expect(await outcome(executeEtcdCall(etcd, elsewhere, signal))).toBe('done');
});

describe('a voter that counts connected peers as inactive', () => {
  /** Three voters, of which these count the others as inactive. */
  function misjudged(...who: readonly number[]) {
    const model = new ModelEtcd();
    const nodes = [1, 2, 3].map((n) => model.node(`m${n}`));
    const initialCluster = nodes.map(({ name, peerURL }) => `${name}=${peerURL}`).join(',');
    for (const node of nodes) model.start(node, { initialCluster, state: 'new' });
    model.advance(10_000);
    for (const n of who) for (const peer of nodes) if (peer !== nodes[n]) nodes[n]?.misjudges.add(peer);
    const [seed] = nodes;
    if (!seed) throw new Error('there are three');
    const endpoints = nodes.map(({ endpoint }) => endpoint);
    const addition = call(hexId(groupOf(seed).clusterId), endpoints, { name: 'addLearner', peerURL: JOINER });
    return { model, nodes, seed, addition, etcd: modelPorts(model) };
  }
  const refusal = (promise: Promise<void>): Promise<unknown> => promise.catch((error: unknown) => error);

  test('is skipped: another voter accepts the change, once', async () => {
    const { seed, addition, etcd } = misjudged(0, 1);
    expect(await outcome(executeEtcdCall(etcd, addition, signal))).toBe('done');
    expect(entries(seed).filter((entry) => entry === `learner ${JOINER}`)).toHaveLength(1);
  });

  test('refuses like all others: the refusal reports that', async () => {
    const { addition, etcd } = misjudged(0, 1, 2);
    expect(await refusal(executeEtcdCall(etcd, addition, signal))).toMatchObject({
      message: 'etcd refuses: etcdserver: unhealthy cluster',
      kind: expect.stringMatching(/^unhealthyCluster: addLearner /),
    });
  });

  test('and a voter that does not respond: the refusal is not one of all voters', async () => {
    const { model, nodes, addition, etcd } = misjudged(0, 1, 2);
    if (nodes[0]) model.stop(nodes[0]);
    model.advance(10_000);
    expect(await refusal(executeEtcdCall(etcd, addition, signal))).toMatchObject({ kind: undefined });
  });

  test('refuses as etcd does until it or its peer restarts', async () => {
    const { model, nodes, seed, etcd } = misjudged(0);
    const [, second, third] = nodes;
    if (!second?.disk || !third) throw new Error('there are three');
    const ask = { endpoint: seed.endpoint, timeoutMs: 1_000 };
    const add = async () => {
      const answer = await etcd.members.add(ask, [JOINER], { learner: true });
      return answer.ok ? 'ok' : answer.error.kind;
    };
    for (const peer of [second, third]) {
      model.advance(10_000);
      expect(await add()).toBe('unhealthyCluster');
      model.stop(peer);
      model.start(peer, { initialCluster: '', state: 'existing' });
    }
    model.advance(10_000);
    expect(await add()).toBe('ok');
    // It counts an inactive peer as dead, which may always be removed.
    seed.misjudges.add(second).add(third);
    expect((await etcd.members.remove(ask, second.disk.id)).ok).toBe(true);
  });
});

test('a response of another cluster is ignored', async () => {
  const { seed, etcd } = aCluster();
  const addition = call('f00', [seed.endpoint], { name: 'addLearner', peerURL: JOINER });
  expect(await outcome(executeEtcdCall(etcd, addition, signal))).toMatch(
    /^RetryLater: etcd refuses: the response is from cluster/,
  );
});

test('only the alarm of the given member is disarmed', async () => {
  const { seed, etcd, clusterID } = aCluster();
  const id = groupOf(seed).leader ?? 0n;
  const ask = { endpoint: seed.endpoint, timeoutMs: 1_000 };
  for (const alarm of ['noSpace', 'corrupt'] as const) await etcd.maintenance.activate(ask, { memberId: id, alarm });
  const change = { name: 'disarm', alarm: 'corrupt', id: hexId(id) } as const;
  await executeEtcdCall(etcd, call(clusterID, [seed.endpoint], change), signal);
  const left = await etcd.maintenance.alarms(ask);
  expect(left.ok && left.value.map(({ alarm }) => alarm)).toEqual(['noSpace']);
});
