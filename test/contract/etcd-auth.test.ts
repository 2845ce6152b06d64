/** Users and roles on each real version: what locks whom out, and in which words. */
import { describe, expect, test } from 'vitest';
import type { Access } from '../../src/etcd/client.ts';
import type { Answer } from '../../src/etcd/errors.ts';
import { ask, ETCD_VERSIONS, type EtcdLab, type Node, startLab } from '../support/etcd.ts';
import { pause } from '../support/processes.ts';

function must<T>(answer: Answer<T>): T {
  if (!answer.ok) throw new Error(`${answer.error.kind}: ${answer.error.message}`);
  return answer.value;
}
const kindOf = (answer: Answer<unknown>): string => (answer.ok ? 'ok' : answer.error.kind);
const as = (user: string, password: string): Access => ({
  cluster: `the cluster, as ${user}`,
  login: () => ({ user, password }),
});
const root = as('root', 'secret');

/** What differs, and why. */
const DIFFERENCES = {
  '3.5.35': { authStatusForAnyone: false },
  '3.6.16': { authStatusForAnyone: false },
  '3.7.3': { authStatusForAnyone: true }, // from 3.7 on whether one must log in can be asked without
} as const;

describe.concurrent.each(ETCD_VERSIONS)('etcd %s', (version) => {
  const it = test.extend<{ lab: EtcdLab }>({
    // oxlint-disable-next-line no-empty-pattern -- vitest reads the names of what a fixture needs
    lab: async ({}, use) => {
      const lab = await startLab();
      await use(lab);
      await lab.close();
    },
  });
  const guarded = async (lab: EtcdLab, ...flags: readonly string[]): Promise<Node> => {
    const node = await lab.seed({ version, flags: ['--bcrypt-cost=4', ...flags] });
    const { auth } = lab.client;
    must(await auth.addUser(ask(node), 'root', 'secret'));
    must(await auth.grantRole(ask(node), 'root', 'root'));
    must(await auth.enable(ask(node)));
    return node;
  };

  it('authentication cannot be turned on before somebody could turn it off again', async ({ lab }) => {
    const node = await lab.seed({ version, flags: ['--bcrypt-cost=4'] });
    const { auth } = lab.client;
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

  it('without a user, or with a wrong password or token, calls are refused, each in its own way', async ({ lab }) => {
    const node = await guarded(lab);
    const { auth, kv, members, maintenance } = lab.client;
    expect({
      put: kindOf(await kv.put(ask(node), 'k', 'v')),
      range: kindOf(await kv.range(ask(node), { key: 'k' })),
      addMember: kindOf(await members.add(ask(node), ['http://127.9.9.9:2380'], { learner: true })),
      authStatus: kindOf(await auth.status(ask(node))),
      disable: kindOf(await auth.disable(ask(node))),
      defragment: kindOf(await maintenance.defragment(ask(node))),
      wrongPassword: kindOf(await kv.put({ ...ask(node), access: as('root', 'guess') }, 'k', 'v')),
      unknownUser: kindOf(await kv.put({ ...ask(node), access: as('nobody', 'secret') }, 'k', 'v')),
      root: kindOf(await kv.put({ ...ask(node), access: root }, 'k', 'v')),
    }).toEqual({
      put: 'authRequired',
      range: 'authRequired',
      addMember: 'authRequired',
      authStatus: DIFFERENCES[version].authStatusForAnyone ? 'ok' : 'authRequired',
      disable: 'authRequired',
      defragment: 'authRequired',
      wrongPassword: 'authFailed',
      unknownUser: 'authFailed',
      root: 'ok',
    });
  });

  it('what the operator watches over is told to whoever asks, or to whoever logs in', async ({ lab }) => {
    const node = await guarded(lab);
    const { members, maintenance } = lab.client;
    const open = [
      kindOf(await maintenance.status(ask(node))),
      kindOf(await members.list(ask(node), { linearizable: true })),
      kindOf(await maintenance.alarms(ask(node))),
    ];
    for (const kind of open) expect(['ok', 'authRequired']).toContain(kind);
    const logged = { ...ask(node), access: root };
    must(await maintenance.status(logged));
    must(await members.list(logged, { linearizable: true }));
    must(await maintenance.alarms(logged));
  });

  it('a role opens its keys and no others', async ({ lab }) => {
    const node = await guarded(lab);
    const { auth, kv } = lab.client;
    const asRoot = { ...ask(node), access: root };
    must(await auth.addUser(asRoot, 'app', 'pass'));
    must(await auth.addRole(asRoot, 'app'));
    must(await auth.grantPermission(asRoot, 'app', { may: 'readwrite', key: 'app/', prefix: true }));
    must(await auth.grantRole(asRoot, 'app', 'app'));
    const asApp = { ...ask(node), access: as('app', 'pass') };
    expect([
      kindOf(await kv.put(asApp, 'app/1', 'v')),
      kindOf(await kv.put(asApp, 'other', 'v')),
      kindOf(await auth.addUser(asApp, 'friend', 'pass')),
    ]).toEqual(['ok', 'permissionDenied', 'permissionDenied']);
    expect(must(await auth.users(asRoot))).toEqual(['app', 'root']);
    expect(must(await auth.roles(asRoot))).toEqual(['app']);
    expect(must(await auth.rolesOf(asRoot, 'app'))).toEqual(['app']);
    expect([
      kindOf(await auth.addUser(asRoot, 'app', 'pass')),
      kindOf(await auth.addRole(asRoot, 'app')),
      kindOf(await auth.rolesOf(asRoot, 'nobody')),
      kindOf(await auth.grantRole(asRoot, 'app', 'nothing')),
      kindOf(await auth.deleteUser(asRoot, 'root')),
    ]).toEqual(['alreadyExists', 'alreadyExists', 'notFound', 'notFound', 'other']);
  });

  it('a token that has expired is renewed without the caller noticing', async ({ lab }) => {
    const node = await guarded(lab, '--auth-token-ttl=1');
    const asRoot = { ...ask(node), access: root };
    must(await lab.client.kv.put(asRoot, 'k', 'v'));
    await pause(2_500); // nobody uses it for longer than it lives
    must(await lab.client.kv.put(asRoot, 'k', 'v'));
  });

  it('a password that was changed locks out at the next log-in, and the new one lets in', async ({ lab }) => {
    const node = await guarded(lab);
    const { auth, kv } = lab.client;
    let password = 'secret';
    const access = { cluster: 'changing', login: () => ({ user: 'root', password }) };
    const asRoot = { ...ask(node), access };
    must(await kv.put(asRoot, 'k', 'v'));
    must(await auth.changePassword(asRoot, 'root', 'other'));
    expect(kindOf(await kv.put(asRoot, 'k', 'v'))).toBe('authFailed'); // the change has ended all tokens
    password = 'other';
    must(await kv.put(asRoot, 'k', 'v'));
  });
});
