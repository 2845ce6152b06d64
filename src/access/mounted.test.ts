import { expect, test } from 'vitest';
import { aCluster, aMember, aPod, FORMED } from '../../test/support/builders/builders.ts';
import { NOTHING_MOUNTED } from '../../test/support/builders/credentials.ts';
import type { EtcdClusterStatus } from '../api/etcd-cluster-status.ts';
import type { EtcdMember } from '../api/etcd-member.ts';
import { trustName } from '../api/names.ts';
import type { Pod } from '../gen/kube.ts';
import { type Mounted, mountIn } from './evaluate/mounts.ts';
import { mountedBy } from './mounted.ts';

const projected = (bundle?: string) => ({
  name: 'tls-peer',
  projected: {
    sources: [
      { secret: { name: 'leaf', items: [{ key: 'tls.crt', path: 'tls.crt' }] } },
      ...(bundle === undefined ? [] : [{ secret: { name: bundle, items: [{ key: 'ca.crt', path: 'ca.crt' }] } }]),
    ],
  },
});
const podWith = (...volumes: object[]): Pod => ({ ...aPod(), spec: { containers: [], volumes } as never });

test.each([
  ['no volume', podWith(), undefined],
  ['the volume of another port', podWith({ ...projected('b'), name: 'tls-client' }), undefined],
  ['a certificate with its CA bundle', podWith({ name: 'data' }, projected('b')), { leaf: 'leaf', bundle: 'b' }],
  ['a certificate without a CA bundle', podWith(projected()), { leaf: 'leaf' }],
  ['a whole Secret', podWith({ name: 'tls-peer', secret: { secretName: 's' } }), { leaf: 's' }],
])('a Pod mounts %s', (_what, pod, expected) => {
  expect(mountIn(pod, 'peer', aCluster())).toStrictEqual(expected);
});

/** As the StatefulSet that etcd-migrate adopts has it: other names and folders, and flags in `args`. */
const legacyPod = (...args: readonly string[]): Pod => {
  const mounts = {
    data: '/var/run/etcd',
    'peer-ca': '/etc/pki/peer/ca',
    'peer-cert': '/etc/pki/peer',
    server: '/etc/pki/srv/',
  };
  return {
    ...aPod(),
    spec: {
      containers: [
        { name: 'proxy', command: ['--peer-cert-file=/x/tls.crt'] },
        {
          name: 'etcd',
          command: ['etcd'],
          args,
          volumeMounts: Object.entries(mounts).map(([name, mountPath]) => ({ name, mountPath })),
        },
      ],
      volumes: Object.keys(mounts).map((name) => ({ name, secret: { secretName: `${name}-secret` } })),
    },
  };
};

test.each([
  ['--peer-cert-file=/etc/pki/peer/tls.crt', '--peer-trusted-ca-file=/etc/pki/peer/ca/ca.crt'],
  ['--cert-file=/etc/pki/srv/tls.crt', '--peer-cert-file', '/etc/pki/peer/tls.crt'],
])('a Pod of etcd-migrate mounts what its flags name: %s %s', (...args) => {
  const cluster = aCluster({ status: { ...FORMED, trust: { assumed: { peer: 'abc' } } } });
  expect(mountIn(legacyPod(...args), 'peer', aCluster())).toStrictEqual({ leaf: 'peer-cert-secret' });
  const bundle = trustName('db', 'peer', 'abc');
  expect(mountIn(legacyPod(...args), 'peer', cluster)).toStrictEqual({ leaf: 'peer-cert-secret', bundle });
});
test('a Pod of etcd-migrate without TLS on a port mounts nothing for it', () => {
  expect(mountIn(legacyPod('--peer-auto-tls'), 'peer', aCluster())).toBeUndefined();
  expect(mountIn(legacyPod('--cert-file=/etc/pki/srv/tls.crt'), 'peer', aCluster())).toBeUndefined();
  expect(mountIn(legacyPod('--cert-file=/etc/pki/srv/tls.crt'), 'client', aCluster())).toStrictEqual({
    leaf: 'server-secret',
  });
  expect(mountIn(legacyPod('--cert-file=/elsewhere/tls.crt'), 'client', aCluster())).toBeUndefined();
});

function mounted(members: readonly EtcdMember[], pod: Pod | undefined, trust?: EtcdClusterStatus['trust']): Mounted {
  const stores = { members: { byIndex: () => members }, pods: { get: () => pod } };
  const cluster = aCluster({ status: { ...FORMED, ...(trust && { trust }) } });
  return mountedBy(stores as unknown as Parameters<typeof mountedBy>[0], cluster);
}
const member = aMember();
const unowned = { ...member, metadata: { ...member.metadata, ownerReferences: [] } };
const foreign = { ...podWith(projected('b')), metadata: { ...aPod().metadata, ownerReferences: [] } };
const running = { running: true, complete: true };
const nothing = { client: [], peer: [] };

test.each<[string, () => Mounted, Mounted]>([
  ['no member', () => mounted([], undefined), NOTHING_MOUNTED],
  ['members of another cluster', () => mounted([unowned], podWith(projected('b'))), NOTHING_MOUNTED],
  [
    'a member without its Pod',
    () => mounted([member], undefined),
    { running: false, complete: false, bundles: nothing },
  ],
  ['a foreign Pod', () => mounted([member], foreign), { running: false, complete: false, bundles: nothing }],
  ['a paused member', () => mounted([aMember({ spec: { dormant: true } })], undefined), NOTHING_MOUNTED],
  ['a Pod without TLS', () => mounted([member], podWith()), { ...running, bundles: nothing }],
  [
    'one bundle, twice',
    () => mounted([member, member], podWith(projected('b'))),
    { ...running, bundles: { ...nothing, peer: ['b'] } },
  ],
  ['a Pod that names no bundle', () => mounted([member], podWith(projected())), { ...running, bundles: nothing }],
  [
    'a Pod that names no bundle, and the assumed one',
    () => mounted([member], podWith(projected()), { assumed: { peer: 'abc' } }),
    { ...running, bundles: { ...nothing, peer: [trustName('db', 'peer', 'abc')] } },
  ],
  [
    'a named bundle, whatever is assumed for others',
    () => mounted([member], podWith(projected('b')), { assumed: { peer: 'abc' } }),
    { ...running, bundles: { ...nothing, peer: ['b'] } },
  ],
])('a cluster mounts: %s', (_what, found, expected) => {
  const { hosts = [], ...mounted } = found();
  expect(mounted).toStrictEqual(expected);
  expect(hosts.every((host) => host.endsWith('.db.ns.svc'))).toBe(true);
});
