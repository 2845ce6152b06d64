/** The root password, against models of the API server and of etcd, with an operator that is killed at every point. */
import { beforeEach, describe, expect, test } from 'vitest';
import { ModelEtcd, type ModelNode } from '../../../../test/sim/model/etcd.ts';
import { modelPorts } from '../../../../test/sim/model/etcd-ports.ts';
import { modelWorld, putInCache } from '../../../../test/support/builders/ports.ts';
import {
  type Fault,
  Killed,
  RootReconciles,
  type RootSite,
} from '../../../../test/support/builders/root-password-scripts.ts';
import type { UserAuth } from '../../../../test/support/etcd-client.ts';
import { API_VERSION } from '../../../api/names.ts';
import type { AuthPort } from '../../../etcd/auth.ts';
import { hexId } from '../../../etcd/ids.ts';
import { secrets } from '../../../kube/resources.ts';
import type { RootPasswordCall } from './calls.ts';
import { executeRootPasswordCall, type RootPorts } from './execute-root-password.ts';

let model: ModelEtcd;
let node: ModelNode;
let auth: UserAuth;
let root: RootReconciles;

beforeEach(async () => {
  model = new ModelEtcd();
  node = model.node('m', { version: '3.6.16' });
  model.start(node, { initialCluster: `m=${node.peerURL}`, state: 'new' });
  model.advance(2_000);
  const ask = { endpoint: node.endpoint, timeoutMs: 1_000 };
  const etcd = modelPorts(model);
  const status = await etcd.status(ask);
  if (!status.ok) throw new Error(status.error.message);
  auth = etcd.auth;
  const site: RootSite = {
    connect: () => modelPorts(model).auth,
    ask,
    tls: () => ({ ca: 'trusted' }),
    clusterID: hexId(status.value.clusterId),
  };
  root = new RootReconciles(site);
  await root.start();
});
const at = () => ({ endpoint: node.endpoint, timeoutMs: 1_000 });
const isKnown = async (password: string): Promise<void> => {
  expect([await root.authenticate(password), await root.kept()]).toEqual(['ok', { password }]);
};

describe('auth is enabled', () => {
  test('with the given password, and no other is accepted', async () => {
    await root.give('first');
    await root.run();
    await isKnown('first');
    expect(await root.authenticate('other')).toBe('authFailed');
    expect(root.changes).toEqual(['keep', 'deleteUser', 'addUser', 'grantRole', 'enable', 'keep']);
  });

  test.each([
    ['with another password', 'theirs'],
    ['without one', undefined],
  ])('although a user has created root %s', async (_name, password) => {
    await auth.addUser(at(), 'root', password);
    await auth.grantRole(at(), 'root', 'root');
    await root.give('first');
    await root.run();
    await isKnown('first');
  });

  test('not without a password', async () => {
    await root.run();
    expect([root.changes, await root.authenticate('')]).toEqual([[], 'authNotEnabled']);
  });

  test('again, when a user has disabled it', async () => {
    await root.give('first');
    await root.run();
    const access = { cluster: 'me', passwords: () => [{ user: 'root', password: 'first' }] };
    await auth.disable({ ...at(), access });
    root.restart();
    await root.run();
    await isKnown('first');
  });
});

describe('a cluster with auth enabled already', () => {
  beforeEach(async () => {
    await auth.addUser(at(), 'root', 'theirs');
    await auth.grantRole(at(), 'root', 'root');
    await auth.enable(at());
  });

  test('is adopted unchanged, when the password is right', async () => {
    await root.give('theirs');
    await root.run();
    await isKnown('theirs');
    expect(root.changes).toEqual(['keep']);
  });

  test('is not changed with a wrong password, until the right one is given', async () => {
    await root.give('wrong');
    await expect(root.run()).rejects.toThrow('the operator does not settle');
    expect([root.changes, await root.kept()]).toEqual([[], {}]);
    await root.give('theirs');
    await root.run();
    await isKnown('theirs');
  });
});

/** What the user does while no operator runs; and the right password in the end. */
const MEANWHILE: readonly (readonly [string, (now: string) => Promise<void>, (now: string) => string])[] = [
  ['the Secret is unchanged', () => Promise.resolve(), (now) => now],
  ['the Secret is changed again', () => root.give('third'), () => 'third'],
  ['the Secret is changed back', () => root.give('first'), () => 'first'],
];

const faults = (changes: number): readonly Fault[] =>
  Array.from({ length: changes }, (_, i) => i + 1).flatMap((nth) =>
    (['before', 'after', 'unanswered'] as const).map((when) => ({ nth, when })),
  );

