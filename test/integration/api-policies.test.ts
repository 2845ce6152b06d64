/** The chart's admission policies on a real API server: who may delete a member, which images a cluster may use, and what is risky. */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { build } from '../../local/binaries.ts';
import {
  ALLOW_DELETION_ANNOTATION,
  clusterLabels,
  etcdClusters,
  etcdMembers,
  MEMBER_UID_ANNOTATION,
  REFERENCE_LABEL,
} from '../../src/api/names.ts';
import { CONFINED } from '../../src/api/security.ts';
import { memberPod } from '../../src/controllers/member/build.ts';
import { knownIssues } from '../../src/domain/known-issues.ts';
import type { Resource } from '../../src/kube/object.ts';
import { run } from '../../tools/process.ts';
import { aMember } from '../support/builders/builders.ts';
import { APPLIED_SPECS, IGNORED_SPECS } from '../support/builders/ignored-specs.ts';
import { type Api, refusalOf, startApi, type Written, written } from '../support/servers/api-server.ts';
import { installPolicies, type Policy } from '../support/servers/policies.ts';
import { eventually } from '../support/servers/processes.ts';

const clusters: Resource<Written> = etcdClusters;
const members: Resource<Written> = etcdMembers;
const OPERATOR = 'system:serviceaccount:etcd-system:etcd-operator';
const from = (repository: string) => ({ version: '3.6.16', image: { repository } });
const spec = {
  clusterName: 'db',
  version: '3.6.16',
  storage: { size: '1Gi', medium: '' },
  initialCluster: '',
  clusterToken: 't',
};

let api: Api;
let namespace: string;
let kubectl: string;
let count = 0;

const policies: Policy[] = [];
/** The response to each request that matches a policy; undefined when it was admitted. */
const answers: { readonly resource: string; readonly refusal: string | undefined }[] = [];

const member = async (
  annotations: Readonly<Record<string, string>> = {},
  finalizers: readonly string[] = [],
): Promise<string> => {
  const object = written(members, namespace, `db-${++count}`, spec);
  await api.create(members, { ...object, metadata: { ...object.metadata, annotations, finalizers } });
  return object.metadata.name ?? '';
};
/** The API server's response to a cluster that sets an image, or has set one. */
async function refusalOfImage(asked: Promise<unknown>): Promise<string | undefined> {
  const refusal = await refusalOf(asked);
  answers.push({ resource: 'etcdclusters', refusal });
  return refusal;
}
/** The output of kubectl when this user deletes the member. */
async function deleted(name: string, user: string, ...groups: readonly string[]): Promise<string> {
  const who = [`--as=${user}`, ...['system:authenticated', ...groups].map((group) => `--as-group=${group}`)];
  const args = ['--kubeconfig', api.kubeconfig, '-n', namespace, 'delete', 'etcdmembers', name, '--wait=false'];
  const { stdout, stderr } = await run(kubectl, [...args, ...who], { allowFailure: true });
  const output = stdout + stderr;
  answers.push({ resource: 'etcdmembers', refusal: output.includes(' deleted') ? undefined : output });
  return output;
}

/** Gives a group these verbs on our kinds. A tenant has no others: "*" would include the verb "manage". */
async function grant(name: string, group: string, verbs: readonly string[]): Promise<void> {
  const apiGroup = 'rbac.authorization.k8s.io';
  const post = (plural: string, body: object) =>
    api.admin.transport.json(`/apis/${apiGroup}/v1/${plural}`, { method: 'POST', body });
  const rules = [{ apiGroups: ['etcd-operator.cozystack.io'], resources: ['*'], verbs }];
  await post('clusterroles', { apiVersion: `${apiGroup}/v1`, kind: 'ClusterRole', metadata: { name }, rules });
  await post('clusterrolebindings', {
    apiVersion: `${apiGroup}/v1`,
    kind: 'ClusterRoleBinding',
    metadata: { name },
    roleRef: { apiGroup, kind: 'ClusterRole', name },
    subjects: [{ apiGroup, kind: 'Group', name: group }],
  });
}

