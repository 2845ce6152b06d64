/** Certificates as the operator issues them, with real members: peers connect, and only the right clients are accepted. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { peerName } from '../../src/api/names.ts';
import type { Access } from '../../src/etcd/client.ts';
import type { Result } from '../../src/etcd/errors.ts';
import { createCA, issue, type KeyPair, type Leaf } from '../../src/pki/issue.ts';
import { systemKeySource } from '../../src/pki/key-source.ts';
import { ask, ETCD_VERSIONS, type EtcdLab, initialCluster, type Node, startLab } from '../support/servers/etcd.ts';
import { eventually } from '../support/servers/processes.ts';

const MEMBERS = '*.db.ns.svc';
const NAME = 'db-abcde.db.ns.svc';
const HOUR = 60 * 60_000;

const kindOf = (answer: Result<unknown>): string => (answer.ok ? 'ok' : answer.error.kind);

interface Issued {
  readonly lab: EtcdLab;
  readonly clientCA: KeyPair;
  readonly client: KeyPair;
  readonly nodes: readonly Node[];
  /** The certificate of a member for its peers. */
  readonly peer: KeyPair;
  /** A certificate of the CA of the peers. */
  readonly fromPeerCA: (leaf: Omit<Leaf, 'durationMs'>) => Promise<KeyPair>;
  /** Issues another certificate for the client port of all members. */
  readonly renew: (leaf?: Partial<Leaf>) => Promise<void>;
}

async function threeMembers(version: (typeof ETCD_VERSIONS)[number]): Promise<Issued> {
  const lab = await startLab();
  const file = (name: string): string => join(lab.folder, name);
  const write = (name: string, { cert, key }: KeyPair, ca: KeyPair): readonly [string, string, string] => {
    const files = [file(`${name}.crt`), file(`${name}.key`), file(`${name}-ca.crt`)] as const;
    writeFileSync(files[0], cert);
    writeFileSync(files[1], key);
    writeFileSync(files[2], ca.cert);
    return files;
  };
  const sign = (by: KeyPair, leaf: Omit<Leaf, 'durationMs'>): Promise<KeyPair> =>
    issue(by, { durationMs: HOUR, ...leaf }, Date.now(), systemKeySource);
  const clientCA = await createCA('db-client-ca', Date.now(), systemKeySource);
  const peers = await createCA('db-peer-ca', Date.now(), systemKeySource);
  const both = ['server auth', 'client auth'] as const;
  const renew = async (leaf: Partial<Leaf> = {}): Promise<void> => {
    write('server', await sign(clientCA, { name: 'db-server', hosts: [MEMBERS], usages: both, ...leaf }), clientCA);
  };
  await renew();
  const paths = (name: string): readonly [string, string, string] => [
    file(`${name}.crt`),
    file(`${name}.key`),
    file(`${name}-ca.crt`),
  ];
  const flagsOf = (peer: string): readonly string[] => {
    const [[cert, key, ca], [peerCert, peerKey, peerCa]] = [paths('server'), paths(peer)];
    return [
      `--cert-file=${cert}`,
      `--key-file=${key}`,
      `--trusted-ca-file=${ca}`,
      '--client-cert-auth=true',
      `--peer-cert-file=${peerCert}`,
      `--peer-key-file=${peerKey}`,
      `--peer-trusted-ca-file=${peerCa}`,
      '--peer-client-cert-auth=true',
      `--peer-cert-allowed-hostname=${peerName('db', 'ns')}`,
    ];
  };
  const schemes = { scheme: 'https', peerScheme: 'https' } as const;
  const nodes = [1, 2, 3].map((n) => lab.node(`m${n}`, { version, flags: flagsOf('peer'), ...schemes }));
  // There is no DNS here, so hosts are IPs. The certificate of a peer must also contain the IP that it connects from.
  const hosts = [...nodes.map(({ address }) => address), '127.0.0.1', MEMBERS];
  const peer = await sign(peers, { name: 'db-peer', hosts, usages: both });
  write('peer', peer, peers);
  for (const node of nodes) node.start({ initialCluster: initialCluster(nodes), state: 'new' });
  await Promise.all(nodes.map((node) => node.ready()));
  const client = await sign(clientCA, { name: 'db-client', hosts: [], usages: ['client auth'] });
  return { lab, clientCA, client, nodes, peer, fromPeerCA: (leaf) => sign(peers, leaf), renew };
}

