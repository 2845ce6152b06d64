/** What a look at a cluster sees of log-ins, through models of the API server and of etcd. */
import { beforeEach, expect, test } from 'vitest';
import type { ModelNode } from '../../../../test/sim/model/etcd.ts';
import { hear, type ModelWorld, modelWorld, runningCluster } from '../../../../test/support/builders/ports.ts';
import type { EtcdCluster } from '../../../api/etcd-cluster.ts';
import type { AuthPort } from '../../../etcd/auth.ts';
import { secrets } from '../../../kube/resources.ts';
import { createCA, issue } from '../../../pki/issue.ts';
import { systemKeySource } from '../../../pki/key-source.ts';
import { observe } from '../observe.ts';
import { askAuth } from './observe-auth.ts';

let world: ModelWorld;
let nodes: readonly ModelNode[];
const at = { endpoint: 'http://10.0.0.1:2379', timeoutMs: 1_000 };
const { signal } = new AbortController();
const asked: string[] = [];

beforeEach(async () => {
  world = modelWorld();
  asked.length = 0;
  nodes = await runningCluster(world, 3);
});
const turnOn = async (password: string): Promise<void> => {
  const { auth } = world.etcd;
  await auth.addUser(at, 'root', password);
  await auth.grantRole(at, 'root', 'root');
  await auth.enable(at);
};
const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** The same cluster with a spec that asks for log-ins, and certificates with which members are reached. */
async function guarded(password: string): Promise<EtcdCluster> {
  const cached = world.clusters.get('ns/db');
  if (!cached) throw new Error('there is no cluster');
  const ca = await createCA('ca', world.now(), systemKeySource);
  const hosts = ['*.db.ns.svc', 'db-client.ns.svc'];
  const leaf = await issue(
    ca,
    { name: 'x', hosts, usages: ['server auth'], durationMs: 1e10 },
    world.now(),
    systemKeySource,
  );
  const files = { 'tls.crt': leaf.cert, 'tls.key': leaf.key, 'ca.crt': ca.cert };
  const data = Object.fromEntries(Object.entries(files).map(([key, text]) => [key, base64(text)]));
  const secret = (name: string, of: Readonly<Record<string, string>>) =>
    world.client.create(secrets, { apiVersion: 'v1', kind: 'Secret', metadata: { namespace: 'ns', name }, data: of });
  await secret('server', data);
  await secret('root', { password: base64(password) });
  const tls = { client: { serverSecretRef: { name: 'server' } } };
  const auth = { enabled: true, rootCredentialsSecretRef: { name: 'root' } };
  const spec = { ...cached.spec, tls, auth };
  const cluster = await world.client.patch(world.clusters.resource, { namespace: 'ns', name: 'db' }, { spec });
  hear(world.clusters, cluster);
  return cluster;
}
const look = async () => {
  asked.length = 0;
  const memberList: typeof world.etcd.memberList = (ask) => {
    asked.push(ask.endpoint);
    return world.etcd.memberList(ask);
  };
  const seen = await observe({ ...world, etcd: { ...world.etcd, memberList } }, 'ns/db', signal, undefined);
  if (!seen) throw new Error('there is no cluster');
  return seen;
};

test('a log-in that is wanted, and of which the spec says nothing', async () => {
  await turnOn('theirs');
  expect((await look()).etcd).toMatchObject({ is: 'silent', login: 'demanded' });
});

test('it is heard although others are silent', async () => {
  await turnOn('theirs');
  if (nodes[2]) world.model.stop(nodes[2]);
  world.model.advance(5_000);
  expect((await look()).etcd).toMatchObject({ is: 'silent', login: 'demanded' });
});

test('silence of another kind is not taken for it', async () => {
  for (const node of nodes) world.model.stop(node);
  expect((await look()).etcd).not.toHaveProperty('login');
});

test('off, on with the right password, and rejected with another: that is looked at again in the next pass', async () => {
  await guarded('mine');
  expect(await look()).toMatchObject({ etcd: { is: 'answers', auth: 'off' }, password: { kept: 'nothing' } });
  await turnOn('mine');
  expect(await look()).toMatchObject({ etcd: { is: 'answers', auth: 'on' }, password: { kept: 'nothing' } });
  const asRoot = { ...at, access: { cluster: 'me', logins: () => [{ user: 'root', password: 'mine' }] } };
  await world.etcd.auth.changePassword(asRoot, 'root', 'theirs');
  const locked = await look();
  expect(locked.etcd).toMatchObject({ is: 'silent', login: 'rejected' });
  expect(asked).toHaveLength(1); // all would say so, and a log-in takes etcd its time
  await world.client.patch(secrets, { namespace: 'ns', name: 'root' }, { data: { password: base64('theirs') } });
  await look();
  expect((await look()).etcd).toMatchObject({ is: 'answers', auth: 'on' });
});

/** An etcd of 3.7: whether log-ins are on is told to anybody. */
const portOf = (
  rootIs: 'let in' | 'userUnknown' | 'permissionDenied' | 'authRequired' | 'timeout',
): Pick<AuthPort, 'roles' | 'status'> => ({
  roles: () => {
    asked.push('roles');
    if (rootIs === 'let in') return Promise.resolve({ ok: true, value: [] });
    return Promise.resolve({ ok: false, error: { kind: rootIs, message: '' } });
  },
  status: () => {
    asked.push('status');
    return Promise.resolve({ ok: true, value: { enabled: true, revision: 1n } });
  },
});
const access = (cert?: string) => ({ cluster: 'ns/db', tls: () => ({ ca: 'x', ...(cert && { cert, key: 'k' }) }) });
const wanting = (enabled: boolean): EtcdCluster => ({ spec: { version: '3.7.3', auth: { enabled } } }) as EtcdCluster;

test.each([
  ['let in as root', 'let in', true, 'on'],
  ['not let in, whatever is told to anybody', 'userUnknown', true, 'demanded'],
  ['not let in, as another user', 'permissionDenied', true, 'demanded'],
  ['not let in', 'authRequired', true, 'demanded'],
  ['no answer', 'timeout', true, undefined],
  ['with a certificate, where the spec says nothing', 'userUnknown', false, 'demanded'],
  ['with a certificate, where nobody has to', 'let in', false, undefined],
] as const)('%s', async (_name, rootIs, wanted, auth) => {
  const seen = await askAuth({ auth: portOf(rootIs) }, wanting(wanted), { ...at, access: access('c') });
  expect(seen).toEqual(auth && { auth });
});

test('no more is asked than is needed', async () => {
  await askAuth({ auth: portOf('let in') }, wanting(false), { ...at, access: access() });
  expect(asked).toEqual([]);
  await askAuth({ auth: portOf('let in') }, wanting(false), { ...at, access: access('c') });
  expect(asked).toEqual(['roles']);
});
