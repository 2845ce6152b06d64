/**
 * A member that considers a peer inactive although their streams live, on each real version and on the model: a message to
 * an unresponsive address fails after new streams are up, and nothing corrects the view until the streams are new again.
 */
import { connect, createServer, type Socket } from 'node:net';
import { describe, test } from 'vitest';
import { ModelEtcd } from '../sim/model/etcd.ts';
import { modelPorts } from '../sim/model/etcd-ports.ts';
import type { UserEtcd } from '../support/etcd-client.ts';
import { ETCD_VERSIONS, type EtcdVersion, startLab } from '../support/servers/etcd.ts';
import { eventually, pause } from '../support/servers/processes.ts';
import { ask, kindOf, must } from './etcd-world.ts';

interface Pair {
  readonly etcd: UserEtcd;
  readonly a: { readonly endpoint: string };
  readonly b: { readonly endpoint: string };
  /** From now on the first member considers the second one inactive; both serve. */
  misjudge(): Promise<void>;
  restartSecond(): Promise<void>;
  pass(ms: number): Promise<void>;
  close(): Promise<void>;
}

function modelPair(): Promise<Pair> {
  const model = new ModelEtcd();
  const [a, b] = [model.node('a'), model.node('b')];
  const join = { initialCluster: `a=${a.peerURL},b=${b.peerURL}`, state: 'new' } as const;
  for (const node of [a, b]) model.start(node, join);
  const pass = async (ms: number): Promise<void> => model.advance(ms);
  const restartSecond = async (): Promise<void> => {
    model.stop(b);
    await pass(2_000);
    model.start(b, join);
    await pass(2_000);
  };
  const misjudge = async (): Promise<void> => {
    await restartSecond();
    a.misjudges.add(b);
  };
  return Promise.resolve({ etcd: modelPorts(model), a, b, misjudge, restartSecond, pass, close: async () => {} });
}

/** The peer port of a member under another address. While it holds, messages hang and streams are refused. */
async function peerRelay(host: string) {
  const held = new Set<Socket>();
  const state = { holds: false };
  const passOn = (client: Socket, first: Buffer): void => {
    const upstream = connect(2380, host, () => upstream.write(first));
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      one.on('error', () => undefined);
      one.on('close', () => other.destroy());
    }
    upstream.pipe(client);
    client.pipe(upstream);
  };
  const server = createServer((client) => {
    client.on('error', () => undefined);
    client.once('data', (first: Buffer) => {
      client.pause();
      if (!state.holds) return passOn(client, first);
      if (first.subarray(0, 11).toString() === 'POST /raft ') held.add(client);
      else client.destroy();
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as { port: number };
  return { url: `http://127.0.0.1:${port}`, held, state, close: () => server.close() };
}

async function realPair(version: EtcdVersion): Promise<Pair> {
  const lab = await startLab({ versions: [version] });
  const [a, b] = [lab.node('a', { version }), lab.node('b', { version })];
  const relay = await peerRelay(b.address);
  const join = { initialCluster: `a=${a.peerURL},b=${relay.url}`, state: 'new' } as const;
  const startSecond = (): void => b.start(join, version, [`--initial-advertise-peer-urls=${relay.url}`]);
  a.start(join);
  startSecond();
  const serve = async (): Promise<void> => {
    await Promise.all([a.ready(), b.ready()]);
    await eventually('a leader', async () => (await lab.client.kv.put(ask(a, 1_000), 'k', 'v')).ok || undefined);
  };
  await serve();
  const restartSecond = async (): Promise<void> => {
    await b.stop();
    startSecond();
    await serve();
  };
  /** A leader sends enough heartbeats that some queue behind the hanging ones: they arrive in the end, and correct the view. */
  const followSecond = async (): Promise<void> => {
    const { maintenance } = lab.client;
    const { memberId } = must(await maintenance.status(ask(b)));
    await eventually('the second leads', async () => {
      const { leader } = must(await maintenance.status(ask(a)));
      if (leader === memberId) return true;
      await maintenance.moveLeader(ask(a), memberId);
      return undefined;
    });
  };
  const misjudge = async (): Promise<void> => {
    await followSecond();
    relay.state.holds = true;
    await b.stop('SIGKILL'); // without a leader transfer: the first member stays a follower, and sends only a few messages
    await eventually('a message that hangs', async () => relay.held.size > 0 || undefined);
    relay.state.holds = false;
    startSecond();
    await serve();
    await pause(1_000); // streams in both directions are up
    for (const client of relay.held) client.destroy();
  };
  const close = async (): Promise<void> => {
    await lab.close();
    relay.close();
  };
  return { etcd: lab.client, a, b, misjudge, restartSecond, pass: pause, close };
}

/** After this long, connected peers count as healthy. */
const SETTLED_MS = 7_000;

describe.concurrent.each([
  ...ETCD_VERSIONS.map((version) => [version, () => realPair(version)] as const),
  ['the model', modelPair] as const,
])('%s', (_, start) => {
  test('refuses new members until there are new streams; its peer accepts them', async ({ expect, onTestFinished }) => {
    const pair = await start();
    onTestFinished(() => pair.close());
    const { members } = pair.etcd;
    const add = async (to: { readonly endpoint: string }): Promise<string> => {
      const answer = await members.add(ask(to), ['http://127.9.9.1:2380'], { learner: true });
      if (answer.ok) must(await members.remove(ask(to), answer.value.added.id));
      return kindOf(answer);
    };
    await pair.pass(SETTLED_MS);
    expect(await add(pair.a)).toBe('ok');
    await pair.misjudge();
    await pair.pass(SETTLED_MS);
    expect([await add(pair.a), await add(pair.b)]).toEqual(['unhealthyCluster', 'ok']);
    await pair.pass(SETTLED_MS);
    expect(await add(pair.a)).toBe('unhealthyCluster');
    await pair.restartSecond();
    await pair.pass(SETTLED_MS);
    expect(await add(pair.a)).toBe('ok');
  });
});
