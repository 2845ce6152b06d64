import { Code, ConnectError, type ConnectRouter, createRouterTransport } from '@connectrpc/connect';
import { expect, test } from 'vitest';
import { Auth } from '../gen/etcd/auth_pb.ts';
import { Cluster } from '../gen/etcd/cluster_pb.ts';
import { Maintenance } from '../gen/etcd/maintenance_pb.ts';
import { AuthTokens } from './auth-tokens.ts';
import type { CallReport } from './client.ts';
import { EtcdClient } from './client.ts';
import type { Session } from './transport.ts';

const ask = { endpoint: 'http://10.0.0.1:2379', timeoutMs: 500 };

/** The real client on a server in memory. */
function clientOf(routes: (router: ConnectRouter) => void) {
  const transport = createRouterTransport(routes);
  const reports: CallReport[] = [];
  const session: Session = { control: transport, bulk: transport, state: () => 'open', close: () => {} };
  const client = new EtcdClient(() => performance.now(), { open: () => session, onCall: (r) => reports.push(r) });
  return { client, reports };
}

const aMember = () =>
  clientOf(({ service }) => {
    service(Cluster, {
      memberList: (request) => {
        if (request.linearizable) throw new ConnectError('etcdserver: no leader', Code.Unavailable);
        return { header: { clusterId: 7n }, members: [{ ID: 2n ** 63n, name: 'a', peerURLs: ['http://a:2380'] }] };
      },
    });
    service(Maintenance, { status: () => ({ header: { clusterId: 7n, memberId: 9n }, version: '3.6.14' }) });
  });

test('ids keep all of their 64 bits', async () => {
  const list = await aMember().client.memberList({ ...ask, linearizable: false });
  expect(list).toEqual({
    ok: true,
    value: {
      clusterId: 7n,
      members: [{ id: 2n ** 63n, name: 'a', peerURLs: ['http://a:2380'], clientURLs: [], isLearner: false }],
    },
  });
});

test('a failure is a value with its kind', async () => {
  const list = await aMember().client.memberList({ ...ask, linearizable: true });
  expect(list).toEqual({ ok: false, error: { kind: 'noLeader', message: 'etcdserver: no leader' } });
});

test('a field that only later versions report is absent, not zero', async () => {
  const status = await aMember().client.status(ask);
  expect(status).toMatchObject({ ok: true, value: { version: '3.6.14', dbSize: 0 } });
  expect(status.ok && ['dbSizeQuota', 'storageVersion', 'downgradeTo'].filter((key) => key in status.value)).toEqual(
    [],
  );
});

test('a refused connection is a value too, and is returned at once', async () => {
  const client = new EtcdClient(() => performance.now());
  const answer = await client.status({ endpoint: 'http://127.0.0.1:9', timeoutMs: 2000 });
  expect(answer).toMatchObject({ ok: false, error: { kind: 'unreachable' } });
  client.close();
});

test('a response from another cluster is refused', async () => {
  const access = { cluster: 'ns/db', clusterId: 8n };
  const answer = await aMember().client.status({ ...ask, access });
  expect(answer).toMatchObject({ ok: false, error: { kind: 'wrongCluster' } });
});

test('a list of more members than a real cluster has is refused', async () => {
  const members = Array.from({ length: 101 }, (_, i) => ({ ID: BigInt(i) }));
  const { client } = clientOf(({ service }) => service(Cluster, { memberList: () => ({ members }) }));
  const answer = await client.members.list(ask, { linearizable: true });
  expect(answer).toMatchObject({ ok: false, error: { kind: 'badAnswer' } });
});

test('every call is reported when it has ended', async () => {
  const { client, reports } = aMember();
  await client.status(ask);
  await client.memberList({ ...ask, linearizable: true });
  expect(reports.map(({ method, outcome }) => `${method} ${outcome}`)).toEqual([
    'Maintenance/Status ok',
    'Cluster/MemberList noLeader',
  ]);
});

test('plain HTTP where TLS is required is an error, and so is TLS without a CA bundle', async () => {
  const client = new EtcdClient(() => performance.now());
  const access = { cluster: 'ns/db', tls: () => ({ ca: 'a CA' }) };
  const plain = await client.status({ ...ask, access });
  const blind = await client.status({ ...ask, endpoint: 'https://10.0.0.1:2379' });
  expect([plain, blind]).toMatchObject([
    { ok: false, error: { kind: 'tls' } },
    { ok: false, error: { kind: 'tls' } },
  ]);
});

/** Auth is enabled; each Authenticate call issues a new token, and only the newest is valid. */
function aGuardedMember(without = 'user name is empty') {
  const state = { enabled: true, authentications: 0, password: 'secret' };
  const made = clientOf(({ service }) => {
    service(Auth, {
      authenticate: async ({ name, password }) => {
        if (!state.enabled)
          throw new ConnectError('etcdserver: authentication is not enabled', Code.FailedPrecondition);
        if (name !== 'root' || password !== state.password)
          throw new ConnectError(
            'etcdserver: authentication failed, invalid user ID or password',
            Code.InvalidArgument,
          );
        state.authentications++;
        await new Promise((resolve) => setTimeout(resolve, 5));
        return { token: `token-${state.authentications}` };
      },
    });
    service(Maintenance, {
      status: (_, { requestHeader }) => {
        const token = requestHeader.get('token');
        if (state.enabled && token === null) throw new ConnectError(`etcdserver: ${without}`, Code.InvalidArgument);
        if (state.enabled && token !== `token-${state.authentications}`)
          throw new ConnectError('etcdserver: invalid auth token', Code.Unauthenticated);
        return { version: '3.6.14' };
      },
    });
  });
  return { ...made, state };
}

