import * as http2 from 'node:http2';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { ConnectError } from '@connectrpc/connect';
import { expect, onTestFinished, test, vi } from 'vitest';
import { Cluster } from '../gen/etcd/cluster_pb.ts';
import { Link, type Timing } from './link.ts';
import { unary } from './unary.ts';

const TIMING: Timing = { pingIntervalMs: 10_000, pingTimeoutMs: 5_000, idleMs: 60_000 };

const listening = async (server: Server): Promise<number> => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
};

/** Responds to every call. Its connections can be made as unresponsive as those of a machine that lost power. */
async function aMember() {
  const sessions = new Set<http2.ServerHttp2Session>();
  let bodies = 0;
  const h2 = http2.createServer();
  h2.on('session', (session) => sessions.add(session.on('error', () => {})));
  h2.on('stream', (stream: http2.ServerHttp2Stream) => {
    stream.on('error', () => {});
    stream.once('data', () => bodies++);
    stream.respond({ ':status': 200 }, { endStream: true });
  });
  const port = await listening(h2);
  const wires: Socket[] = [];
  const relay = createServer((socket) => {
    const other = connect(port, '127.0.0.1');
    wires.push(socket, other);
    for (const end of [socket, other]) end.on('error', () => {});
    socket.pipe(other);
    other.pipe(socket);
  });
  const endpoint = `http://127.0.0.1:${await listening(relay)}`;
  onTestFinished(() => {
    for (const wire of wires) wire.destroy();
  });
  return {
    endpoint,
    opened: () => wires.length / 2,
    bodies: () => bodies,
    silence: () => {
      for (const wire of wires) wire.unpipe().pause();
    },
    sendGoaway: () => {
      for (const session of sessions) session.close();
    },
  };
}

const said = (error: unknown): string => ConnectError.from(error).rawMessage;

function aLink(endpoint: string, timing: Partial<Timing> = {}) {
  const link = new Link(endpoint, {}, { ...TIMING, ...timing });
  onTestFinished(() => link.close());
  const call = async (): Promise<string> => {
    try {
      const stream = await link.request('POST', '/x', {}, { endStream: true });
      stream.resume();
      return await new Promise((resolve) => {
        stream.once('response', () => resolve('answered'));
        stream.once('error', (error) => resolve(said(error)));
      });
    } catch (error) {
      return said(error);
    }
  };
  return { link, call };
}

test('concurrent and later calls share a connection', async () => {
  const { endpoint, opened } = await aMember();
  const { call, link } = aLink(endpoint);
  expect(link.state()).toBe('closed');
  expect(await Promise.all([call(), call(), call()])).toEqual(['answered', 'answered', 'answered']);
  expect(await call()).toBe('answered');
  expect([opened(), link.state()]).toEqual([1, 'open']);
});

test('a request whose Lease was lost while its connection was made is not sent', async () => {
  const { endpoint, bodies } = await aMember();
  const { link } = aLink(endpoint);
  const sent = (mayLeave: () => boolean): Promise<string> =>
    unary(
      link,
      Cluster.method.memberRemove,
      undefined,
      2_000,
      undefined,
      { ID: 1n },
      { maxBytes: 1_000, mayLeave },
    ).then(() => 'answered', said);
  expect(await sent(() => link.state() !== 'open')).toBe('not sent: the caller may not send it any more');
  expect(bodies()).toBe(0);
  await sent(() => true);
  expect(bodies()).toBe(1);
});

test('closing fails the calls in flight, at whatever moment, and the next call connects again', async () => {
  const { endpoint } = await aMember();
  for (let turns = 0; turns < 30; turns++) {
    const { call, link } = aLink(endpoint);
    const first = call();
    for (let n = 0; n < turns; n++) await turn();
    link.close();
    expect(['answered', 'the session was closed', 'the connection was closed']).toContain(await first);
    expect(await call()).toBe('answered');
  }
});

test('a dead connection is detected before it is used again', async () => {
  const { endpoint, opened, silence } = await aMember();
  const { call } = aLink(endpoint, { pingIntervalMs: 20, pingTimeoutMs: 1_000 }); // a busy machine answers late, too
  await call();
  silence();
  await new Promise((resolve) => setTimeout(resolve, 30));
  expect(await call()).toBe('answered');
  expect(opened()).toBe(2);
});

test('a connection that dies under a call fails that call', async () => {
  const { endpoint, silence } = await aMember();
  const { call } = aLink(endpoint, { pingIntervalMs: 1_000, pingTimeoutMs: 100 }); // not yet checked when the call begins
  await call();
  silence();
  expect(await call()).toBe('the connection is dead: a ping was not answered');
});

test('a member that sent GOAWAY is dialled again', async () => {
  const { endpoint, opened, sendGoaway } = await aMember();
  const { call, link } = aLink(endpoint);
  await call();
  sendGoaway();
  await vi.waitUntil(() => link.state() !== 'open', { timeout: 20_000 });
  expect(await call()).toBe('answered');
  expect(opened()).toBe(2);
});

test('an unused connection is closed', async () => {
  const { endpoint } = await aMember();
  const { call, link } = aLink(endpoint, { idleMs: 30 });
  await call();
  await vi.waitUntil(() => link.state() === 'closed', { timeout: 20_000 });
});
