import { describe, expect, test } from 'vitest';
import { aPod } from '../../../test/support/builders/builders.ts';
import type { Pod, Secret } from '../../gen/kube.ts';
import { foreignAccess, foreignPlace } from './foreign-pod.ts';

const encoded = (text: string): string => Buffer.from(text).toString('base64');
const SECRET: Secret = {
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'server', namespace: 'ns' },
  data: { 'ca.crt': encoded('CA'), 'tls.crt': encoded('CERT'), 'tls.key': encoded('KEY') },
};
const client = (secret: Secret | undefined) => ({
  get: (() => Promise.resolve(secret)) as never,
});

function etcd(command: readonly string[], mounted: 'secret' | 'projected' | 'nothing' = 'secret'): Pod {
  const source = { secret: { name: 'server' } };
  const volumes = {
    secret: [{ name: 'tls', secret: { secretName: 'server' } }],
    projected: [{ name: 'tls', projected: { sources: [source] } }],
    nothing: [],
  };
  const container = { name: 'etcd', image: 'i', command, volumeMounts: [{ name: 'tls', mountPath: '/tls/' }] };
  return { ...aPod(), spec: { containers: [container], volumes: volumes[mounted] } };
}

const TLS = ['etcd', '--cert-file=/tls/tls.crt', '--key-file=/tls/tls.key'];

describe('a Pod without an EtcdCluster', () => {
  test('that serves plain HTTP is reached without certificates', async () => {
    const pod = etcd(['etcd']);
    expect(foreignPlace(pod).scheme).toBe('http');
    expect((await foreignAccess(client(SECRET), pod, {})).access.tls).toBeUndefined();
  });

  test.each(['secret', 'projected'] as const)(
    'that serves TLS is verified with the CA of its %s volume',
    async (how) => {
      const pod = etcd(TLS, how);
      expect(foreignPlace(pod)).toMatchObject({ scheme: 'https', host: 'localhost' });
      const { access } = await foreignAccess(client(SECRET), pod, {});
      expect(access.tls?.('')).toEqual({ ca: 'CA', serverName: 'localhost' });
    },
  );

  test.each(['--client-cert-auth', '--client-cert-auth=true', '--trusted-ca-file=/tls/ca.crt'])(
    'with %s is shown its own certificate',
    async (flag) => {
      const { access } = await foreignAccess(client(SECRET), etcd([...TLS, flag]), {});
      expect(access.tls?.('')).toMatchObject({ cert: 'CERT', key: 'KEY' });
    },
  );

  test('is reached with the certificate that the user names', async () => {
    const certificate = { ca: 'own', cert: 'C', key: 'K' };
    const { access } = await foreignAccess(client(undefined), etcd(TLS), { certificate });
    expect(access.tls?.('')).toEqual({ ...certificate, serverName: 'localhost' });
  });

  test('whose CA cannot be found is not reached without verification', async () => {
    await expect(foreignAccess(client(SECRET), etcd(TLS, 'nothing'), {})).rejects.toThrow('no Secret is mounted');
    await expect(foreignAccess(client(undefined), etcd(TLS), {})).rejects.toThrow('does not exist');
    const bare = { ...SECRET, data: {} };
    await expect(foreignAccess(client(bare), etcd(TLS), {})).rejects.toThrow('has no ca.crt');
  });
});