/** The output of kubectl when this user creates a member, or patches one. */
async function writtenBy(user: string, groups: readonly string[], patch?: object): Promise<string> {
  const who = [`--as=${user}`, ...['system:authenticated', ...groups].map((group) => `--as-group=${group}`)];
  const name = patch ? await member({}, ['example.com/held']) : `db-${++count}`;
  const input = patch ? '' : JSON.stringify(written(members, namespace, name, spec));
  const verb = patch
    ? ['patch', 'etcdmembers', name, '--type=merge', '-p', JSON.stringify(patch)]
    : ['create', '-f', '-'];
  const args = ['--kubeconfig', api.kubeconfig, '-n', namespace, ...verb, ...who];
  const { stdout, stderr } = await run(kubectl, args, { allowFailure: true, input });
  const output = stdout + stderr;
  const admitted = /(created|patched)\n/.test(output);
  answers.push({ resource: 'etcdmembers', refusal: admitted ? undefined : output });
  return admitted ? 'admitted' : output;
}

/** The output of kubectl when a cluster is created with this spec: the warnings of the API server. */
const warningsOf = async (asked: object): Promise<string> => {
  const full = { networkPolicy: {}, ...asked };
  const input = JSON.stringify(written(clusters, namespace, `warned-${++count}`, full));
  const args = ['--kubeconfig', api.kubeconfig, 'create', '--dry-run=server', '-f', '-'];
  const { stdout, stderr } = await run(kubectl, args, { input });
  expect(stdout).toContain('created');
  return stderr;
};

const MORE = 'the volume is full before etcd refuses writes';
/** The output of kubectl when a cluster is created with this volume and quota. */
const created = (size: string | number, quotaBackendBytes?: number, medium = ''): Promise<string> => {
  const options = quotaBackendBytes === undefined ? {} : { options: { quotaBackendBytes } };
  return warningsOf({ version: '3.6.16', storage: { size, medium }, ...options });
};

beforeAll(async () => {
  const bin = await build(['kubernetes', 'helm']);
  kubectl = join(bin.kubernetes, 'kubectl');
  api = await startApi();
  namespace = await api.namespace();
  await api.create(clusters, written(clusters, namespace, 'older', from('older.example.com/etcd')));
  const values = [
    'etcdImage.allowedRepositories={mirror.example.com/*}',
    'memberDeletionProtection.additionalAllowedUsers={trusted}',
  ];
  policies.push(...(await installPolicies(api, join(bin.helm, 'helm'), values)));
  await grant('tenants', 'system:authenticated', ['get', 'list', 'create', 'update', 'patch', 'delete']);
  await grant('migration', 'system:migrators', ['manage']);
  const probe = written(clusters, namespace, 'probe', from('x.example.com/etcd'));
  await eventually('the image policy', async () => (await refusalOf(api.create(clusters, probe, true))) ?? undefined);
  await eventually('the quota policy', async () => ((await created('1Gi', 2 ** 31)).includes(MORE) ? true : undefined));
  await eventually('the warnings', async () =>
    (await warningsOf({ version: '3.6.16', replicas: 2 })).includes('an even number') ? true : undefined,
  );
  await eventually('the policy of writes', async () =>
    (await writtenBy('alice', [])).includes('verb manage') ? true : undefined,
  );
  const name = await member();
  await eventually('the deletion policy', async () =>
    (await deleted(name, 'alice')).includes('allow-deletion') ? true : undefined,
  );
});
afterAll(async () => {
  await api?.stop();
});