describe.each(ETCD_VERSIONS)('etcd %s', (version) => {
  const it = test.extend<{ issued: Issued }>({
    // oxlint-disable-next-line no-empty-pattern -- vitest reads the names of what a fixture needs
    issued: async ({}, use) => {
      const issued = await threeMembers(version);
      await use(issued);
      await issued.lab.close();
    },
  });
  const reach = ({ clientCA, client }: Issued, serverName = NAME): Access => ({
    cluster: 'issued',
    tls: () => ({ ca: clientCA.cert, ...client, serverName }),
  });

  it('three members with a CA of their own form a cluster, and serve a client that verifies them', async ({
    issued,
  }) => {
    const { lab, nodes } = issued;
    const access = reach(issued);
    for (const node of nodes)
      await eventually(
        `${node.name} accepts a write`,
        async () => (await lab.client.kv.put({ ...ask(node), access }, node.name, 'v')).ok || undefined,
        { seen: () => node.process?.log().slice(-2_000) },
      );
    const [first] = nodes;
    if (!first) throw new Error('no member');
    const all = await lab.client.kv.range({ ...ask(first), access }, { key: 'm', end: 'n' });
    expect(all.ok && all.value.kvs.length).toBe(3);
  });

  it('clients without a certificate, with one of another CA, or with a wrong server name are refused', async ({
    issued,
  }) => {
    const { lab, clientCA, nodes } = issued;
    const [node] = nodes;
    if (!node) throw new Error('no member');
    const other = await createCA('db-client-ca', Date.now(), systemKeySource);
    const leaf = { name: 'x', hosts: [], usages: ['client auth'], durationMs: HOUR } as const;
    const foreign = await issue(other, leaf, Date.now(), systemKeySource);
    const tries: readonly Access[] = [
      { cluster: 'bare', tls: () => ({ ca: clientCA.cert, serverName: NAME }) },
      { cluster: 'foreign', tls: () => ({ ca: clientCA.cert, ...foreign, serverName: NAME }) },
      reach(issued, 'db-abcde.other.ns.svc'),
    ];
    const kinds = await Promise.all(tries.map((access) => lab.client.status({ ...ask(node), access })));
    expect(kinds.map(kindOf)).toEqual(['tls', 'tls', 'tls']);
  });

  it('the peer port refuses the certificate of a client', async ({ issued }) => {
    const { client, nodes } = issued;
    expect(await handshake(nodes[0]?.address ?? '', client)).not.toBe('accepted');
  });

  it('S11: the peer port lets in members only, also where their CA signs for applications and other clusters', async ({
    issued,
  }) => {
    const { peer, fromPeerCA, nodes } = issued;
    const at = nodes[0]?.address ?? '';
    const both = ['server auth', 'client auth'] as const;
    const application = await fromPeerCA({ name: 'db-client', hosts: [], usages: ['client auth'] });
    const named = await fromPeerCA({ name: 'peer.db.ns.svc', hosts: [], usages: ['client auth'] });
    const another = await fromPeerCA({ name: 'other-peer', hosts: ['*.other.ns.svc', '127.0.0.1'], usages: both });
    expect(await handshake(at, peer)).toBe('accepted');
    for (const foreign of [application, named, another]) expect(await handshake(at, foreign)).not.toBe('accepted');
  });

  it('a renewed certificate is served from the next handshake on, without a restart', async ({ issued }) => {
    const { clientCA, client, nodes, renew } = issued;
    const [node] = nodes;
    const served = (): Promise<string> => serial(node?.address ?? '', clientCA, client);
    const before = await served();
    await renew({ hosts: [MEMBERS, 'localhost'] });
    expect(await served()).not.toBe(before);
  });
});

/** The result of a connection to the peer port: a server reports only after the handshake that it refuses a certificate. */
const handshake = (host: string, { cert, key }: KeyPair): Promise<string> =>
  new Promise((resolve) => {
    const socket = connect({ host, port: 2380, cert, key, rejectUnauthorized: false }, () => {
      socket.write('GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    });
    socket.on('data', () => resolve('accepted'));
    socket.on('error', (error) => resolve(error.message));
    socket.on('close', () => resolve('closed'));
  });

const serial = (host: string, clientCA: KeyPair, { cert, key }: KeyPair): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host, port: 2379, cert, key, ca: clientCA.cert, servername: NAME }, () => {
      resolve(socket.getPeerX509Certificate()?.serialNumber ?? '');
      socket.destroy();
    });
    socket.on('error', reject);
  });
