import { expect, test } from 'vitest';
import { aCluster, LATCHED, SEED_NAME } from '../../../test/support/builders/builders.ts';
import type { EtcdCluster, EtcdClusterSpec } from '../../api/etcd-cluster.ts';
import type { EtcdMember } from '../../api/etcd-member.ts';
import {
  clientService,
  hasDrifted,
  headlessService,
  joiningMember,
  joinList,
  metadataPatch,
  nameIn,
  ownedFields,
  pdb,
  seedMember,
} from './build.ts';

test('the headless Service', () => {
  expect(headlessService(aCluster())).toMatchSnapshot();
});
test('the client Service', () => {
  expect(clientService(aCluster())).toMatchSnapshot();
});
test('the seed', () => {
  if (!LATCHED.observed) throw new Error('no target');
  expect(seedMember(aCluster(), SEED_NAME, LATCHED.observed, 'token')).toMatchSnapshot();
});

test('the PodDisruptionBudget allows no eviction of unready members while there is no quorum', () => {
  expect(pdb(aCluster(), 2).spec).toMatchObject({ minAvailable: 2, unhealthyPodEvictionPolicy: 'IfHealthyBudget' });
});

test('a joining member does not bootstrap, and its initial cluster does not depend on the order of the member list', () => {
  if (!LATCHED.observed) throw new Error('no target');
  const entries = ['a', 'b'].map((name) => ({ id: name, name, peerURLs: [`http://${name}:2380`], isLearner: false }));
  const joiner = joiningMember(aCluster({ status: LATCHED }), 'b', LATCHED.observed, entries, {
    pinned: false,
    autoTls: false,
  });
  expect(joiner.spec).toMatchObject({
    initialCluster: 'a=http://a:2380,b=http://b:2380',
    clusterToken: LATCHED.clusterToken,
  });
  expect(joiner.spec).not.toHaveProperty('bootstrap');
  expect(joinList(entries.toReversed())).toBe(joinList(entries));
});

const built = headlessService(aCluster());
test.each([
  ['fields that the API server sets', { clusterIPs: ['None'], type: 'ClusterIP', sessionAffinity: 'None' }, false],
  ['a port that the user added', { ports: [...(built.spec?.ports ?? []), { name: 'web', port: 80 }] }, false],
  ['another selector', { selector: { app: 'x' } }, true],
  ['a narrower selector', { selector: { ...built.spec?.selector, a: 'b' } }, true],
  ['a missing port', { ports: [{ name: 'client', port: 2379, protocol: 'TCP' }] }, true],
  ['a port with another number', { ports: (built.spec?.ports ?? []).map((p) => ({ ...p, port: 1 })) }, true],
  ['another protocol', { ports: (built.spec?.ports ?? []).map((p) => ({ ...p, protocol: 'UDP' })) }, true],
  ['another target', { ports: (built.spec?.ports ?? []).map((p) => ({ ...p, targetPort: 1 })) }, true],
  ['a renamed port', { ports: (built.spec?.ports ?? []).map((p) => ({ ...p, name: `x${p.name}` })) }, true],
  ['publishNotReadyAddresses is false', { publishNotReadyAddresses: false }, true],
])('%s is drift: %s', (_name, change, drifted) => {
  expect(hasDrifted({ ...built, spec: { ...built.spec, ...change } }, built)).toBe(drifted);
});

test('only the headless Service publishes the addresses of members that are not ready', () => {
  expect(ownedFields(headlessService(aCluster()))['spec']).toHaveProperty('publishNotReadyAddresses', true);
  expect(ownedFields(clientService(aCluster()))['spec']).not.toHaveProperty('publishNotReadyAddresses');
});

const managed = { managed: {} } as const;
test.each<[string, EtcdClusterSpec['tls'], EtcdMember['spec']['tls']]>([
  ['no TLS', undefined, undefined],
  [
    'TLS between members',
    { peer: managed },
    { peerSecretRef: { name: 'db-peer-mounted' }, peerCertAllowedHostname: 'peer.db.ns.svc' },
  ],
  [
    'TLS for clients, without client certificates',
    { client: { managed: { clientCertificates: 'None' } } },
    { clientServerSecretRef: { name: 'db-server-mounted' } },
  ],
  [
    'mTLS',
    { client: managed, peer: managed },
    {
      clientServerSecretRef: { name: 'db-server-mounted' },
      clientMTLS: true,
      peerSecretRef: { name: 'db-peer-mounted' },
      peerCertAllowedHostname: 'peer.db.ns.svc',
    },
  ],
])('a member has the TLS settings of its cluster: %s', (_what, tls, expected) => {
  if (!LATCHED.observed) throw new Error('no target');
  const made = seedMember(aCluster({ spec: { ...(tls && { tls }) } }), SEED_NAME, LATCHED.observed, 'token');
  expect(made.spec.tls).toStrictEqual(expected);
});

test('a member has the deletionPolicy of its cluster, and more learners only if all members allow them', () => {
  const [target, spec] = [LATCHED.observed, { deletionPolicy: 'Retain' } as const];
  if (!target) throw new Error('no target');
  const made = (cluster: EtcdCluster) => seedMember(cluster, SEED_NAME, target, 'token').spec;
  expect(made(aCluster({ spec, status: LATCHED }))).toMatchObject({ deletionPolicy: 'Retain', maxLearners: 8 });
  const { defaults: _, ...earlier } = LATCHED;
  expect(made(aCluster({ status: earlier }))).not.toHaveProperty('maxLearners');
  expect(made(aCluster({ status: earlier }))).not.toHaveProperty('deletionPolicy');
});

test('labels that the spec has no more are removed, and only where they are', () => {
  const patch = (has: Readonly<Record<string, string>>) =>
    metadataPatch(
      { metadata: { labels: has } },
      { labels: { old: 'a', kept: 'b' } },
      { labels: { kept: 'b', now: 'c' } },
    );
  expect(patch({ old: 'a', kept: 'b', other: 'd' })).toEqual({
    metadata: { labels: { old: null, now: 'c' }, annotations: {} },
  });
  expect(patch({ kept: 'b', now: 'c', other: 'd' })).toBeUndefined();
});

test('a member of the list is named as it names itself, or else by its peer URL', () => {
  const entry = { id: '1', isLearner: false, peerURLs: ['http://b.db.ns.svc:2380'] };
  expect([nameIn({ ...entry, name: 'a' }), nameIn({ ...entry, name: '' })]).toEqual(['a', 'b']);
});