describe('an operator that is killed', () => {
  const killed = async (fault: Fault): Promise<void> => {
    root.restart(fault);
    await root.run().catch((error: unknown) => {
      if (!(error instanceof Killed)) throw error;
    });
    root.restart();
  };

  describe.each(MEANWHILE)('while %s', (_name, meanwhile, result) => {
    test.each(faults(6))('enabling auth, $when change $nth', async (fault) => {
      await root.give('second');
      await killed(fault);
      await meanwhile('second');
      await root.run();
      await isKnown(result('second'));
    });

    test.each(faults(3))('changing the password, $when change $nth', async (fault) => {
      await root.give('first');
      await root.run();
      await root.give('second');
      await killed(fault);
      await meanwhile('second');
      await root.run();
      await isKnown(result('second'));
    });
  });

  test.each(faults(3))(
    'changing the password, $when change $nth, while the Secret is deleted: etcd accepts the stored one',
    async (fault) => {
      await root.give('first');
      await root.run();
      await root.give('second');
      await killed(fault);
      await root.give(undefined);
      await root.run();
      const { password = '', ...others } = await root.kept();
      expect([await root.authenticate(password), others]).toEqual(['ok', {}]);
      await root.give('third');
      await root.run();
      await isKnown('third');
    },
  );

  test('before a further change: both passwords are stored until etcd accepts one', async () => {
    await root.give('first');
    await root.run();
    await root.give('second');
    await killed({ nth: 2, when: 'after' });
    await root.give('third');
    expect(await root.kept()).toEqual({ password: 'first', next: 'second' });
    await root.run();
    expect(root.changes).toEqual(['changePassword', 'keep', 'keep', 'changePassword', 'keep']);
    await isKnown('third');
  });
});

test('a password change that etcd confirmed and lost is repeated', async () => {
  await root.give('first');
  await root.run();
  await root.give('second');
  root.restart({ nth: 2, when: 'forgotten' });
  await root.run();
  expect(root.changes).toEqual(['keep', 'changePassword', 'changePassword', 'keep']);
  await isKnown('second');
});

describe('no password is sent', () => {
  const sent: string[] = [];
  async function ask(change: { readonly uid?: string; readonly plain?: boolean }): Promise<string> {
    const world = modelWorld();
    const spec = { version: '3.6.16', auth: { enabled: true, rootCredentialsSecretRef: { name: 'mine' } } };
    const metadata = { name: 'db', namespace: 'ns' };
    const cluster = await world.client.create(world.clusters.resource, {
      apiVersion: API_VERSION,
      kind: 'EtcdCluster',
      metadata,
      spec,
    });
    putInCache(world.clusters, cluster);
    const data = { password: Buffer.from('first').toString('base64') };
    await world.client.create(secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { ...metadata, name: 'mine' },
      data,
    });
    sent.length = 0;
    const authenticate: AuthPort['authenticate'] = (_ask, { password }) => {
      sent.push(password);
      return Promise.resolve({ ok: true, value: 'token' });
    };
    const access = { cluster: 'ns/db', ...(!change.plain && { tls: () => ({ ca: 'trusted' }) }) };
    const ports: RootPorts = {
      client: world.client,
      credentials: { access: () => Promise.resolve(access), forget: () => undefined },
      clusters: world.clusters,
      etcd: { auth: { ...world.etcd.auth, authenticate } },
    };
    const call: RootPasswordCall = {
      is: 'rootPassword',
      name: 'provePassword',
      target: 'db-root-applied',
      cluster: { ...metadata, uid: change.uid ?? cluster.metadata.uid ?? '' },
      clusterID: 'cafe',
      endpoints: ['http://10.0.0.1:2379'],
      hosts: {},
    };
    return executeRootPasswordCall(ports, call, new AbortController().signal).then(() => 'done', String);
  }

  test.each([
    ['in plaintext', { plain: true }, 'RetryLater: there is no CA bundle'],
    ['to another cluster of the same name', { uid: 'of the deleted one' }, 'RetryLater: the cluster was deleted'],
  ])('%s', async (_name, change, expected) => {
    expect(await ask(change)).toContain(expected);
    expect(sent).toEqual([]);
  });

  test('otherwise the password is sent', async () => {
    expect([await ask({}), sent]).toEqual(['done', ['first']]);
  });
});

test('a password is changed with the previous one', async () => {
  await root.give('first');
  await root.run();
  await root.give('second');
  root.restart();
  await root.run();
  expect(root.changes).toEqual(['keep', 'changePassword', 'keep']);
  expect(await root.authenticate('first')).toBe('authFailed');
  await isKnown('second');
});
