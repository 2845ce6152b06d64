/**
 * The root user and its password on each real version, over TLS, with and without client certificates: how the operator
 * manages them when it is killed at every point, and what it relies on.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type Access, type Ask } from '../../src/etcd/client.ts';
import type { Result } from '../../src/etcd/errors.ts';
import { hexId } from '../../src/etcd/ids.ts';
import { createCA, issue } from '../../src/pki/issue.ts';
import { systemKeySource } from '../../src/pki/key-source.ts';
import { type Fault, Killed, RootReconciles } from '../support/builders/root-password-scripts.ts';
import { UserClient } from '../support/etcd-client.ts';
import {
  ask,
  ETCD_VERSIONS,
  type EtcdLab,
  type EtcdVersion,
  initialCluster,
  startLab,
} from '../support/servers/etcd.ts';

const kindOf = (answer: Result<unknown>): string => (answer.ok ? 'ok' : answer.error.kind);
const NAME = 'db-abcde.db.ns.svc';

interface Guarded {
  readonly lab: EtcdLab;
  readonly metrics: string;
  /** As a client with a certificate of this common name, and a password if there is one. */
  readonly as: (certificate: string, password?: string) => Promise<Ask>;
  readonly root: RootReconciles;
  /** Disables auth, as if it had never been enabled. */
  readonly open: (password: string) => Promise<void>;
  readonly close: () => Promise<void>;
}

async function oneMember(version: EtcdVersion, mutual: boolean): Promise<Guarded> {
  const lab = await startLab({ versions: [version] });
  const ca = await createCA('db-client-ca', Date.now(), systemKeySource);
  const sign = (name: string, hosts: readonly string[] = []) =>
    issue(
      ca,
      { durationMs: 3_600_000, name, hosts, usages: ['server auth', 'client auth'] },
      Date.now(),
      systemKeySource,
    );
  const file = (name: string, text: string): string => {
    writeFileSync(join(lab.folder, name), text);
    return join(lab.folder, name);
  };
  const own = await sign('db-server', [NAME]);
  const flags = [
    '--bcrypt-cost=4', // at the default cost, hundreds of authentications take two cores minutes, and calls time out
    `--cert-file=${file('tls.crt', own.cert)}`,
    `--key-file=${file('tls.key', own.key)}`,
    ...(mutual ? [`--trusted-ca-file=${file('ca.crt', ca.cert)}`, '--client-cert-auth=true'] : []),
  ];
  const node = lab.node('m', { version, flags, scheme: 'https' });
  node.start({ initialCluster: initialCluster([node]), state: 'new' });
  await node.ready();
  const as = async (certificate: string, password?: string): Promise<Ask> => {
    const material = { ca: ca.cert, ...(mutual && (await sign(certificate))), serverName: NAME };
    const passwords = password === undefined ? [] : [{ user: 'root', password }];
    const access: Access = { cluster: crypto.randomUUID(), tls: () => material, passwords: () => passwords };
    return { ...ask(node), access };
  };
  const operator = await as('db-operator-client');
  const status = await lab.client.status(operator);
  if (!status.ok) throw new Error(`the member does not report its cluster id: ${status.error.message}`);
  const clients: UserClient[] = [];
  const root = new RootReconciles({
    connect: () => {
      const client = new UserClient(() => performance.now());
      clients.push(client);
      return client.auth;
    },
    ask: operator,
    tls: operator.access?.tls ?? (() => ({ ca: '' })),
    clusterID: hexId(status.value.clusterId),
  });
  await root.start();
  return {
    lab,
    metrics: `http://${node.address}:2381`,
    as,
    root,
    open: async (password) => {
      const asRoot = await as('client', password);
      for (const answer of [await lab.client.auth.disable(asRoot), await lab.client.auth.deleteUser(asRoot, 'root')])
        expect(kindOf(answer)).toBe('ok');
    },
    close: async () => {
      for (const client of clients) client.close();
      await lab.close();
    },
  };
}

const cases = ETCD_VERSIONS.flatMap((version) => [
  { version, mutual: true, clients: 'with certificates of clients' },
  { version, mutual: false, clients: 'without' },
]);

