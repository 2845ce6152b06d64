/** A kube-apiserver that keeps its objects in a cluster of this operator, through its client Service, with mTLS; and clients of it. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { build } from '../../../local/binaries.ts';
import { Transport } from '../../../src/kube/transport.ts';
import { removeFolder } from '../kubelet/pod-run.ts';
import { adminOf, apiServerFlags } from '../servers/control-plane.ts';
import { eventually, freePort, Processes } from '../servers/processes.ts';
import type { Tenant } from './journey.ts';
import type { Registers } from './registers.ts';
import { clientOf } from './tls.ts';
import { serviceIp } from './writer.ts';

const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';

/** Starts it, with a ConfigMap for each key; each call of the result opens a connection to it. */
export async function aKubeApiServer(tenant: Tenant, name: string, keys: readonly string[]): Promise<() => Registers> {
  const folder = mkdtempSync(join(tmpdir(), 'etcd-operator-client-'));
  const processes = new Processes(folder);
  onTestFinished(async () => {
    await processes.stopAll();
    removeFolder(folder);
  });
  const file = (part: string, text = ''): string => {
    const path = join(folder, part);
    writeFileSync(path, text, { mode: 0o600 });
    return path;
  };
  const { ca, cert, key, serverName } = await clientOf(tenant, name);
  // The name in the certificates of the members. A private hosts file resolves it, through a mount namespace that ends with the process.
  const hosts = file('hosts', `127.0.0.1 localhost\n${await serviceIp(tenant, name)} ${serverName}\n`);
  const port = await freePort();
  const etcd = [
    `--etcd-servers=https://${serverName}:2379`,
    `--etcd-cafile=${file('ca.crt', ca)}`,
    `--etcd-certfile=${file('tls.crt', cert)}`,
    `--etcd-keyfile=${file('tls.key', key)}`,
  ];
  const binary = join((await build(['kubernetes'])).kubernetes, 'kube-apiserver');
  const inNamespace = ['--mount', '--', 'sh', '-c', 'mount --bind "$0" /etc/hosts && exec "$@"', hosts, binary];
  const child = processes.start('kube-apiserver', 'unshare', [...inNamespace, ...apiServerFlags(folder, etcd, port)]);
  const identity = await adminOf(folder, port);
  const connect = (): Transport => new Transport(() => Promise.resolve(identity));
  const first = connect();
  onTestFinished(() => first.close());
  for (const key of keys)
    await eventually(
      `ConfigMap ${key}`,
      () => first.json<unknown>(CONFIG_MAPS, { method: 'POST', body: holding(key) }),
      {
        timeoutMs: 120_000,
        everyMs: 250,
        seen: () => child.log().slice(-2_000),
      },
    );
  return () => registersOf(connect());
}

const holding = (name: string, value?: string) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name },
  data: value === undefined ? {} : { value },
});

/** Of ConfigMaps. A GET without a resourceVersion is read from a quorum of etcd. */
const registersOf = (transport: Transport): Registers => ({
  read: async (key) => {
    const { data } = await transport.json<{ readonly data?: { readonly value?: string } }>(`${CONFIG_MAPS}/${key}`);
    return data?.value;
  },
  write: async (key, value) => {
    await transport.json(`${CONFIG_MAPS}/${key}`, { method: 'PUT', body: holding(key, value) });
  },
  close: () => void transport.close(),
});
