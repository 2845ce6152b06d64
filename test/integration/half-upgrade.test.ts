/** "helm upgrade" from the Go operator's chart, broken at every step: some operator may act at every moment. Helm and the API server are real. */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { build } from '../../local/binaries.ts';
import { LEASE_NAME } from '../../src/api/names.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { clusterRoleBindings, clusterRoles, leases, roleBindings, roles } from '../../src/kube/resources.ts';
import { chartDir, root } from '../../tools/paths.ts';
import { type Finished, run } from '../../tools/process.ts';
import { startFaultProxy } from '../support/faults/proxy.ts';
import { writeKubeconfig } from '../support/servers/control-plane.ts';
import { type Child, eventually, pause } from '../support/servers/processes.ts';
import { startWorld, type World } from '../support/servers/world.ts';

const GO_CHART = join(root, 'test', 'support', 'journeys', 'go-chart');
const EXTRA = 'old-etcd-operator-go-operator';
const TIMEOUT = 120_000;

let world: World;
let helm: string;
let folder: string;
beforeAll(async () => {
  helm = join((await build(['helm'])).helm, 'helm');
  folder = mkdtempSync(join(tmpdir(), 'etcd-operator-helm-'));
  world = await startWorld();
}, 600_000);
afterAll(async () => {
  await world?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** What the Go operator does with its permissions: renew its Lease, write its objects, read Secrets and logs. */
const NEEDED: readonly (readonly [string, string, string])[] = [
  ['update', 'coordination.k8s.io', 'leases'],
  ['create', '', 'events'],
  ['list', '', 'secrets'],
  ['get', '', 'pods/log'],
  ['update', '', 'services'],
  ['delete', 'batch', 'jobs'],
  ['update', 'etcd-operator.cozystack.io', 'etcdmembers'],
  ['update', 'etcd-operator.cozystack.io', 'etcdclusters/status'],
  ['update', 'etcd-operator.cozystack.io', 'etcdmembers/status'],
  ['update', 'policy', 'poddisruptionbudgets'],
];

/** The permissions that the operator's account lacks of these. */
async function lacking(namespace: string, needed = NEEDED): Promise<readonly string[]> {
  const user = `system:serviceaccount:${namespace}:old-etcd-operator`;
  const answers = await Promise.all(
    needed.map(async ([verb, group, path]) => {
      const [resource, subresource] = path.split('/');
      const resourceAttributes = { namespace, verb, group, resource, ...(subresource && { subresource }) };
      const body = { spec: { user, groups: ['system:serviceaccounts'], resourceAttributes } };
      const { status } = await world.admin.transport.json<{ readonly status: { readonly allowed: boolean } }>(
        '/apis/authorization.k8s.io/v1/subjectaccessreviews',
        { method: 'POST', body },
      );
      return status.allowed ? [] : [`${verb} ${path}`];
    }),
  );
  return answers.flat();
}

type Args = readonly string[];
const withKubeconfig = (kubeconfig: string, args: Args): Promise<Finished> =>
  run(helm, [...args, '--kubeconfig', kubeconfig], { allowFailure: true });
const asAdmin = (args: Args): Promise<Finished> => withKubeconfig(world.apiServer.kubeconfig, args);

/** The garbage collector deletes what is left: the next test has cluster-scoped objects of the same names. */
const removeRelease = async (namespace: string): Promise<void> => {
  await asAdmin(['uninstall', 'old', '--namespace', namespace]);
  await gone(namespace);
};

/** A release of the stand-in of the Go operator's chart, with the command of the Go operator. */
async function goRelease(): Promise<string> {
  const namespace = `ops-${randomUUID().slice(0, 8)}`;
  await world.admin.transport.json('/api/v1/namespaces', { method: 'POST', body: { metadata: { name: namespace } } });
  const values = ['--set', 'image=ghcr.io/cozystack/etcd-operator:v0.5.5', '--set', 'command={/manager}'];
  onTestFinished(() => removeRelease(namespace));
  const { code, stderr } = await asAdmin(['install', 'old', GO_CHART, '--namespace', namespace, ...values]);
  expect(stderr).toBe('');
  expect(code).toBe(0);
  expect(await lacking(namespace)).toEqual([]);
  return namespace;
}
const upgrade = (namespace: string, ...values: readonly string[]): Args => [
  'upgrade',
  'old',
  chartDir,
  '--namespace',
  namespace,
  ...['image.tag=', 'crds.enabled=false', ...values].flatMap((value) => ['--set', value]),
];

const refs = (namespace: string) =>
  [
    [clusterRoles, ''],
    [clusterRoleBindings, ''],
    [roles, namespace],
    [roleBindings, namespace],
  ] as const;
async function extras(namespace: string): Promise<readonly string[]> {
  const found = await Promise.all(
    refs(namespace).map(async ([kind, of]) => {
      const object: KubeObject | undefined = await world.admin.get(kind, { namespace: of, name: EXTRA });
      return object && kind.kind;
    }),
  );
  return found.filter((kind) => kind !== undefined);
}
const ALL = ['ClusterRole', 'ClusterRoleBinding', 'Role', 'RoleBinding'];

/** The operator as it runs in the Pod of the release: with the account, and so the permissions, that Helm has created. */
async function startAsReleased(namespace: string, ...flags: readonly string[]): Promise<Child> {
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/old-etcd-operator/token`;
  const { status } = await world.admin.transport.json<{ readonly status: { readonly token: string } }>(path, {
    method: 'POST',
    body: { spec: { expirationSeconds: 3_600 } },
  });
  const { server, ca = '' } = await world.admin.transport.identity();
  const kubeconfig = writeKubeconfig(folder, namespace, server, ca, status.token);
  const operator = world.startOperator(
    `--kubeconfig=${kubeconfig}`,
    '--leader-elect',
    `--namespace=${namespace}`,
    `--obsolete-permissions=${EXTRA}`,
    ...flags,
  );
  onTestFinished(({ task }) => {
    if (task.result?.state === 'fail') process.stderr.write(operator.log().slice(-5_000));
    return operator.stop('SIGKILL');
  });
  return operator;
}
const operatorEnvironment = async (namespace: string): Promise<string> => {
  const path = `/apis/apps/v1/namespaces/${namespace}/deployments/old-etcd-operator`;
  return JSON.stringify(await world.admin.transport.json<unknown>(path));
};
const gone = (namespace: string): Promise<unknown> =>
  eventually('the permissions to be deleted', async () => ((await extras(namespace)).length === 0 ? true : undefined), {
    timeoutMs: 40_000,
  });

test(
  'before each request of an upgrade and after the last one, the Go operator has all its permissions',
  async () => {
    const namespace = await goRelease();
    const proxy = await startFaultProxy(await world.admin.transport.identity());
    onTestFinished(() => proxy.close());
    const { server, ca = '', token = '' } = proxy.identity;
    const gaps: string[] = [];
    let writes = 0;
    const run = async (): Promise<void> => {
      writes += 1;
      for (const missing of await lacking(namespace)) gaps.push(`before write ${writes}: ${missing}`);
    };
    proxy.fault({ write: true }, { do: 'first', run });
    const { stderr, code } = await withKubeconfig(
      writeKubeconfig(folder, 'helm', server, ca, token),
      upgrade(namespace),
    );
    expect([stderr, code]).toEqual(['', 0]);
    expect(gaps).toEqual([]);
    expect(writes).toBeGreaterThan(20);
    expect(await lacking(namespace)).toEqual([]);
    expect(await extras(namespace)).toEqual(ALL);
  },
  TIMEOUT,
);

test(
  'they are deleted once this operator holds the Lease, and not while the Go operator does',
  async () => {
    const namespace = await goRelease();
    const upgraded = await asAdmin(upgrade(namespace));
    expect([upgraded.stderr, upgraded.code]).toEqual(['', 0]);
    expect(await operatorEnvironment(namespace)).toContain(`"OBSOLETE_PERMISSIONS","value":"${EXTRA}"`);
    const renewTime = () => new Date().toISOString().replace(/Z$/, '000Z');
    const spec = { holderIdentity: 'go', leaseDurationSeconds: 15, acquireTime: renewTime(), renewTime: renewTime() };
    const metadata = { name: LEASE_NAME, namespace };
    await world.admin.create(leases, { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec });
    const operator = await startAsReleased(namespace);
    await eventually('it waits', () => Promise.resolve(operator.log().includes('waiting for the lease') || undefined), {
      timeoutMs: 30_000,
    });
    await pause(3_000);
    expect(await extras(namespace)).toEqual(ALL);
    expect(await lacking(namespace)).toEqual([]);

    await gone(namespace); // the Lease has expired
    expect(await lacking(namespace)).toEqual(expect.arrayContaining(['list secrets', 'update leases']));
    // The next upgrade has nothing left of it.
    expect((await asAdmin(upgrade(namespace))).code).toBe(0);
    expect(await operatorEnvironment(namespace)).not.toContain('OBSOLETE_PERMISSIONS');
    expect(await extras(namespace)).toEqual([]);
  },
  TIMEOUT,
);

test(
  'an upgrade that is tried again keeps them, a rollback gives the roles back, and an uninstallation deletes them',
  async () => {
    const namespace = await goRelease();
    expect((await asAdmin(upgrade(namespace, 'image.repository=registry.invalid/x'))).code).toBe(0);
    expect((await asAdmin(upgrade(namespace))).code).toBe(0);
    expect(await extras(namespace)).toEqual(ALL);
    expect(await lacking(namespace)).toEqual([]);
    expect(await operatorEnvironment(namespace)).toContain('OBSOLETE_PERMISSIONS');

    const { code, stderr } = await asAdmin(['rollback', 'old', '1', '--namespace', namespace]);
    expect([stderr, code]).toEqual(['', 0]);
    expect(await operatorEnvironment(namespace)).toContain('ghcr.io/cozystack/etcd-operator:v0.5.5');
    const path = '/apis/rbac.authorization.k8s.io/v1/clusterroles/old-etcd-operator-manager-role';
    expect(JSON.stringify(await world.admin.transport.json<unknown>(path))).toContain('pods/log');
    await removeRelease(namespace);
  },
  TIMEOUT,
);

test(
  'a release that has no ClusterRole deletes them as well',
  async () => {
    const namespace = await goRelease();
    const values = [
      `manager.watchNamespaces={${namespace}}`,
      'manager.namespaced=true',
      'manager.clusterRole=false',
      'kubeRbacProxy.enabled=false',
    ];
    expect((await asAdmin(upgrade(namespace, ...values))).code).toBe(0);
    expect(await lacking(namespace)).toEqual([]);
    const own = [`--watch-namespace=${namespace}`, '--cluster-scoped=false'];
    await startAsReleased(namespace, ...own);
    await gone(namespace);
  },
  TIMEOUT,
);

test(
  'without them, as it was before: the upgrade itself takes the Lease from the Go operator',
  async () => {
    const namespace = await goRelease();
    expect((await asAdmin(upgrade(namespace, 'takeOver.keepPermissions=false'))).code).toBe(0);
    expect(await extras(namespace)).toEqual([]);
    expect(await lacking(namespace)).toEqual(expect.arrayContaining(['update leases', 'list secrets']));
  },
  TIMEOUT,
);
