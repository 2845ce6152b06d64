import { Code, ConnectError, createRouterTransport } from '@connectrpc/connect';
import { expect, test } from 'vitest';
import { Cluster, Maintenance } from '../gen/etcd/rpc_pb.ts';
import { EtcdClient, endpointOf } from './client.ts';

const ask = { endpoint: 'http://10.0.0.1:2379', timeoutMs: 500 };

function aServer() {
  const opened: string[] = [];
  const closed: string[] = [];
  const transport = createRouterTransport(({ service }) => {
    service(Cluster, {
      memberList: (request) => {
        if (request.linearizable) throw new ConnectError('etcdserver: no leader', Code.Unavailable);
        return { header: { clusterId: 7n }, members: [{ ID: 2n ** 63n, name: 'a', peerURLs: ['http://a:2380'] }] };
      },
    });
    service(Maintenance, { status: () => ({ header: { clusterId: 7n, memberId: 9n }, version: '3.6.14' }) });
  });
  let time = 0;
  const client = new EtcdClient(
    () => time,
    (endpoint) => {
      opened.push(endpoint);
      return { transport, close: () => closed.push(endpoint) };
    },
  );
  return { client, opened, closed, pass: (ms: number) => (time += ms) };
}

test('ids keep all of their 64 bits', async () => {
  const list = await aServer().client.memberList({ ...ask, linearizable: false });
  expect(list).toEqual({
    ok: true,
    value: { clusterId: 7n, members: [{ id: 2n ** 63n, name: 'a', peerURLs: ['http://a:2380'], isLearner: false }] },
  });
});

test('a failure is a value that says what kind it is', async () => {
  const list = await aServer().client.memberList({ ...ask, linearizable: true });
  expect(list).toEqual({ ok: false, error: { kind: 'noLeader', message: 'etcdserver: no leader' } });
});

test('nobody at the address is a value too, and comes quickly', async () => {
  const client = new EtcdClient(() => 0);
  const answer = await client.status({ endpoint: 'http://127.0.0.1:9', timeoutMs: 2000 });
  expect(answer).toMatchObject({ ok: false, error: { kind: 'unreachable' } });
  client.close();
});

test('a session is kept between calls, and closed when its member was not asked for a while', async () => {
  const { client, opened, closed, pass } = aServer();
  await client.status(ask);
  await client.status(ask);
  expect(opened).toEqual([ask.endpoint]);
  pass(16 * 60_000);
  await client.status({ ...ask, endpoint: 'http://10.0.0.2:2379' });
  expect(closed).toEqual([ask.endpoint]);
});

test('addresses of both families become URLs', () => {
  expect([endpointOf('10.0.0.1', 2379), endpointOf('fd00::1', 2379)]).toEqual([
    'http://10.0.0.1:2379',
    'http://[fd00::1]:2379',
  ]);
});