describe.concurrent.each(cases)('etcd $version, $clients', { timeout: 240_000 }, ({ version, mutual }) => {
  const it = test.extend<{ guarded: Guarded }>({
    // oxlint-disable-next-line no-empty-pattern -- vitest reads the names of what a fixture needs
    guarded: async ({}, use) => {
      const guarded = await oneMember(version, mutual);
      await use(guarded);
      await guarded.close();
    },
  });

  it('auth is enabled whatever root user existed, and probes succeed as before', async ({ guarded }) => {
    const { root, lab, as, open, metrics } = guarded;
    const { auth } = lab.client;
    for (const before of [undefined, 'theirs', 'no password'] as const) {
      const bare = await as('client');
      if (before) {
        expect(kindOf(await auth.addUser(bare, 'root', before === 'no password' ? undefined : before))).toBe('ok');
        expect(kindOf(await auth.grantRole(bare, 'root', 'root'))).toBe('ok');
      }
      await root.give('first');
      root.restart();
      await root.run();
      expect([await root.authenticate('first'), await root.authenticate('theirs'), await root.kept()]).toEqual([
        'ok',
        'authFailed',
        { password: 'first' },
      ]);
      for (const probe of ['health', 'readyz', 'livez'])
        expect((await fetch(`${metrics}/${probe}`)).status, probe).toBe(200);
      await open('first');
    }
  });

  it('an operator that is killed while it enables auth or changes the password is continued by the next one', async ({
    guarded,
  }) => {
    const { root, open } = guarded;
    const killed = async (fault: Fault): Promise<void> => {
      root.restart(fault);
      await root.run().catch((error: unknown) => {
        if (!(error instanceof Killed)) throw error;
      });
      root.restart();
      await root.run();
    };
    // After one change is before the next; only etcd's responses can be lost.
    const at = (changes: number, atEtcd: readonly number[]): readonly Fault[] => [
      ...Array.from({ length: changes }, (_, i) => ({ nth: i + 1, when: 'before' }) as const),
      ...atEtcd.map((nth) => ({ nth, when: 'unanswered' }) as const),
    ];
    for (const fault of at(6, [2, 3, 4, 5])) {
      await root.give('first');
      await killed(fault);
      expect([fault, await root.authenticate('first'), await root.kept()]).toEqual([
        fault,
        'ok',
        { password: 'first' },
      ]);
      await open('first');
    }
    await root.give('first');
    root.restart();
    await root.run();
    for (const [i, fault] of at(3, [2]).entries()) {
      const next = `password ${i}`;
      await root.give(next);
      await killed(fault);
      expect([fault, await root.authenticate(next), await root.kept()]).toEqual([fault, 'ok', { password: next }]);
    }
  });

  it('a root user without a password cannot get one by a change, and more than 72 bytes are refused', async ({
    guarded,
  }) => {
    const { auth } = guarded.lab.client;
    const bare = await guarded.as('client');
    expect(kindOf(await auth.addUser(bare, 'root'))).toBe('ok');
    expect(kindOf(await auth.changePassword(bare, 'root', 'given'))).toBe('ok');
    expect(await auth.changePassword(bare, 'root', 'x'.repeat(73))).toMatchObject({
      error: { message: expect.stringContaining('exceeds 72 bytes') },
    });
    expect(kindOf(await auth.grantRole(bare, 'root', 'root'))).toBe('ok');
    expect(kindOf(await auth.enable(bare))).toBe('ok');
    expect(await guarded.root.authenticate('given')).toBe('authFailed');
    if (!mutual) return; // and there is no way back in
    expect(kindOf(await auth.disable(await guarded.as('root')))).toBe('ok');
    await guarded.root.give('given');
    await guarded.root.run();
    expect(await guarded.root.authenticate('given')).toBe('ok');
  });

  if (!mutual) return; // without mTLS no certificate can be a user
  it('a client certificate is a user: it can list members without a password, and as root it can recover access', async ({
    guarded: { lab, as, root },
  }) => {
    const { auth, members, kv, maintenance } = lab.client;
    await root.give('first');
    await root.run();
    const bare = await as('db-operator-client');
    expect({
      list: kindOf(await members.list(bare, { linearizable: true })),
      status: kindOf(await maintenance.status(bare)),
      roles: kindOf(await auth.roles(bare)),
      put: kindOf(await kv.put(bare, 'k', 'v')),
      read: kindOf(await kv.read(bare)),
      remove: kindOf(await members.remove(bare, 1n)),
    }).toEqual({
      list: 'ok',
      status: 'ok',
      roles: 'userUnknown',
      put: 'permissionDenied',
      read: 'permissionDenied',
      remove: 'userUnknown',
    });
    const asRoot = await as('client', 'first');
    expect(kindOf(await auth.addUser(asRoot, 'db-app'))).toBe('ok');
    expect(kindOf(await auth.grantRole(asRoot, 'db-app', 'root'))).toBe('ok');
    expect(kindOf(await kv.put(await as('db-app'), 'k', 'v'))).toBe('ok');
    const lost = await as('root');
    expect(kindOf(await auth.changePassword(lost, 'root', 'found again'))).toBe('ok');
    await root.give('found again');
    root.restart();
    await root.run();
    expect([await root.authenticate('found again'), await root.kept()]).toEqual(['ok', { password: 'found again' }]);
  });
});