describe('deleting an EtcdMember', () => {
  test('is refused to a user, with what to do instead', async () => {
    const name = await member();
    expect(await deleted(name, 'alice')).toContain(
      `deleting EtcdMember ${name} would delete its data: to have fewer members, lower replicas of EtcdCluster db`,
    );
  });
  test('is refused to an administrator as well', async () => {
    expect(await deleted(await member(), 'root', 'system:masters')).toContain('allow-deletion=true first');
  });
  test('is refused when the annotation is false', async () => {
    expect(await deleted(await member({ [ALLOW_DELETION_ANNOTATION]: 'false' }), 'alice')).toContain(
      'would delete its data',
    );
  });
  test.each([
    ['the operator', OPERATOR, []],
    [
      'the garbage collector',
      'system:serviceaccount:kube-system:generic-garbage-collector',
      ['system:serviceaccounts:kube-system'],
    ],
    [
      'the namespace controller',
      'system:serviceaccount:kube-system:namespace-controller',
      ['system:serviceaccounts:kube-system'],
    ],
    ['a controller manager without accounts', 'system:kube-controller-manager', []],
    ['a user that the administrator named', 'trusted', []],
  ])('is allowed to %s', async (_who, user, groups) => {
    expect(await deleted(await member(), user, ...groups)).toContain('deleted');
  });
  test('is admitted when the deletion is in progress already', async () => {
    const name = await member({}, ['example.com/held']);
    expect(await deleted(name, OPERATOR)).toContain('deleted');
    expect(await deleted(name, 'alice')).toContain('deleted');
  });
  test('is allowed to a user who has set the annotation', async () => {
    expect(await deleted(await member({ [ALLOW_DELETION_ANNOTATION]: 'true' }), 'alice')).toContain('deleted');
  });
});

describe('S3: writing an EtcdMember, which becomes a Pod with the flags and Secrets that it names', () => {
  const GARBAGE_COLLECTOR = 'system:serviceaccount:kube-system:generic-garbage-collector';
  const secret = { spec: { tls: { peerSecretRef: { name: 'of-another-application' } } } };
  test('is refused to a tenant, with what to do instead', async () => {
    const refusal = await writtenBy('alice', []);
    expect(refusal).toContain('EtcdMembers are written by the operator: to change the members, edit EtcdCluster db');
    expect(refusal).toContain('needs the verb manage on etcdmembers');
  });
  test('is refused to a tenant who edits the spec', async () => {
    expect(await writtenBy('alice', [], secret)).toContain('EtcdMembers are written by the operator');
  });
  test.each([
    ['the operator', OPERATOR, []],
    ['the garbage collector', GARBAGE_COLLECTOR, ['system:serviceaccounts:kube-system']],
    ['a user with the verb manage', 'migrator', ['system:migrators']],
    ['an administrator', 'root', ['system:masters']],
  ])('is admitted for %s', async (_who, user, groups) => {
    expect(await writtenBy(user, groups)).toBe('admitted');
    expect(await writtenBy(user, groups, secret)).toBe('admitted');
  });
  test.each([
    ['labels', { metadata: { labels: { team: 'storage' } } }],
    ['finalizers, which rescues a stuck namespace', { metadata: { finalizers: null } }],
  ])('is admitted for a tenant who edits only %s', async (_what, patch) => {
    expect(await writtenBy('alice', [], patch)).toBe('admitted');
  });
});

