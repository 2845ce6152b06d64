/** Users and roles, on each real version and on the model: which request is refused to which user, and with which error. */
import { describe, expect } from 'vitest';
import type { Access, Ask } from '../../src/etcd/client.ts';
import type { Result } from '../../src/etcd/errors.ts';
import { initialCluster } from '../support/servers/etcd.ts';
import { ask, type EtcdWorld, IMPLEMENTATIONS, inWorld, kindOf, must, type WorldNode } from './etcd-world.ts';

const as = (user: string, password: string): Access => ({
  cluster: `the cluster, as ${user}`,
  passwords: () => [{ user, password }],
});
const root = as('root', 'secret');

/** Differences between the versions. */
const DIFFERENCES = {
  '3.5.35': { older: '3.4.0', authStatusForAnyone: false },
  '3.6.16': { older: '3.5.0', authStatusForAnyone: false },
  '3.7.3': { older: '3.6.0', authStatusForAnyone: true }, // from 3.7 on the auth status can be read without authentication
} as const;

describe.concurrent.each(IMPLEMENTATIONS)('etcd $name', ({ version, start }) => {
  const it = inWorld(start);
  const guarded = async (world: EtcdWorld, options = {}): Promise<WorldNode> => {
    const node = await world.seed(options);
    const { auth } = world.etcd;
    must(await auth.addUser(ask(node), 'root', 'secret'));
    must(await auth.grantRole(ask(node), 'root', 'root'));
    must(await auth.enable(ask(node)));
    return node;
  };

  it('auth cannot be enabled without a root user that could disable it', async ({ world }) => {
    const node = await world.seed();
    const { auth } = world.etcd;
    expect(must(await auth.status(ask(node))).enabled).toBe(false);
    expect(kindOf(await auth.authenticate(ask(node), { user: 'root', password: 'x' }))).toBe('authNotEnabled');
    expect(kindOf(await auth.enable(ask(node)))).toBe('rootMissing');
    must(await auth.addUser(ask(node), 'root', 'secret'));
    expect(kindOf(await auth.enable(ask(node)))).toBe('rootMissing');
    must(await auth.grantRole(ask(node), 'root', 'root'));
    must(await auth.enable(ask(node)));
    expect(must(await auth.status({ ...ask(node), access: root })).enabled).toBe(true);
    must(await auth.disable({ ...ask(node), access: root }));
    expect(must(await auth.status(ask(node))).enabled).toBe(false);
  });

  it('without a user, or with a wrong password or token, calls are refused, each with an error of its own', async ({
    world,
  }) => {
    const node = await guarded(world);
    const { auth, kv, members, maintenance } = world.etcd;
    expect({
      put: kindOf(await kv.put(ask(node), 'k', 'v')),
      range: kindOf(await kv.range(ask(node), { key: 'k' })),
      read: kindOf(await kv.read(ask(node))),
      addMember: kindOf(await members.add(ask(node), ['http://127.9.9.9:2380'], { learner: true })),
      authStatus: kindOf(await auth.status(ask(node))),
      disable: kindOf(await auth.disable(ask(node))),
      defragment: kindOf(await maintenance.defragment(ask(node))),
      wrongPassword: kindOf(await kv.put({ ...ask(node), access: as('root', 'guess') }, 'k', 'v')),
      unknownUser: kindOf(await kv.put({ ...ask(node), access: as('unknown', 'secret') }, 'k', 'v')),
      root: kindOf(await kv.put({ ...ask(node), access: root }, 'k', 'v')),
    }).toEqual({
      put: 'authRequired',
      range: 'authRequired',
      read: 'authRequired',
      addMember: 'authRequired',
      authStatus: DIFFERENCES[version].authStatusForAnyone ? 'ok' : 'authRequired',
      disable: 'authRequired',
      defragment: 'authRequired',
      wrongPassword: 'authFailed',
      unknownUser: 'authFailed',
      root: 'ok',
    });
  });

  it('some calls are for every authenticated user, and the others for root', async ({ world }) => {
    const node = await guarded(world);
    const { auth, kv, members, maintenance } = world.etcd;
    const asRoot = { ...ask(node), access: root };
    must(await auth.addUser(asRoot, 'app', 'pass'));
    const { memberId } = must(await maintenance.status(asRoot));
    const alarm = { memberId, alarm: 'noSpace' } as const;
    const calls: Readonly<Record<string, (at: Ask) => Promise<Result<unknown>>>> = {
      status: (at) => maintenance.status(at),
      list: (at) => members.list(at, { linearizable: true }),
      'serializable list': (at) => members.list(at, { linearizable: false }),
      alarms: (at) => maintenance.alarms(at),
      'own roles': (at) => auth.rolesOf(at, 'app'),
      activate: (at) => maintenance.activate(at, alarm),
      disarm: (at) => maintenance.disarm(at, alarm),
      hashKV: (at) => maintenance.hashKV(at, 0n),
      defragment: (at) => maintenance.defragment(at),
      compact: (at) => kv.compact(at, 1n),
      read: (at) => kv.read(at),
      downgrade: (at) => maintenance.downgrade(at, 'validate', DIFFERENCES[version].older),
      update: (at) => members.update(at, memberId, [node.peerURL]),
      roles: (at) => auth.roles(at),
      'roles of others': (at) => auth.rolesOf(at, 'root'),
      enable: (at) => auth.enable(at),
      'about itself': (at) => auth.status(at),
    };
    const forUsers = ['status', 'list', 'serializable list', 'alarms', 'own roles'];
    const anyone = DIFFERENCES[version].authStatusForAnyone ? ['about itself'] : [];
    for (const [name, call] of Object.entries(calls)) {
      const answers = [
        await call(ask(node)),
        await call({ ...ask(node), access: as('app', 'pass') }),
        await call(asRoot),
      ];
      const app = forUsers.includes(name) ? 'ok' : 'permissionDenied';
      expect([name, ...answers.map(kindOf)]).toEqual([
        name,
        ...(anyone.includes(name) ? ['ok', 'ok', 'ok'] : ['authRequired', app, 'ok']),
      ]);
    }
  });

  it('a learner authenticates no user, and serves users with a token of another member', async ({ world }) => {
    const node = await guarded(world);
    const { auth, members, maintenance } = world.etcd;
    const learner = world.node('l');
    must(await members.add({ ...ask(node), access: root }, [learner.peerURL], { learner: true }));
    learner.start({ initialCluster: initialCluster([node, learner]), state: 'existing' });
    await world.until('the learner has applied that auth is enabled', async () =>
      kindOf(await maintenance.status(ask(learner))) === 'authRequired' ? true : undefined,
    );
    expect(kindOf(await auth.authenticate(ask(learner), { user: 'root', password: 'secret' }))).toBe('learnerRefused');
    const access = { ...root, cluster: 'not authenticated yet' };
    expect(kindOf(await maintenance.status({ ...ask(learner), access }))).toBe('authRequired');
    must(await maintenance.status({ ...ask(node), access }));
    await world.until('the learner has received the token', async () =>
      kindOf(await maintenance.status({ ...ask(learner), access })) === 'ok' ? true : undefined,
    );
  });

  it('a member that restarts has no tokens, and the client authenticates again by itself', async ({ world }) => {
    const node = await guarded(world);
    const asRoot = { ...ask(node), access: root };
    must(await world.etcd.kv.put(asRoot, 'k', 'v'));
    await node.stop();
    node.start({ initialCluster: initialCluster([node]), state: 'new' });
    await world.until('it serves', async () => kindOf(await world.etcd.status(asRoot)) === 'ok' || undefined);
    must(await world.etcd.kv.put(asRoot, 'k', 'v'));
  });

  it('users other than root get no keys without a role, and each mistake has an error of its own', async ({
    world,
  }) => {
    const node = await guarded(world);
    const { auth, kv } = world.etcd;
    const asRoot = { ...ask(node), access: root };
    must(await auth.addUser(asRoot, 'app', 'pass'));
    const asApp = { ...ask(node), access: as('app', 'pass') };
    expect([
      kindOf(await kv.put(asApp, 'k', 'v')),
      kindOf(await kv.count(asApp)),
      kindOf(await auth.addUser(asApp, 'friend', 'pass')),
    ]).toEqual(['permissionDenied', 'permissionDenied', 'permissionDenied']);
    expect(must(await auth.roles(asRoot))).toEqual([]);
    expect(must(await auth.rolesOf(asRoot, 'root'))).toEqual(['root']);
    expect([
      kindOf(await auth.addUser(asRoot, 'app', 'pass')),
      kindOf(await auth.rolesOf(asRoot, 'unknown')),
      kindOf(await auth.grantRole(asRoot, 'app', 'nothing')),
      kindOf(await auth.deleteUser(asRoot, 'root')),
    ]).toEqual(['alreadyExists', 'userUnknown', 'notFound', 'other']);
  });

  it('the client replaces an expired token by itself', async ({ world }) => {
    const node = await guarded(world, { tokenSeconds: 1 });
    const asRoot = { ...ask(node), access: root };
    must(await world.etcd.kv.put(asRoot, 'k', 'v'));
    await world.pass(2_500); // unused for longer than its TTL
    must(await world.etcd.kv.put(asRoot, 'k', 'v'));
  });

  it('after a change of the password the old one is refused and the new one accepted', async ({ world }) => {
    const node = await guarded(world);
    const { auth, kv } = world.etcd;
    let password = 'secret';
    const access = { cluster: 'changing', passwords: () => [{ user: 'root', password }] };
    const asRoot = { ...ask(node), access };
    must(await kv.put(asRoot, 'k', 'v'));
    must(await auth.changePassword(asRoot, 'root', 'other'));
    expect(kindOf(await kv.put(asRoot, 'k', 'v'))).toBe('authFailed'); // the change has invalidated all tokens
    password = 'other';
    must(await kv.put(asRoot, 'k', 'v'));
  });
});
