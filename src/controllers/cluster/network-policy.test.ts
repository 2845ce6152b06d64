/** S10: which connections the NetworkPolicies of a cluster allow, and when they are written. */
import { describe, expect, test } from 'vitest';
import { aCluster, FORMED } from '../../../test/support/builders/builders.ts';
import { up, world } from '../../../test/support/builders/members.ts';
import { modelWorld, putInCache, runningCluster } from '../../../test/support/builders/ports.ts';
import { connects, type Endpoint } from '../../../test/support/network-policy.ts';
import type { EtcdCluster, EtcdClusterSpec } from '../../api/etcd-cluster.ts';
import { agentLabels, memberLabels } from '../../api/names.ts';
import type { NetworkPolicy } from '../../gen/kube.ts';
import { networkPolicies as policyResource } from '../../kube/resources.ts';
import { NO_MEMORY } from '../../runtime/plan.ts';
import { decide } from './decide.ts';
import { type HeldPolicies, type NetworkSettings, networkPolicies } from './network-policy.ts';
import { observe } from './observe.ts';
import type { Observed } from './observed.ts';
import { correctNetworkPolicies } from './rules/network-policies.ts';
import { ignoredConditions } from './spec-warnings.ts';

const SETTINGS: NetworkSettings = {
  operatorNamespace: 'etcd-system',
  storeNetworks: [],
  allowAmbientCredentials: false,
};
const networkPolicy: EtcdClusterSpec['networkPolicy'] = {
  clients: [{ podSelector: { matchLabels: { app: 'web' } } }],
  monitoring: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } } }],
};
const cluster = (spec: Partial<EtcdClusterSpec> = { networkPolicy }): EtcdCluster => aCluster({ status: FORMED, spec });
const made = (spec?: Partial<EtcdClusterSpec>, settings: Partial<NetworkSettings> = {}): readonly NetworkPolicy[] => {
  const { members, agents } = networkPolicies(cluster(spec), { ...SETTINGS, ...settings });
  return [members, agents].filter((policy) => policy !== undefined);
};

const MEMBER: Endpoint = { namespace: 'ns', labels: memberLabels('db', 'db-1') };
const AGENT: Endpoint = { namespace: 'ns', labels: agentLabels('db') };
const operator = { 'control-plane': 'controller-manager' };
const SOURCES: Readonly<Record<string, Endpoint>> = {
  'another member': { namespace: 'ns', labels: memberLabels('db', 'db-2') },
  'the operator': { namespace: 'etcd-system', labels: operator },
  'an agent': AGENT,
  'a client that the spec names': { namespace: 'ns', labels: { app: 'web' } },
  monitoring: { namespace: 'monitoring', labels: { app: 'prometheus' } },
  'a member of another cluster': { namespace: 'ns', labels: memberLabels('other', 'other-1') },
  'an agent of another cluster': { namespace: 'ns', labels: agentLabels('other') },
  'another Pod of the namespace': { namespace: 'ns', labels: { app: 'batch' } },
  'a Pod of another tenant with the labels of a client': { namespace: 'tenant-b', labels: { app: 'web' } },
  'a Pod of another tenant with the labels of a member': { namespace: 'tenant-b', labels: memberLabels('db', 'x') },
  'a Pod of another tenant with the labels of the operator': { namespace: 'tenant-b', labels: operator },
  'another Pod beside the operator': { namespace: 'etcd-system', labels: { app: 'x' } },
  'an address outside of the cluster': { ip: '203.0.113.9' },
};
const reached = (policies: readonly NetworkPolicy[]) =>
  Object.fromEntries(
    Object.entries(SOURCES).map(([name, from]) => [
      name,
      [2379, 2380, 2381].filter((port) => connects(policies, from, MEMBER, port)).join(' '),
    ]),
  );

describe('S10: a member is reached', () => {
  const NONE = Object.fromEntries(Object.keys(SOURCES).map((name) => [name, '']));
  const own = { 'another member': '2379 2380', 'the operator': '2379 2380 2381', 'an agent': '2379' };
  test('by what needs it, and by whom the spec names', () => {
    expect(reached(made())).toEqual({ ...NONE, ...own, 'a client that the spec names': '2379', monitoring: '2381' });
  });
  test('by nothing else when the spec names no client', () => {
    expect(reached(made({ networkPolicy: {} }))).toEqual({ ...NONE, ...own });
  });
  test('by addresses that the spec names', () => {
    const ipBlock = { cidr: '203.0.113.0/24', except: ['203.0.113.8/30'] };
    expect(reached(made({ networkPolicy: { clients: [{ ipBlock }] } }))).toEqual({ ...NONE, ...own });
    const wider = { cidr: '203.0.113.0/24' };
    expect(reached(made({ networkPolicy: { clients: [{ ipBlock: wider }] } }))).toMatchObject({
      'an address outside of the cluster': '2379',
    });
  });
  test('by everything without a policy', () => {
    expect(new Set(Object.values(reached(made({}))))).toEqual(new Set(['2379 2380 2381']));
  });
  test('by everything while the operator runs outside of the cluster: it would lock itself out', () => {
    const { operatorNamespace: _, ...outside } = SETTINGS;
    const { members, agents } = networkPolicies(cluster(), outside);
    expect([members, agents?.metadata.name]).toEqual([undefined, 'db-agents']);
  });
});

