/** The chart's admission policies on a real API server: who may delete a member, and which images a cluster may name. */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { build } from '../../local/binaries.ts';
import { ALLOW_DELETION_ANNOTATION, etcdClusters, etcdMembers } from '../../src/api/names.ts';
import type { Resource } from '../../src/kube/object.ts';
import { chartDir } from '../../tools/paths.ts';
import { run } from '../../tools/process.ts';
import { type Api, refusalOf, startApi, type Written, written } from '../support/api-server.ts';
import { eventually } from '../support/processes.ts';

const clusters: Resource<Written> = etcdClusters;
const members: Resource<Written> = etcdMembers;
const OPERATOR = 'system:serviceaccount:etcd-system:etcd-operator';
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

const member = async (annotations: Readonly<Record<string, string>> = {}): Promise<string> => {
  const object = written(members, namespace, `db-${++count}`, spec);
  await api.create(members, { ...object, metadata: { ...object.metadata, annotations } });
  return object.metadata.name ?? '';
};
/** What kubectl says when this user deletes the member. */
async function deleted(name: string, user: string, ...groups: readonly string[]): Promise<string> {
  const who = [`--as=${user}`, ...['system:authenticated', ...groups].map((group) => `--as-group=${group}`)];
  const args = ['--kubeconfig', api.kubeconfig, '-n', namespace, 'delete', 'etcdmembers', name, '--wait=false'];
  const { stdout, stderr } = await run(kubectl, [...args, ...who], { allowFailure: true });
  return stdout + stderr;
}

beforeAll(async () => {
  const bin = await build(['kubernetes', 'helm']);
  kubectl = join(bin.kubernetes, 'kubectl');
  api = await startApi();
  namespace = await api.namespace();
  const values = [
    'etcdImage.allowedRepositories={mirror.example.com/*}',
    'memberDeletionProtection.additionalAllowedUsers={trusted}',
  ];
  const sets = values.flatMap((value) => ['--set', value]);
  const args = [
    'template',
    'etcd-operator',
    chartDir,
    '--namespace',
    'etcd-system',
    '--show-only',
    'templates/policies.yaml',
  ];
  const { stdout } = await run(join(bin.helm, 'helm'), [...args, ...sets]);
  for (const document of parseAllDocuments(stdout)) {
    const object = document.toJS() as { readonly kind: string };
    const plural =
      object.kind === 'ValidatingAdmissionPolicy' ? 'validatingadmissionpolicies' : 'validatingadmissionpolicybindings';
    await api.admin.transport.json(`/apis/admissionregistration.k8s.io/v1/${plural}`, { method: 'POST', body: object });
  }
  const everything = {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: 'all' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'system:authenticated' }],
  };
  await api.admin.transport.json('/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
    method: 'POST',
    body: everything,
  });
  const probe = written(clusters, namespace, 'probe', {
    version: '3.6.16',
    image: { repository: 'x.example.com/etcd' },
  });
  await eventually('the image policy', async () => (await refusalOf(api.create(clusters, probe, true))) ?? undefined);
  const name = await member();
  await eventually('the deletion policy', async () =>
    (await deleted(name, 'alice')).includes('allow-deletion') ? true : undefined,
  );
});
afterAll(async () => {
  await api?.stop();
});

describe('deleting an EtcdMember', () => {
  test('is refused to a person, with what to do instead', async () => {
    const name = await member();
    expect(await deleted(name, 'alice')).toContain(
      `deleting EtcdMember ${name} would delete its data: to have fewer members, lower replicas of EtcdCluster db`,
    );
  });
  test('is refused to an administrator as well', async () => {
    expect(await deleted(await member(), 'root', 'system:masters')).toContain('allow-deletion=true first');
  });
  test('is refused when the annotation says no', async () => {
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
  test('is allowed to a person who has said on the object that it is meant', async () => {
    expect(await deleted(await member({ [ALLOW_DELETION_ANNOTATION]: 'true' }), 'alice')).toContain('deleted');
  });
});

describe('an image repository', () => {
  test.each([
    ['the configured one', 'quay.io/coreos/etcd', undefined],
    ['one on the list', 'mirror.example.com/any/etcd', undefined],
    [
      'another',
      'evil.example.com/etcd',
      'image.repository evil.example.com/etcd is not on the list of the administrator: use one of quay.io/coreos/etcd, mirror.example.com/*',
    ],
    [
      'one that begins like one on the list',
      'mirror.example.com.evil.io/etcd',
      'is not on the list of the administrator',
    ],
  ])('%s', async (_what, repository, refused) => {
    const object = written(clusters, namespace, `image-${++count}`, { version: '3.6.16', image: { repository } });
    const said = await refusalOf(api.create(clusters, object, true));
    if (refused === undefined) expect(said).toBeUndefined();
    else expect(said).toContain(refused);
  });
  test('that is not named is nobody’s business', async () => {
    const object = written(clusters, namespace, `image-${++count}`, { version: '3.6.16' });
    expect(await refusalOf(api.create(clusters, object, true))).toBeUndefined();
  });
});