describe('S8, S14: with the token of the operator', () => {
  const metadata = { name: 'x', namespace: 'free' };
  const secretOf = (type: string, annotations = {}) => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { ...metadata, annotations },
    type,
    ...(type === 'kubernetes.io/tls' && { data: { 'tls.crt': '', 'tls.key': '' } }),
  });
  const policyOf = (labels: Readonly<Record<string, string>>) => ({
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { ...metadata, labels },
    spec: { podSelector: {} },
  });
  const tokenOf = secretOf('kubernetes.io/service-account-token', { 'kubernetes.io/service-account.name': 'default' });
  const member = memberPod(aMember(), {
    imageRepository: 'quay.io/coreos/etcd',
    initialState: 'cluster',
    votes: true,
    hasCompany: false,
  });
  const podOf = (change: object) => {
    const { ownerReferences: _, ...own } = member.metadata;
    return { ...member, metadata: { ...own, ...metadata }, spec: { ...member.spec, ...change } };
  };
  const jobOf = (change: object) => ({
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata,
    spec: { template: { spec: { ...member.spec, restartPolicy: 'Never', ...change } } },
  });
  const [etcd] = member.spec?.containers ?? [];
  const hostPath = [{ name: 'data', hostPath: { path: '/' } }];
  const token = [{ name: 'data', projected: { sources: [{ serviceAccountToken: { path: 'token' } }] } }];
  /** The output of kubectl when this user creates the object. */
  const createdBy = async (user: string, object: object): Promise<string> => {
    const args = ['--kubeconfig', api.kubeconfig, 'create', '--dry-run=server', '-f', '-'];
    const who = [`--as=${user}`, '--as-group=system:masters'];
    const { stdout, stderr } = await run(kubectl, [...args, ...who], {
      allowFailure: true,
      input: JSON.stringify(object),
    });
    const refusal = stdout.includes('created') ? undefined : stdout + stderr;
    const resource = (object as { readonly kind: string }).kind === 'Service' ? 'services' : 'secrets';
    if (user === OPERATOR) answers.push({ resource, refusal });
    return refusal ?? 'created';
  };
  const inContainer = (change: object) => podOf({ containers: [{ ...etcd, ...change }] });
  const secured = (change: object) => inContainer({ securityContext: { ...CONFINED, ...change } });
  const projected = (audience: string) =>
    podOf({
      volumes: [{ name: 'data', projected: { sources: [{ serviceAccountToken: { path: 'token', audience } }] } }],
      serviceAccountName: 'default',
    });
  const serviceOf = (change: object) => ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { ...metadata, labels: clusterLabels('db') },
    spec: { ports: [{ port: 2379 }], ...change },
  });
  beforeAll(async () => {
    const body = { metadata: { name: 'free' } }; // without the restricted level, which would refuse most of it as well
    await api.admin.transport.json('/api/v1/namespaces', { method: 'POST', body });
    const account = { metadata: { name: 'default', namespace: 'free' } };
    const path = '/api/v1/namespaces/free/serviceaccounts';
    await api.admin.transport.json(path, { method: 'POST', body: account });
    await eventually('the policy of the operator', async () =>
      (await createdBy(OPERATOR, tokenOf)).includes('writes no Secret') ? true : undefined,
    );
  });

  test.each<[string, object]>([
    ['the Pod of a member', podOf({})],
    ['a Job', jobOf({})],
    ['a Secret with a certificate', secretOf('kubernetes.io/tls')],
    ['a Secret with a CA bundle', secretOf('Opaque')],
    ['a NetworkPolicy of a cluster', policyOf(clusterLabels('db'))],
    ['a headless Service', serviceOf({ clusterIP: 'None' })],
    ['a Pod to which a webhook has added a token for its cloud', projected('sts.amazonaws.com')],
    ['a Pod whose user OpenShift has stated', secured({ runAsUser: 1_000_680_000, runAsNonRoot: true })],
  ])('%s is created', async (_what, object) => {
    expect(await createdBy(OPERATOR, object)).toBe('created');
  });
  test.each<[string, object, string]>([
    ['the token Secret of another account', tokenOf, 'the operator writes no Secret of type kubernetes.io/service'],
    ['a Pod in the network of its node', podOf({ hostNetwork: true }), 'no Pod with access to its node'],
    ['a Pod with a folder of its node', podOf({ volumes: hostPath }), 'no Pod with access to its node'],
    ['a Pod with a token', podOf({ automountServiceAccountToken: true }), 'the token of a ServiceAccount'],
    [
      'a Pod with a projected token',
      podOf({ volumes: token, serviceAccountName: 'default' }),
      'the token of a ServiceAccount',
    ],
    ['a Job with a token', jobOf({ automountServiceAccountToken: true }), 'the token of a ServiceAccount'],
    ['a Pod that may be root', podOf({ securityContext: {} }), 'of the restricted Pod Security level'],
    [
      'a container that may gain privileges',
      podOf({ containers: [{ ...etcd, securityContext: { ...CONFINED, allowPrivilegeEscalation: true } }] }),
      'of the restricted Pod Security level',
    ],
    [
      'a container with a capability',
      podOf({
        containers: [{ ...etcd, securityContext: { ...CONFINED, capabilities: { drop: ['ALL'], add: ['NET_RAW'] } } }],
      }),
      'of the restricted Pod Security level',
    ],
    [
      'a container that is root, whatever its Pod states',
      secured({ runAsUser: 0 }),
      'of the restricted Pod Security level',
    ],
    ['a container that may be root', secured({ runAsNonRoot: false }), 'of the restricted Pod Security level'],
    [
      'a container without a seccomp profile',
      secured({ seccompProfile: { type: 'Unconfined' } }),
      'of the restricted Pod Security level',
    ],
    [
      'a container with an SELinux type of its own',
      secured({ seLinuxOptions: { type: 'spc_t' } }),
      'of the restricted Pod Security level',
    ],
    [
      'a container with a port of its node',
      inContainer({ ports: [{ containerPort: 2379, hostPort: 2379 }] }),
      'no Pod with access to its node',
    ],
    [
      'a Pod with a volume of a CSI driver, which may give it Secrets of others',
      podOf({ volumes: [{ name: 'data', csi: { driver: 'secrets-store.csi.k8s.io' } }] }),
      'no Pod with access to its node',
    ],
    [
      'a Pod with a token for the API server under one of its names',
      projected('https://kubernetes.default.svc'),
      'the token of a ServiceAccount',
    ],
    [
      'a Service with an address of another host',
      serviceOf({ externalIPs: ['192.0.2.1'] }),
      'only Services of type ClusterIP',
    ],
    [
      'a Service that leads to another host',
      serviceOf({ type: 'ExternalName', externalName: 'evil.example.com' }),
      'only Services of type ClusterIP',
    ],
    ['a NetworkPolicy that lets everything in', policyOf({}), 'only NetworkPolicies that it has created'],
    ['a Job with another account', jobOf({ serviceAccountName: 'admin' }), 'no Pod with a ServiceAccount of others'],
  ])('%s is refused', async (_what, object, refusal) => {
    expect(await createdBy(OPERATOR, object)).toContain(refusal);
  });
  test.each([
    ['of another application is not deleted', {}, 'only NetworkPolicies that it has created'],
    ['of a cluster is deleted', clusterLabels('db'), 'deleted'],
  ])('a NetworkPolicy %s', async (_which, labels, expected) => {
    const path = '/apis/networking.k8s.io/v1/namespaces/free/networkpolicies';
    const body = { ...policyOf(labels), metadata: { ...policyOf(labels).metadata, name: `p-${++count}` } };
    await api.admin.transport.json(path, { method: 'POST', body });
    const who = [`--as=${OPERATOR}`, '--as-group=system:masters'];
    const args = ['--kubeconfig', api.kubeconfig, '-n', 'free', 'delete', 'networkpolicies', `p-${count}`, ...who];
    const { stdout, stderr } = await run(kubectl, args, { allowFailure: true });
    expect(stdout + stderr).toContain(expected);
  });
  const volume = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } };
  const budget = { minAvailable: 1, selector: { matchLabels: { app: 'x' } } };
  const kinds: readonly (readonly [plural: string, path: string, kind: string, content: object])[] = [
    ['secrets', '/api/v1', 'Secret', { data: {} }],
    ['persistentvolumeclaims', '/api/v1', 'PersistentVolumeClaim', { spec: volume }],
    ['services', '/api/v1', 'Service', { spec: { type: 'LoadBalancer', ports: [{ port: 1 }] } }],
    ['poddisruptionbudgets', '/apis/policy/v1', 'PodDisruptionBudget', { spec: budget }],
    ['pods', '/api/v1', 'Pod', { spec: member.spec }],
  ];
  /** One that exists: the garbage collector deletes what it owns otherwise. */
  let owner: object;
  beforeAll(async () => {
    const {
      apiVersion,
      kind,
      metadata: of,
    } = await api.create(clusters, written(clusters, 'free', 'db', { version: '3.6.16' }));
    owner = { apiVersion, kind, name: of.name, uid: of.uid };
  });
  test.each(kinds.flatMap((each) => ['patch', 'delete'].map((verb) => [verb, ...each] as const)))(
    '%s of %s: only where they belong to a cluster',
    async (verb, plural, path, kind, content) => {
      const attempt = async (own: object): Promise<string> => {
        const name = `own-${++count}`;
        const body = {
          kind,
          apiVersion: path.replace(/^.*apis?[/]/, ''),
          metadata: { name, namespace: 'free', ...own },
          ...content,
        };
        await api.admin.transport.json(`${path}/namespaces/free/${plural}`, { method: 'POST', body });
        const change = verb === 'patch' ? ['--type=merge', '-p', '{"metadata":{"labels":{"team":"a"}}}'] : [];
        const who = [`--as=${OPERATOR}`, '--as-group=system:masters', '--dry-run=server'];
        const args = ['--kubeconfig', api.kubeconfig, '-n', 'free', verb, plural, name, ...change, ...who];
        const { stdout, stderr } = await run(kubectl, args, { allowFailure: true });
        const refusal = /(patched|deleted)/.test(stdout) ? undefined : stdout + stderr;
        answers.push({ resource: 'services', refusal });
        return refusal ?? 'admitted';
      };
      const refused = 'the operator changes and deletes only objects of its clusters';
      expect(await attempt({})).toContain(refused);
      expect(
        await attempt({ labels: { [REFERENCE_LABEL]: 'true', 'app.kubernetes.io/managed-by': 'Helm' } }),
      ).toContain(refused);
      expect(await attempt({ labels: clusterLabels('db') })).toBe('admitted');
      expect(await attempt({ annotations: { [MEMBER_UID_ANNOTATION]: 'u' } })).toBe('admitted');
      expect(await attempt({ ownerReferences: [owner] })).toBe('admitted');
    },
  );
  test('what other users create is not affected', async () => {
    expect(await createdBy('alice', tokenOf)).toBe('created');
  });
});