describe('S4, S10: an agent reaches', () => {
  const targets: readonly (readonly [string, Endpoint, number, string?])[] = [
    ['DNS', { namespace: 'kube-system', labels: { app: 'dns' } }, 53, 'UDP'],
    ['DNS of OpenShift', { namespace: 'openshift-dns', labels: { app: 'dns' } }, 5353, 'UDP'],
    ['DNS of OpenShift over TCP', { namespace: 'openshift-dns', labels: { app: 'dns' } }, 5353, 'TCP'],
    ['a member', MEMBER, 2379],
    ['peers', MEMBER, 2380],
    ['a store in the cloud', { ip: '198.51.100.7' }, 443],
    ['a store in the cluster', { namespace: 'minio', labels: { app: 'minio' } }, 9000],
    ['a metadata service', { ip: '169.254.169.254' }, 80],
    ['the metadata service of Amazon, over IPv6', { ip: 'fd00:ec2::254' }, 80],
  ];
  const from = (policies: readonly NetworkPolicy[], source = AGENT) =>
    targets.filter(([, to, port, protocol]) => connects(policies, source, to, port, protocol)).map(([name]) => name);
  const dns = ['DNS', 'DNS of OpenShift', 'DNS of OpenShift over TCP'];
  test('DNS, members and every store, and no metadata service', () => {
    expect(from(made())).toEqual([...dns, 'a member', 'a store in the cloud', 'a store in the cluster']);
  });
  test('a metadata service where the administrator allows the cloud identity of Pods', () => {
    expect(from(made({ networkPolicy }, { allowAmbientCredentials: true }))).toContain('a metadata service');
  });
  test('the networks of the administrator only, whatever the spec says; and so does a member that restores', () => {
    const settings = { storeNetworks: ['198.51.100.0/24'] };
    expect(from(made({}, settings))).toEqual([...dns, 'a member', 'a store in the cloud']);
    expect(from(made({}, settings), MEMBER)).toEqual([...dns, 'a member', 'peers']);
    const source = { s3: { endpoint: 'https://s3.example.com', bucket: 'b', key: 'k' } };
    const restoring = made({ bootstrap: { restore: { source } } }, settings);
    expect(from(restoring, MEMBER)).toEqual([...dns, 'a member', 'peers', 'a store in the cloud']);
    expect(reached(restoring)['another Pod of the namespace']).toBe('2379 2380 2381'); // only egress is limited
  });
  test('and nothing reaches an agent', () => {
    expect(Object.values(SOURCES).filter((source) => connects(made(), source, AGENT, 8080))).toEqual([]);
  });
});

describe('S10: NetworkPolicies are kept as the spec says', () => {
  const absent = { is: 'absent' } as const;
  const held = (spec?: Partial<EtcdClusterSpec>): HeldPolicies => {
    const { members, agents } = networkPolicies(cluster(spec), SETTINGS);
    const ours = (object: NetworkPolicy | undefined) =>
      object ? ({ is: 'ours', object: { ...object, metadata: { ...object.metadata, uid: 'u' } } } as const) : absent;
    return { members: ours(members), agents: ours(agents) };
  };
  const steps = (
    spec: Partial<EtcdClusterSpec>,
    policies: HeldPolicies,
    status: EtcdCluster['status'] = FORMED,
  ): readonly string[] => {
    const o = { cluster: aCluster({ status, spec }), network: { settings: SETTINGS, held: policies } };
    const all = correctNetworkPolicies(o as unknown as Observed)?.sequences?.flat() ?? [];
    return all.map((step) =>
      step.do === 'create' ? `create ${step.object.metadata.name}` : 'to' in step || 'what' in step ? step.do : '?',
    );
  };
  test.each<[string, Partial<EtcdClusterSpec>, HeldPolicies, readonly string[]]>([
    ['asked for', { networkPolicy }, { members: absent, agents: absent }, ['create db', 'create db-agents']],
    ['as they should be', { networkPolicy }, held(), []],
    ['edited by a user, or the spec changed', { networkPolicy: {} }, held(), ['patch']],
    ['not asked for any more', {}, held(), ['delete', 'delete']],
    ['never asked for', {}, { members: absent, agents: absent }, []],
    [
      'there, and of another owner',
      { networkPolicy },
      { members: { is: 'foreign', owner: 'x' }, agents: { is: 'unknown', message: '403' } },
      [],
    ],
  ])('%s', (_name, spec, policies, expected) => {
    expect(steps(spec, policies)).toEqual(expected);
  });
  test('a field that a later Kubernetes adds is left alone', () => {
    const { members, agents } = held();
    if (members.is !== 'ours') throw new Error('it is ours');
    const later = { ...members.object, spec: Object.assign({ later: 'x' }, members.object.spec) };
    expect(steps({ networkPolicy }, { members: { is: 'ours', object: later }, agents })).toEqual([]);
  });
  test('nothing is written before the cluster has its token', () => {
    expect(steps({ networkPolicy }, { members: absent, agents: absent }, {})).toEqual([]);
  });
});

