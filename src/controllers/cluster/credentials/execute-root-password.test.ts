/** Root and its password, through models of the API server and of etcd, with an operator that is killed at every point. */
import { beforeEach, describe, expect, test } from 'vitest';
import { ModelEtcd, type ModelNode } from '../../../../test/sim/model/etcd.ts';
import { modelPorts } from '../../../../test/sim/model/etcd-ports.ts';
import { hear, modelWorld } from '../../../../test/support/builders/ports.ts';
import {
  type Fault,
  Killed,
  RootPasses,
  type RootSite,
} from '../../../../test/support/builders/root-password-scripts.ts';
import type { UserAuth } from '../../../../test/support/etcd-client.ts';
import { API_VERSION } from '../../../api/names.ts';
import type { AuthPort } from '../../../etcd/auth.ts';
import { hexId } from '../../../etcd/ids.ts';
import { secrets } from '../../../kube/resources.ts';
import type { RootPasswordCall } from '../calls.ts';
import { executeRootPasswordCall, type RootPorts } from './execute-root-password.ts';

let model: ModelEtcd;
let node: ModelNode;
let auth: UserAuth;
let root: RootPasses;

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
  root = new RootPasses(site);
  await root.begin();
});
const at = () => ({ endpoint: node.endpoint, timeoutMs: 1_000 });
const isKnown = async (password: string): Promise<void> => {
  expect([await root.logIn(password), await root.kept()]).toEqual(['ok', { password }]);
};

describe('log-ins are turned on', () => {
  test('with the password that was given, and nobody else is let in', async () => {
    await root.give('first');
    await root.run();
    await isKnown('first');
    expect(await root.logIn('other')).toBe('authFailed');
    expect(root.changes).toEqual(['keep', 'deleteUser', 'addUser', 'grantRole', 'enable', 'keep']);
  });

  test.each([
    ['with another password', 'theirs'],
    ['without one', undefined],
  ])('although somebody has made a root %s', async (_name, password) => {
    await auth.addUser(at(), 'root', password);
    await auth.grantRole(at(), 'root', 'root');
    await root.give('first');
    await root.run();
    await isKnown('first');
  });

  test('not without a password', async () => {
    await root.run();
    expect([root.changes, await root.logIn('')]).toEqual([[], 'authNotEnabled']);
  });

  test('again, when somebody has turned them off', async () => {
    await root.give('first');
    await root.run();
    const access = { cluster: 'me', logins: () => [{ user: 'root', password: 'first' }] };
    await auth.disable({ ...at(), access });
    root.restart();
    await root.run();
    await isKnown('first');
  });
});

describe('a cluster whose etcd asks for a log-in already', () => {
  beforeEach(async () => {
    await auth.addUser(at(), 'root', 'theirs');
    await auth.grantRole(at(), 'root', 'root');
    await auth.enable(at());
  });

  test('is taken over as it is, when the password is the right one', async () => {
    await root.give('theirs');
    await root.run();
    await isKnown('theirs');
    expect(root.changes).toEqual(['keep']);
  });

  test('is left alone otherwise, until the right one comes', async () => {
    await root.give('wrong');
    await expect(root.run()).rejects.toThrow('it does not come to rest');
    expect([root.changes, await root.kept()]).toEqual([[], {}]);
    await root.give('theirs');
    await root.run();
    await isKnown('theirs');
  });
});

/** What the user does while nobody looks; and what is right in the end. */
const MEANWHILE: readonly (readonly [string, (now: string) => Promise<void>, (now: string) => string])[] = [
  ['nothing happens', () => Promise.resolve(), (now) => now],
  ['it is changed once more', () => root.give('third'), () => 'third'],
  ['it is put back', () => root.give('first'), () => 'first'],
];

const faults = (changes: number): readonly Fault[] =>
  Array.from({ length: changes }, (_, i) => i + 1).flatMap((nth) =>
    (['before', 'after', 'unanswered'] as const).map((when) => ({ nth, when })),
  );

describe('whoever is killed', () => {
  const killed = async (fault: Fault): Promise<void> => {
    root.restart(fault);
    await root.run().catch((error: unknown) => {
      if (!(error instanceof Killed)) throw error;
    });
    root.restart();
  };

  describe.each(MEANWHILE)('while %s', (_name, meanwhile, result) => {
    test.each(faults(6))('turning log-ins on, $when change $nth', async (fault) => {
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
    'changing it, $when change $nth, while the Secret is deleted: what is kept lets in',
    async (fault) => {
      await root.give('first');
      await root.run();
      await root.give('second');
      await killed(fault);
      await root.give(undefined);
      await root.run();
      const { password = '', ...others } = await root.kept();
      expect([await root.logIn(password), others]).toEqual(['ok', {}]);
      await root.give('third');
      await root.run();
      await isKnown('third');
    },
  );

  test('with another change in its place: both passwords are kept until one is proven', async () => {
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

test('a password that etcd says to have taken, and has not, does not count', async () => {
  await root.give('first');
  await root.run();
  await root.give('second');
  root.restart({ nth: 2, when: 'forgotten' });
  await root.run();
  expect(root.changes).toEqual(['keep', 'changePassword', 'changePassword', 'keep']);
  await isKnown('second');
});

describe('nothing is told', () => {
  const told: string[] = [];
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
    hear(world.clusters, cluster);
    const data = { password: Buffer.from('first').toString('base64') };
    await world.client.create(secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { ...metadata, name: 'mine' },
      data,
    });
    told.length = 0;
    const authenticate: AuthPort['authenticate'] = (_ask, { password }) => {
      told.push(password);
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
    ['in the clear', { plain: true }, 'RetryLater: there is nobody to trust'],
    [
      'to a cluster of the same name that was made anew',
      { uid: 'of the one before' },
      'RetryLater: the cluster is gone',
    ],
  ])('%s', async (_name, change, said) => {
    expect(await ask(change)).toContain(said);
    expect(told).toEqual([]);
  });

  test('otherwise it is', async () => {
    expect([await ask({}), told]).toEqual(['done', ['first']]);
  });
});

test('a password is changed by one who was let in with the one before', async () => {
  await root.give('first');
  await root.run();
  await root.give('second');
  root.restart();
  await root.run();
  expect(root.changes).toEqual(['keep', 'changePassword', 'keep']);
  expect(await root.logIn('first')).toBe('authFailed');
  await isKnown('second');
});
