/** Certificates, on each real version: which clients are accepted or refused, and a CA rotation. The model has no TLS. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type CertificateAuthority, createCA, type KeyPair } from '../../local/pki.ts';
import type { Access } from '../../src/etcd/client.ts';
import type { Result } from '../../src/etcd/errors.ts';
import type { TlsMaterial } from '../../src/etcd/transport.ts';
import { ask, ETCD_VERSIONS, type EtcdLab, type Node, startLab } from '../support/servers/etcd.ts';

function must<T>(answer: Result<T>): T {
  if (!answer.ok) throw new Error(`${answer.error.kind}: ${answer.error.message}`);
  return answer.value;
}
const kindOf = (answer: Result<unknown>): string => (answer.ok ? 'ok' : answer.error.kind);
const reached = (tls: () => TlsMaterial): Access => ({ cluster: 'guarded', tls });
const NAME = 'a.db.ns.svc';

interface Guarded {
  readonly lab: EtcdLab;
  readonly node: Node;
  readonly ca: CertificateAuthority;
  readonly user: KeyPair;
  /** Gives the member another certificate; it reads its files at every handshake. */
  readonly renew: (by: CertificateAuthority) => Promise<void>;
}

describe.concurrent.each(ETCD_VERSIONS)('etcd %s', (version) => {
  const it = test.extend<{ guarded: Guarded }>({
    // oxlint-disable-next-line no-empty-pattern -- vitest reads the names of what a fixture needs
    guarded: async ({}, use) => {
      const lab = await startLab();
      const ca = await createCA();
      const file = (name: string): string => join(lab.folder, name);
      const renew = async (by: CertificateAuthority): Promise<void> => {
        const { cert, key } = await by.issue({ user: 'member' }, [NAME]); // not its IP: every new Pod gets another one
        writeFileSync(file('member.crt'), cert);
        writeFileSync(file('member.key'), key);
      };
      await renew(ca);
      writeFileSync(file('ca.crt'), ca.cert);
      const flags = [
        `--cert-file=${file('member.crt')}`,
        `--key-file=${file('member.key')}`,
        `--trusted-ca-file=${file('ca.crt')}`,
        '--client-cert-auth',
      ];
      const node = await lab.seed({ version, scheme: 'https', flags });
      await use({ lab, node, ca, user: await ca.issue({ user: 'root' }), renew });
      await lab.close();
    },
  });

  it('a client connects to the IP of a member and verifies the name in its certificate', async ({ guarded }) => {
    const { lab, node, ca, user } = guarded;
    const access = reached(() => ({ ca: ca.cert, ...user, serverName: NAME }));
    must(await lab.client.kv.put({ ...ask(node), access }, 'k', 'v'));
  });

  it.for([
    ['a name that is not in it', (g: Guarded) => ({ ca: g.ca.cert, ...g.user, serverName: 'b.db.ns.svc' })],
    ['its IP, which is not in it', (g: Guarded) => ({ ca: g.ca.cert, ...g.user })],
    ['no client certificate', (g: Guarded) => ({ ca: g.ca.cert, serverName: NAME })],
  ] as const)('a connection with %s fails', async ([, materialOf], { guarded }) => {
    const { lab, node } = guarded;
    const access = reached(() => materialOf(guarded));
    expect(kindOf(await lab.client.status({ ...ask(node), access }))).toBe('tls');
  });

  it('a member certificate of an unknown CA, and a client certificate of one, are refused', async ({ guarded }) => {
    const { lab, node, ca, user } = guarded;
    const other = await createCA();
    const foreign = await other.issue({ user: 'root' });
    const untrusted = reached(() => ({ ca: other.cert, ...user, serverName: NAME }));
    const unknown = reached(() => ({ ca: ca.cert, ...foreign, serverName: NAME }));
    expect([
      kindOf(await lab.client.status({ ...ask(node), access: untrusted })),
      kindOf(await lab.client.status({ ...ask(node), access: unknown })),
    ]).toEqual(['tls', 'tls']);
  });

  it('plain HTTP to a member with TLS fails', async ({ guarded }) => {
    const { lab, node } = guarded;
    const plain = { endpoint: node.endpoint.replace('https', 'http'), timeoutMs: 5_000 };
    expect(['disconnected', 'tls', 'badAnswer']).toContain(kindOf(await lab.client.status(plain)));
  });

  it('after a change of certificates calls use the new ones, and a watch on the old ones continues', async ({
    guarded,
  }) => {
    const { lab, node, ca, user, renew } = guarded;
    let material: TlsMaterial = { ca: ca.cert, ...user, serverName: NAME };
    const access = reached(() => material);
    const asked = { ...ask(node), access };
    const watch = lab.client.watch(asked, { key: 'k' });
    expect((await watch.next()).value).toMatchObject({ is: 'created' });

    const next = await createCA();
    await renew(next); // the member serves a certificate of the next CA, and still accepts clients of the old one
    material = { ca: next.cert, ...(await ca.issue({ user: 'root' })), serverName: NAME };
    must(await lab.client.kv.put(asked, 'k', 'v'));
    expect(lab.client.sessions()).toEqual({ clusters: 1, open: 1, draining: 1, unreachable: 0 });
    expect((await watch.next()).value).toMatchObject({ is: 'events' });
    await watch.return();
    expect(lab.client.sessions()).toEqual({ clusters: 1, open: 1, draining: 0, unreachable: 0 });
  });
});
