/** What the cluster controller observes of auth, against models of the API server and of etcd. */

import { beforeEach, expect, test } from 'vitest';
import type { ModelNode } from '../../../../test/sim/model/etcd.ts';
import { type ModelWorld, modelWorld, putInCache, runningCluster } from '../../../../test/support/builders/ports.ts';
import type { EtcdCluster } from '../../../api/etcd-cluster.ts';
import type { AuthPort } from '../../../etcd/auth.ts';
import { secrets } from '../../../kube/resources.ts';
import { createCA, issue } from '../../../pki/issue.ts';
import { systemKeySource } from '../../../pki/key-source.ts';
import { NO_MEMORY } from '../../../runtime/plan.ts';
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
const enableAuth = async (password: string): Promise<void> => {
  const { auth } = world.etcd;
  await auth.addUser(at, 'root', password);
  await auth.grantRole(at, 'root', 'root');
  await auth.enable(at);
};
const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** The same cluster with spec.auth, and with certificates to connect to members. */
async function withAuth(password: string): Promise<EtcdCluster> {
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
  putInCache(world.clusters, cluster);
  return cluster;
}
const observed = async () => {
  asked.length = 0;
  const memberList: typeof world.etcd.memberList = (ask) => {
    asked.push(ask.endpoint);
    return world.etcd.memberList(ask);
  };
  const seen = await observe({ ...world, etcd: { ...world.etcd, memberList } }, 'ns/db', signal, NO_MEMORY);
  if (!seen) throw new Error('there is no cluster');
  return seen;
};

test('auth is enabled in etcd, and spec.auth is not set', async () => {
  await enableAuth('theirs');
  expect((await observed()).etcd).toMatchObject({ is: 'authRequired' });
});

test('auth is observed although another member is unreachable', async () => {
  await enableAuth('theirs');
  if (nodes[2]) world.model.stop(nodes[2]);
  world.model.advance(5_000);
  expect((await observed()).etcd).toMatchObject({ is: 'authRequired' });
});

test('an unreachable cluster does not count as one with auth', async () => {
  for (const node of nodes) world.model.stop(node);
  expect((await observed()).etcd).toMatchObject({ is: 'unreachable' });
});

test('auth is off, on with the right password, and rejected with another: a corrected Secret is read by the next reconcile', async () => {
  await withAuth('mine');
  expect(await observed()).toMatchObject({ etcd: { is: 'answers' }, auth: 'off', password: { kept: 'nothing' } });
  await enableAuth('mine');
  expect(await observed()).toMatchObject({ etcd: { is: 'answers' }, auth: 'on', password: { kept: 'nothing' } });
  const asRoot = { ...at, access: { cluster: 'me', passwords: () => [{ user: 'root', password: 'mine' }] } };
  await world.etcd.auth.changePassword(asRoot, 'root', 'theirs');
  const locked = await observed();
  expect(locked.etcd).toMatchObject({ is: 'authRejected' });
  expect(asked).toHaveLength(1); // all members would reject it, and authenticating is slow in etcd
  await world.client.patch(secrets, { namespace: 'ns', name: 'root' }, { data: { password: base64('theirs') } });
  await observed();
  expect(await observed()).toMatchObject({ etcd: { is: 'answers' }, auth: 'on' });
});

/** An etcd 3.7: it reports the auth status to every client. */
const portOf = (
  rootIs: 'accepted' | 'userUnknown' | 'permissionDenied' | 'authRequired' | 'timeout',
): Pick<AuthPort, 'roles' | 'status'> => ({
  roles: () => {
    asked.push('roles');
    if (rootIs === 'accepted') return Promise.resolve({ ok: true, value: [] });
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
  ['authenticated as root', 'accepted', true, 'on'],
  ['not authenticated, although etcd reports the auth status', 'userUnknown', true, 'required'],
  ['authenticated as another user', 'permissionDenied', true, 'required'],
  ['not authenticated', 'authRequired', true, 'required'],
  ['no response', 'timeout', true, undefined],
  ['with a certificate, and spec.auth is not set', 'userUnknown', false, 'required'],
  ['with a certificate, and auth is off', 'accepted', false, undefined],
] as const)('%s', async (_name, rootIs, wanted, auth) => {
  const seen = await askAuth({ auth: portOf(rootIs) }, wanting(wanted), { ...at, access: access('c') });
  expect(seen).toEqual(auth && { auth });
});

test('no unneeded request is sent', async () => {
  await askAuth({ auth: portOf('accepted') }, wanting(false), { ...at, access: access() });
  expect(asked).toEqual([]);
  await askAuth({ auth: portOf('accepted') }, wanting(false), { ...at, access: access('c') });
  expect(asked).toEqual(['roles']);
});