describe('an image repository', () => {
  test.each([
    ['the configured one', 'quay.io/coreos/etcd', undefined],
    ['one on the list', 'mirror.example.com/any/etcd', undefined],
    [
      'another',
      'evil.example.com/etcd',
      'image.repository evil.example.com/etcd is not allowed by the administrator: use one of quay.io/coreos/etcd, mirror.example.com/*',
    ],
    ['one that begins like one on the list', 'mirror.example.com.evil.io/etcd', 'is not allowed by the administrator'],
  ])('%s', async (_what, repository, refused) => {
    const object = written(clusters, namespace, `image-${++count}`, from(repository));
    const refusal = await refusalOfImage(api.create(clusters, object, true));
    if (refused === undefined) expect(refusal).toBeUndefined();
    else expect(refusal).toContain(refused);
  });
  test('that was set before the list was narrowed does not block other edits of a cluster', async () => {
    const older = await api.admin.get(clusters, { namespace, name: 'older' });
    if (!older) throw new Error('the cluster is deleted');
    const edited = (change: object) => api.replace(clusters, { ...older, spec: { ...older.spec, ...change } }, true);
    expect(await refusalOfImage(edited({ replicas: 5 }))).toBeUndefined();
    expect(await refusalOfImage(edited(from('other.example.com/etcd')))).toContain(
      'is not allowed by the administrator',
    );
  });
  test('that is not set is not checked', async () => {
    const object = written(clusters, namespace, `image-${++count}`, { version: '3.6.16' });
    expect(await refusalOf(api.create(clusters, object, true))).toBeUndefined();
  });
});

