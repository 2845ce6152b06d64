/** A real client of the operator's clusters, a kube-apiserver, while everything happens that administrators do to members. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { drain, uncordon } from '../../../local/faults.ts';
import type { MemberStatus } from '../../../src/etcd/client.ts';
import { HttpClient } from '../../../src/kube/http-client.ts';
import { identityFromKubeconfig } from '../../../src/kube/kubeconfig.ts';
import { nodes as nodeKind } from '../../../src/kube/resources.ts';
import { Transport } from '../../../src/kube/transport.ts';
import { ABOUT_DATA } from '../../support/about-data.ts';
import { UserClient } from '../../support/etcd-client.ts';
import { atRest, settled } from '../../support/journeys/at-rest.ts';
import { gapsOf, type HandOver, sentence, unexplained } from '../../support/journeys/gaps.ts';
import { type AnObject, aTenant, becomes, type Tenant } from '../../support/journeys/journey.ts';
import { aKubeApiServer } from '../../support/journeys/real-client.ts';
import { RegisterClient, whatTheySaw } from '../../support/journeys/registers.ts';
import { accessWith, clientOf, managed } from '../../support/journeys/tls.ts';
import { resize } from '../../support/journeys/tls-journey.ts';

const NAME = 'real';
const WRITERS = ['a', 'b', 'c', 'd'];
const KEYS = ['x', 'y', 'z'];
/** By cordoning the node of the leader: enough to measure, and no Pod has to start again. */
const HAND_OVERS = 20;

/**
 * No request that is not lost to a hand-over may take longer. On a quiet machine a second is met (`GAP_MS=1000`); in a run of
 * everything, two cores are shared by three nodes, their etcds, the operator and two kube-apiservers.
 */
const GAP_MS = Number(process.env['GAP_MS'] ?? 5_000);
/** How often members are asked who leads: a hand-over is known to have happened between two answers. */
const LEADER_POLL_MS = 50;

interface Member {
  readonly pod: AnObject;
  readonly status: MemberStatus;
}

/** What members report to a client of their own, by Pod. */
async function statuses(tenant: Tenant, etcd: UserClient, tls: Awaited<ReturnType<typeof clientOf>>) {
  const asked = (await tenant.list('pods')).map(async (pod): Promise<readonly Member[]> => {
    const { podIP } = pod.status ?? {};
    if (podIP === undefined) return [];
    const ask = { endpoint: `https://${podIP}:2379`, timeoutMs: 2_000, access: accessWith('statuses', tls) };
    const answer = await etcd.status(ask);
    return answer.ok ? [{ pod, status: answer.value }] : [];
  });
  return (await Promise.all(asked)).flat();
}

/** Records every change of the leader until it is stopped. */
function watchLeader(ask: () => Promise<readonly Member[]>) {
  const handOvers: HandOver[] = [];
  let stopped = false;
  const run = async (): Promise<void> => {
    let [term, fromMs] = [0n, performance.now()];
    while (!stopped) {
      const askedMs = performance.now();
      const leading = (await ask()).filter(({ status }) => status.leader === status.memberId);
      const newest = leading.map(({ status }) => status.raftTerm).reduce((a, b) => (b > a ? b : a), 0n);
      if (newest > term && term > 0n) handOvers.push({ fromMs, toMs: performance.now() });
      if (newest >= term && newest > 0n) [term, fromMs] = [newest, askedMs];
      await sleep(LEADER_POLL_MS);
    }
  };
  const ended = run();
  return {
    handOvers,
    stop: (): Promise<void> => {
      stopped = true;
      return ended;
    },
  };
}

test('a kube-apiserver loses nothing and sees one history while all Pods are deleted, all nodes drained, and the cluster scaled', async () => {
  const tenant = await aTenant();
  await tenant.create(NAME, { replicas: 3, tls: managed(tenant, NAME).tls });
  await settled(tenant, NAME);
  const tls = await clientOf(tenant, NAME);
  const etcd = new UserClient(() => performance.now());
  onTestFinished(() => etcd.close());
  const leader = (): Promise<Member> =>
    becomes('a leader', async () => {
      const found = (await statuses(tenant, etcd, tls)).find(({ status }) => status.leader === status.memberId);
      if (!found) throw new Error('no member leads');
      return found;
    });
  const open = await aKubeApiServer(tenant, NAME, KEYS);
  const clients = WRITERS.map((name) => new RegisterClient({ name, keys: KEYS, open, pauseMs: 20 }));
  const term = async (): Promise<number> => Number((await leader()).status.raftTerm);
  const first = await term();
  const watched = watchLeader(() => statuses(tenant, etcd, tls));

  for (const { metadata } of await tenant.list('pods')) {
    await tenant.kubectl('delete', 'pod', metadata.name, '--wait=true');
    await settled(tenant, NAME);
  }
  const nodes = (await tenant.list('pods')).map(({ spec }) => String(spec['nodeName']));
  onTestFinished(async () => {
    for (const node of nodes) await uncordon(tenant.cluster, node);
  });
  for (const node of new Set(nodes)) {
    await drain(tenant.cluster, node, 180);
    await uncordon(tenant.cluster, node);
    await settled(tenant, NAME);
  }
  for (const replicas of [5, 3]) await resize(tenant, NAME, replicas);

  const admin = new HttpClient(
    new Transport(identityFromKubeconfig(tenant.cluster.kubeconfig, {}, () => performance.now())),
  );
  onTestFinished(() => admin.transport.close());
  const tookMs: number[] = [];
  for (let i = 0; i < HAND_OVERS; i++) {
    const { pod, status } = await leader();
    const node = { namespace: '', name: String(pod.spec['nodeName']) };
    const started = performance.now();
    await admin.patch(nodeKind, node, { spec: { unschedulable: true } });
    await becomes('another leader', async () => expect((await leader()).status.leader).not.toBe(status.leader), 10);
    tookMs.push(Math.round(performance.now() - started));
    await admin.patch(nodeKind, node, { spec: { unschedulable: null } });
    await sleep(200); // the next one is another one for clients, too
  }

  const handOvers = (await term()) - first;
  const { acknowledged, failures, lateMs, wrong, history } = await whatTheySaw(clients);
  await watched.stop();
  const gaps = unexplained(gapsOf(history, GAP_MS), watched.handOvers).map(sentence);
  const figures = [
    `${acknowledged} writes acknowledged, ${failures.length} requests failed, ${lateMs.length} took longer than a second`,
    `${handOvers} hand-overs; of ${HAND_OVERS} by cordoning, until another member reported that it leads: ${tookMs.toSorted((a, b) => a - b).join(', ')} ms`,
    `late: ${lateMs.join(', ')} ms; ${watched.handOvers.length} changes of the leader were observed`,
    `failed, or later than ${GAP_MS} ms, outside hand-overs: ${gaps.length}`,
    ...failures,
  ];
  process.stdout.write(`${figures.join('\n')}\n`);
  expect(wrong, ABOUT_DATA).toBeUndefined();
  expect(acknowledged).toBeGreaterThan(100);
  expect(handOvers).toBeGreaterThanOrEqual(HAND_OVERS);
  // etcd drops proposals while it transfers the leadership: per hand-over at most one request of each client.
  expect(gaps).toEqual([]);
  await atRest(tenant, NAME, 3);
});