const account = { user: 'root', password: 'secret' };
const access = { cluster: 'ns/db', passwords: () => [account] };

test('concurrent calls authenticate once, and later ones not at all', async () => {
  const { client, state } = aGuardedMember();
  const answers = await Promise.all(Array.from({ length: 10 }, () => client.status({ ...ask, access })));
  expect(answers.every(({ ok }) => ok)).toBe(true);
  await client.status({ ...ask, access });
  expect(state.authentications).toBe(1);
});

test('a token that etcd no longer knows is replaced, and the call repeated', async () => {
  const { client, state } = aGuardedMember();
  await client.status({ ...ask, access });
  state.authentications++; // as after a restart of the member
  expect(await client.status({ ...ask, access })).toMatchObject({ ok: true });
});

test('a wrong password is reported, and tried once per call', async () => {
  const { client, reports } = aGuardedMember();
  const wrong = { cluster: 'ns/db', passwords: () => [{ user: 'root', password: 'guess' }] };
  expect(await client.status({ ...ask, access: wrong })).toMatchObject({ ok: false, error: { kind: 'authFailed' } });
  expect(reports).toHaveLength(1);
});

test('of several passwords the first that etcd accepts is used, and then no other is tried', async () => {
  const { client, reports } = aGuardedMember();
  const passwords = ['new', 'secret', 'old'].map((password) => ({ user: 'root', password }));
  const several = { cluster: 'ns/db', passwords: () => passwords };
  expect(await client.status({ ...ask, access: several })).toMatchObject({ ok: true });
  expect(await client.status({ ...ask, access: several })).toMatchObject({ ok: true });
  expect(reports.map(({ method, outcome }) => `${method} ${outcome}`)).toEqual([
    'Auth/Authenticate authFailed',
    'Auth/Authenticate ok',
    'Maintenance/Status ok',
    'Maintenance/Status ok',
  ]);
});

test.each(['permission denied', 'user name not found'])(
  'a client with a certificate that gets "%s" authenticates, instead of acting as the user in the certificate',
  async (words) => {
    const { client, state } = aGuardedMember(words);
    state.enabled = false;
    await client.status({ ...ask, access });
    state.enabled = true;
    expect(await client.status({ ...ask, access })).toMatchObject({ ok: true });
  },
);

test('a member that does not authenticate clients does not keep another one from doing so', async () => {
  const tokens = new AuthTokens();
  const at = (endpoint: string) => ({ cluster: 'ns/db', endpoint, passwords: [account], refused: undefined });
  const unreachable = tokens.token(at('a'), () => new Promise(() => {}));
  const other = tokens.token(at('b'), () => Promise.resolve({ ok: true, value: 'token' }));
  expect(await Promise.race([unreachable, other])).toEqual({ ok: true, value: 'token' });
});

test('a learner that does not know the token yet does not invalidate it for the others', async () => {
  const tokens = new AuthTokens();
  const at = { cluster: 'ns/db', endpoint: 'a', passwords: [account], refused: undefined };
  const token = { ok: true, value: 'token' } as const;
  await tokens.token(at, () => Promise.resolve(token));
  const refusal = { ok: false, error: { kind: 'learnerRefused', message: 'no' } } as const;
  const learner = { ...at, endpoint: 'learner', refused: { token: 'token' } };
  expect(await tokens.token(learner, () => Promise.resolve(refusal))).toEqual(refusal);
  expect(await tokens.token(at, () => Promise.resolve(refusal))).toEqual(token);
});

test('a changed password is used at once', async () => {
  const { client, state } = aGuardedMember();
  let password = 'secret';
  const changing = { cluster: 'ns/db', passwords: () => [{ user: 'root', password }] };
  await client.status({ ...ask, access: changing });
  state.password = password = 'other';
  state.authentications++;
  expect(await client.status({ ...ask, access: changing })).toMatchObject({ ok: true });
});

test('while auth is off calls are made without a token; once it is enabled they authenticate', async () => {
  const { client, state } = aGuardedMember();
  state.enabled = false;
  expect(await client.status({ ...ask, access })).toMatchObject({ ok: true });
  state.enabled = true;
  expect(await client.status({ ...ask, access })).toMatchObject({ ok: true });
});

test('a caller that aborts does not cancel the authentication for others', async () => {
  const { client } = aGuardedMember();
  const stop = new AbortController();
  const first = client.status({ ...ask, access, signal: stop.signal });
  const second = client.status({ ...ask, access });
  stop.abort();
  expect(await first).toMatchObject({ ok: false, error: { kind: 'canceled' } });
  expect(await second).toMatchObject({ ok: true });
});