describe('a quota', () => {
  test.each([
    ['above the volume', '1Gi', 1073741825, 'options.quotaBackendBytes is 1073741825, more than storage.size 1Gi'],
    ['above a volume of a fraction', '1.5Gi', 1610612737, 'more than storage.size 1.5Gi'],
    ['above a volume given as a number', 1073741824, 1073741825, 'more than storage.size 1073741824'],
    ['above the memory', '256Mi', 2147483648, 'more than storage.size 256Mi', 'Memory'],
    [
      'that is the largest',
      '9007199254740990999m',
      Number.MAX_SAFE_INTEGER,
      'more than storage.size 9007199254740990999m',
    ],
  ])('%s is accepted with a warning', async (_what, size, quota, expected, medium?: string) => {
    const warning = await created(size, quota, medium);
    expect(warning).toContain(expected);
    expect(warning).toContain(MORE);
  });
  test.each([
    ['of exactly the volume', '8Gi', 8589934592],
    ["of etcd's own", '1Gi', 0],
    ['that is not stated', '1Gi', undefined],
  ])('%s is accepted without one', async (_what, size, quota) => {
    expect(await created(size, quota)).not.toContain(MORE);
  });
  test('leads to a warning for an edit of another field as well', async () => {
    const name = `quota-${++count}`;
    const greedy = {
      version: '3.6.16',
      storage: { size: '1Gi', medium: '' },
      options: { quotaBackendBytes: 2147483648 },
    };
    await api.create(clusters, written(clusters, namespace, name, greedy));
    const args = ['--kubeconfig', api.kubeconfig, '-n', namespace, 'patch', 'etcdcluster', name, '--type=merge'];
    const { stdout, stderr } = await run(kubectl, [...args, '-p', '{"spec":{"replicas":5}}']);
    expect([stdout, stderr]).toEqual([expect.stringContaining('patched'), expect.stringContaining(MORE)]);
  });
  test('is never refused, not even when the policy cannot be evaluated', () => {
    const quota = policies.filter(({ spec: { validations } }) =>
      validations[0]?.expression.includes('quotaBackendBytes'),
    );
    expect(quota.map(({ spec: { failurePolicy } }) => failurePolicy)).toEqual(['Ignore']);
  });
});