test.each([
  ['that is no network', { cidr: '1::2::3/64' }],
  ['without a network that is not inside of it', { cidr: '192.0.2.0/24', except: ['198.51.100.0/25'] }],
  ['without itself', { cidr: '192.0.2.0/24', except: ['192.0.2.0/24'] }],
  ['without what is no network', { cidr: '2001:db8::/32', except: ['::::/64'] }],
])(
  'S10: a peer %s is left out and named: the API server would refuse the policy, and nothing would be limited',
  (_what, ipBlock) => {
    const spec = {
      networkPolicy: { clients: [{ ipBlock: { cidr: '203.0.113.0/24' } }, { ipBlock }], monitoring: [{ ipBlock }] },
    };
    const [members] = made(spec);
    expect(JSON.stringify(members)).not.toContain(JSON.stringify(ipBlock));
    expect(reached(made(spec))['an address outside of the cluster']).toBe('2379');
    const [condition] = ignoredConditions({ ...world([up], {}), cluster: cluster(spec) });
    expect(condition?.message).toContain('networkPolicy.clients[1] lets nothing in');
    expect(condition?.message).toContain('networkPolicy.monitoring[0] lets nothing in');
  },
);

describe('S4, S10: the first member, which may restore a snapshot, is created', () => {
  const source = { s3: { endpoint: 'https://s3.example.com', bucket: 'b', key: 'k' } };
  const settings = { ...SETTINGS, storeNetworks: ['198.51.100.0/24'] };
  const absent = { is: 'absent' } as const;
  const stepsOfPlan = (status: EtcdCluster['status'], held: HeldPolicies) => {
    const o = world([], { replicas: 3 });
    const restored = {
      ...o.cluster,
      spec: { ...o.cluster.spec, bootstrap: { restore: { source } } },
      status: status ?? {},
    };
    const images = { repository: 'quay.io/coreos/etcd', allowed: [], operator: 'operator:1' };
    const plan = decide({ ...o, images, cluster: restored, network: { settings, held } });
    const upkeep = (plan.upkeep ?? []).flatMap(({ steps }) => steps);
    const named = (steps: readonly { readonly do: string; readonly object?: unknown }[]) =>
      steps.flatMap(({ object }) => {
        const made = object as NetworkPolicy | undefined;
        return made ? [`${made.kind} ${made.metadata.name}`] : [];
      });
    return { message: plan.message, steps: named(plan.steps), upkeep: named(upkeep) };
  };
  const latched = { clusterToken: 't' };
  const both = ['NetworkPolicy db', 'NetworkPolicy db-agents'];

  test('after its NetworkPolicies, when nothing exists yet: a policy that is refused ends the sequence', () => {
    const { steps } = stepsOfPlan({}, { members: absent, agents: absent });
    const seed = steps.findIndex((step) => step.startsWith('EtcdMember'));
    expect(seed).toBeGreaterThan(0);
    expect(steps.slice(0, seed)).toEqual(expect.arrayContaining(both));
  });
  test('not while a NetworkPolicy is missing, which upkeep creates', () => {
    const { message, steps, upkeep } = stepsOfPlan(latched, { members: absent, agents: absent });
    expect([message, steps]).toEqual(['waiting for the NetworkPolicies before the first member is created', []]);
    expect(upkeep).toEqual(expect.arrayContaining(both));
  });
  test('when both exist', () => {
    const { members, agents } = networkPolicies(cluster({ bootstrap: { restore: { source } } }), settings);
    const ours = (object: NetworkPolicy | undefined) => ({ is: 'ours', object: object as NetworkPolicy }) as const;
    const { steps } = stepsOfPlan(latched, { members: ours(members), agents: ours(agents) });
    expect(steps.filter((step) => step.startsWith('EtcdMember'))).toHaveLength(1);
  });
});

test('S10: a foreign NetworkPolicy of the same name is a conflict only where one is wanted', async () => {
  const seen = async (spec: Partial<EtcdClusterSpec>) => {
    const world = modelWorld();
    await runningCluster(world, 1);
    const [found] = world.clusters.all();
    if (!found) throw new Error('there is a cluster');
    putInCache(world.clusters, { ...found, spec: { ...found.spec, ...spec } });
    await world.client.patch(world.clusters.resource, { namespace: 'ns', name: 'db' }, { spec });
    await world.client.create(policyResource, {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: { name: 'db', namespace: 'ns' },
    });
    return (await observe(world, 'ns/db', new AbortController().signal, NO_MEMORY))?.network?.held;
  };
  expect(await seen({ networkPolicy })).toMatchObject({ members: { is: 'foreign' }, agents: { is: 'absent' } });
  expect(await seen({})).toMatchObject({ members: { is: 'absent' }, agents: { is: 'absent' } });
});