test('every policy has a request that it refuses with its own message, and one that it admits', () => {
  const refusing = policies.filter(({ spec: { failurePolicy } }) => failurePolicy === 'Fail');
  const all = refusing.flatMap(({ spec: { matchConstraints, validations } }) =>
    validations.map(({ message, messageExpression = '' }) => ({
      resource: matchConstraints.resourceRules[0]?.resources[0],
      sentence: message ? [message] : (messageExpression.match(/'[^']{10,}'/g) ?? []).map((part) => part.slice(1, -1)),
    })),
  );
  expect(all).toHaveLength(10);
  for (const { resource, sentence } of all) {
    const asked = answers.filter((answer) => answer.resource === resource);
    expect(sentence).not.toEqual([]);
    expect(asked.map(({ refusal }) => refusal)).toContain(undefined);
    expect(asked.some(({ refusal }) => sentence.every((part) => refusal?.includes(part)))).toBe(true);
  }
});

describe('a field that has no effect', () => {
  test.each(IGNORED_SPECS)('is accepted with a warning that names it: %s', async (field, spec) => {
    expect(await warningsOf(spec)).toContain(`${field} has no effect: `);
  });
  test.each(APPLIED_SPECS)('is not claimed of %s', async (_what, spec) => {
    expect(await warningsOf(spec)).toBe('');
  });
});

describe('S10: etcd that is plain and open', () => {
  const networkPolicy = undefined;
  const OPEN = 'etcd serves plain HTTP to everything in the Pod network';
  test('is accepted with a warning', async () => {
    expect(await warningsOf({ version: '3.6.16', networkPolicy })).toContain(OPEN);
    expect(await warningsOf({ version: '3.6.16', networkPolicy, tls: { peer: { managed: {} } } })).toContain(OPEN);
  });
  test('is not claimed of a cluster with TLS for clients', async () => {
    expect(await warningsOf({ version: '3.6.16', networkPolicy, tls: { client: { managed: {} } } })).toBe('');
  });
});

describe('a number of members', () => {
  test.each([2, 4])('that is even is accepted with a warning: %i', async (replicas) => {
    expect(await warningsOf({ version: '3.6.16', replicas })).toContain(
      `replicas is ${replicas}: an even number of members tolerates no more failures than ${replicas - 1}`,
    );
  });
  test.each([0, 1, 3, 5])('that is odd, or pauses the cluster, is not warned about: %i', async (replicas) => {
    expect(await warningsOf({ version: '3.6.16', replicas })).toBe('');
  });
});

describe('a version of etcd', () => {
  test.each(['3.4.30', '3.5.2', '3.5.5', '3.5.16', '3.5.22', '3.6.4', '3.6.10', '3.7.0'])(
    'with known issues is accepted with one warning for each: %s',
    async (version) => {
      const warnings = await warningsOf({ version });
      expect(warnings.split('this version of etcd has a known issue').length - 1).toBe(knownIssues(version).length);
      for (const { bug, fixed } of knownIssues(version)) expect(warnings).toContain(`${bug} (fixed in ${fixed})`);
    },
  );
  test.each(['3.5.33', '3.6.14', '3.7.1'])('without any is not warned about: %s', async (version) => {
    expect(await warningsOf({ version })).toBe('');
  });
});
