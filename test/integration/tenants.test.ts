/** What a tenant reaches who may only write our kinds in one namespace; and that the operator needs each of its permissions, and no more. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { build } from '../../local/binaries.ts';
import {
  API_VERSION,
  etcdDefragPolicies,
  etcdDefrags,
  etcdSnapshotSchedules,
  etcdSnapshots,
  GROUP,
  memberLabels,
  REFERENCE_LABEL,
} from '../../src/api/names.ts';
import { rbac } from '../../src/bin/rbac.ts';
import type { PolicyRule } from '../../src/gen/kube.ts';
import type { KubeObject, Resource } from '../../src/kube/object.ts';
import {
  jobs,
  networkPolicies,
  persistentVolumeClaims,
  podDisruptionBudgets,
  pods,
  secrets,
  services,
} from '../../src/kube/resources.ts';
import { chartDir, root } from '../../tools/paths.ts';
import { run } from '../../tools/process.ts';
import { foundIn } from '../support/planted.ts';
import { refusalOf, type Written } from '../support/servers/api-server.ts';
import { type AuditEvent, auditEvents } from '../support/servers/audit.ts';
import { RBAC, subjects } from '../support/servers/control-plane.ts';
import { type Child, eventually } from '../support/servers/processes.ts';
import { clusters, members, startWorld, type World } from '../support/servers/world.ts';

const PATIENCE_MS = 180_000;
const timeout = 4 * PATIENCE_MS;
const PASSWORD = 'planted-Zk7-of-root';
const version = '3.6.16';
const IMAGE = '--operator-image=registry.example.com/etcd-operator:v1';

let world: World;
let operator: Child | undefined;
let helm: string;
beforeAll(async () => {
  helm = join((await build(['helm'])).helm, 'helm');
  world = await startWorld(undefined, { audit: true });
  await confineOperator();
}, 600_000);
afterAll(() => world?.stop());
afterEach((context) => {
  if (context.task.result?.state === 'fail') process.stderr.write(operator?.log().slice(-10_000) ?? '');
});

/** The chart's policies about members and the operator's account, which is called so here: what they refuse it is in the audit log. */
async function confineOperator(): Promise<void> {
  const { stdout } = await run(helm, ['template', 'x', chartDir, '--show-only', 'templates/tenancy.yaml']);
  const own = stdout.replaceAll('system:serviceaccount:default:x-etcd-operator', 'operator');
  for (const document of parseAllDocuments(own)) {
    const object = document.toJS() as KubeObject;
    const plural = `${object.kind?.toLowerCase().replace(/y$/, 'ie')}s`;
    await post(`/apis/admissionregistration.k8s.io/v1/${plural}`, object);
  }
}
const until = (namespace: string, ...wanted: readonly [type: string, status: string, reason?: string]) =>
  world.patiently(PATIENCE_MS).condition(namespace, 'db', ...wanted);
const edit = (namespace: string, spec: object) => world.admin.patch(clusters, { namespace, name: 'db' }, { spec });
const post = (path: string, body: object) => world.admin.transport.json(path, { method: 'POST', body });
const secretIn = (namespace: string, name: string, labels = {}) =>
  world.admin.create(secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace, labels },
    data: { password: Buffer.from(PASSWORD).toString('base64') },
  });
const object = (resource: Resource, namespace: string, name: string, spec: object): Written => ({
  apiVersion: API_VERSION,
  kind: resource.kind,
  metadata: { name, namespace },
  spec,
});
const createAny = (resource: Resource, body: Written) => world.admin.create(resource as Resource<Written>, body);
const made = (resource: Resource, namespace: string, spec: object) =>
  createAny(resource, object(resource, namespace, 'made', spec));
const gone = (resource: Resource, namespace: string, count = 0) =>
  eventually(
    `${count} ${resource.plural}`,
    async () => ((await world.list(resource, namespace)).length === count ? true : undefined),
    { timeoutMs: PATIENCE_MS },
  );
const remove = async (resource: Resource, namespace: string, name: string) => {
  const { metadata } = (await world.admin.get(resource, { namespace, name })) ?? {};
  await world.admin.delete(resource, { namespace, name }, { uid: metadata?.uid ?? '' });
};

/** A life of a cluster in which the operator needs most of its permissions. */
async function live(namespace: string): Promise<void> {
  await secretIn(namespace, 'root', { [REFERENCE_LABEL]: 'true' });
  await world.createCluster(namespace, 'db', {
    tls: { client: { managed: {} }, peer: { managed: {} } },
    auth: { enabled: true, rootCredentialsSecretRef: { name: 'root' } },
    networkPolicy: { clients: [{ podSelector: { matchLabels: { app: 'web' } } }] },
  });
  await until(namespace, 'AuthEnabled', 'True');
  await gone(networkPolicies, namespace, 2);
  await remove(podDisruptionBudgets, namespace, 'db');
  await gone(podDisruptionBudgets, namespace, 1);
  await edit(namespace, { additionalMetadata: { labels: { team: 'a' } }, replicas: 2, networkPolicy: {} });
  await eventually(
    'two ready members',
    async () => {
      const { status } = (await world.admin.get(clusters, { namespace, name: 'db' })) ?? {};
      return status?.readyMembers === 2 ? true : undefined;
    },
    { timeoutMs: PATIENCE_MS },
  );
  await edit(namespace, { replicas: 1, networkPolicy: null, podDisruptionBudget: { enabled: false } });
  await Promise.all([gone(networkPolicies, namespace), gone(podDisruptionBudgets, namespace)]);
  await gone(members, namespace, 1);
  await world.admin.create(persistentVolumeClaims, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'backups', namespace, labels: { [REFERENCE_LABEL]: 'true' } },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  });
  const destination = { pvc: { claimName: 'backups' } };
  const clusterRef = { name: 'db' };
  await made(etcdSnapshots, namespace, { clusterRef, destination });
  await made(etcdSnapshotSchedules, namespace, { clusterRef, destination, schedule: '0 0 1 1 *' });
  await made(etcdDefrags, namespace, { clusterRef });
  await made(etcdDefragPolicies, namespace, { clusterRef, schedule: '0 0 1 1 *' });
  await gone(jobs, namespace, 2); // the snapshot's, and the probe of the schedule
  const reported = [etcdSnapshotSchedules, etcdDefrags, etcdDefragPolicies];
  for (const resource of reported)
    await eventually(`the status of ${resource.plural}`, async () => {
      const found = await world.admin.get(resource, { namespace, name: 'made' });
      return (found as Written | undefined)?.status;
    });
  await remove(clusters, namespace, 'db');
  await gone(members, namespace);
  await gone(services, namespace);
}

/** Granted verbs that this life does not use, each with the test that does, or the reason. */
const EXPLAINED: Readonly<Record<string, string>> = {
  'nodes get': 'a node that the cache lacks: src/controllers/member/observe.test.ts',
  'persistentvolumes get': 'whether a lost node had the volume: e2e alone/node-loss',
  'certificates create': 'integration cert-manager',
  'certificates get': 'integration cert-manager',
  'certificates patch': 'integration cert-manager',
  'certificates watch': 'integration cert-manager',
  'certificaterequests get': 'integration cert-manager',
  'etcdclusters/finalizers update': 'where OwnerReferencesPermissionEnforcement is enabled',
  'etcdmembers/finalizers update': 'where OwnerReferencesPermissionEnforcement is enabled',
  'etcdsnapshots/finalizers update': 'where OwnerReferencesPermissionEnforcement is enabled',
  'etcdsnapshotschedules/finalizers update': 'where OwnerReferencesPermissionEnforcement is enabled',
  'etcddefragpolicies/finalizers update': 'where OwnerReferencesPermissionEnforcement is enabled',
  'etcddefrags create': 'a run of a policy: src/controllers/defrag-policy/decide.test.ts',
  'etcddefrags delete': 'the history of a policy: src/controllers/defrag-policy/decide.test.ts',
  'etcddefrags get': 'a run of a policy that exists already: src/controllers/defrag-policy/decide.test.ts',
  'etcdmembers manage': 'asked by the admission policy: integration api-policies',
  'etcdmembers get': 'a member with failure evidence: e2e data-loss',
  'etcdsnapshots create': 'integration schedule',
  'etcdsnapshots delete': 'integration schedule',
  'etcdsnapshots get': 'integration schedule',
  'jobs get': 'a Job that the cache lacks: integration snapshot',
  'persistentvolumeclaims patch': 'a PVC is retained or quarantined: e2e data-loss',
  'pods delete': 'a member is restarted: integration rotation',
  'secrets patch': 'a certificate is renewed: integration rotation',
  'secrets delete': 'the previous CA bundle: integration rotation',
  'events patch': 'an Event that is repeated: integration skeleton',
  'services patch': 'a Service that another client changed: integration upkeep',
};
test('each permission that this file does not use is explained by a test that exists, or by Kubernetes', () => {
  const fileOf = (text: string): string =>
    /src\/\S+/.exec(text)?.[0] ?? text.replace(/^.*\b(integration|e2e|contract) (\S+)$/, 'test/$1/$2.test.ts');
  const named = Object.values(EXPLAINED).filter((text) => !text.includes('OwnerReferencesPermissionEnforcement'));
  const files = named.map((text) => join(root, fileOf(text)));
  const isThere = (file: string) => existsSync(file) || existsSync(file.replace('/e2e/', '/e2e/alone/'));
  expect(files.filter((file) => !isThere(file))).toEqual([]);
});
/** Every watched kind is listed by API servers that cannot stream lists: contract kube-watch. */
const isListed = (grant: string): boolean => grant.endsWith(' list');

const grantsIn = (rules: readonly PolicyRule[]): readonly string[] =>
  rules.flatMap(({ resources = [], verbs }) => resources.flatMap((each) => verbs.map((verb) => `${each} ${verb}`)));
const nameOf = ({ verb, objectRef = {} }: AuditEvent): string =>
  `${objectRef.resource}${objectRef.subresource === undefined ? '' : `/${objectRef.subresource}`} ${verb}`;

function expectEachGrantIsUsed(requests: readonly AuditEvent[], rules: readonly PolicyRule[]): void {
  const used = new Set(requests.map(nameOf));
  const unused = grantsIn(rules).filter((grant) => !used.has(grant) && !isListed(grant) && !(grant in EXPLAINED));
  expect(unused, 'granted, and not used').toEqual([]);
  const refused = requests.filter(({ responseStatus }) => responseStatus?.code === 403);
  expect(refused.map((event) => `${nameOf(event)}: ${event.responseStatus?.message}`)).toEqual([]);
}

/** The command lines and environments of all processes of this world. */
const processesOfWorld = (): string =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
        return command.includes(world.folder) ? command + readFileSync(`/proc/${pid}/environ`, 'utf8') : '';
      } catch {
        return ''; // it has ended
      }
    })
    .join('\n');

describe('an operator for all namespaces', { timeout }, () => {
  beforeAll(() => {
    operator = world.startOperator(
      IMAGE,
      '--leader-elect',
      '--namespace=default',
      '--tenancy={"requireReferenceLabel":true}',
    );
  });
  afterAll(() => operator?.stop('SIGKILL'));

  test('S8: uses each permission that the chart grants, and is refused nothing; S7: no secret is in the audit log or a process', async () => {
    await live(await world.namespace());
    const audit = world.audit();
    expectEachGrantIsUsed(auditEvents(audit, 'operator'), rbac);
    expect(grantsIn(rbac)).toEqual(expect.arrayContaining(Object.keys(EXPLAINED)));
    const processes = processesOfWorld();
    expect(processes).toContain('manager.mjs');
    expect(foundIn(audit + processes, { PASSWORD })).toEqual([]);
  });

  describe('a tenant who may only write our kinds in one namespace', () => {
    let own: string;
    let other: string;
    let before: number;
    const create = (namespace: string, name: string, spec: object, resource: Resource = clusters) =>
      refusalOf(world.tenant.create(resource, object(resource, namespace, name, spec)));
    beforeAll(async () => {
      [own, other] = [await world.namespace(), await world.namespace()];
      const rules = [
        {
          apiGroups: [GROUP],
          resources: ['etcdclusters', 'etcdsnapshots', 'etcdsnapshotschedules', 'etcddefrags', 'etcddefragpolicies'],
          verbs: ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete'],
        },
      ];
      const metadata = { name: 'tenant' };
      const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'tenant' };
      await post(`${RBAC}/namespaces/${own}/roles`, { metadata, rules });
      const who = subjects.map((subject) => ({ ...subject, name: 'tenant' }));
      await post(`${RBAC}/namespaces/${own}/rolebindings`, { metadata, roleRef, subjects: who });
      await secretIn(own, 'of-another-application');
      await secretIn(other, 'root');
      await eventually('the role of the tenant', async () =>
        (await refusalOf(world.tenant.get(clusters, { namespace: own, name: 'x' }))) === undefined ? true : undefined,
      );
      before = auditEvents(world.audit(), 'operator').length;
    });

    test.each<[string, () => Promise<string | undefined>]>([
      ['S1: a cluster in another namespace', () => create(other, 'db', { version })],
      ['S1: a snapshot in another namespace', () => create(other, 'x', {}, etcdSnapshots)],
      ['S1: a Secret', () => refusalOf(world.tenant.get(secrets, { namespace: own, name: 'of-another-application' }))],
      ['S3: an EtcdMember', () => create(own, 'x', { clusterName: 'db' }, members)],
      [
        'S8: the status, which the operator believes',
        () =>
          refusalOf(
            world.tenant.patch(clusters, { namespace: own, name: 'x' }, { status: {} }, { subresource: 'status' }),
          ),
      ],
    ])('may not reach %s', async (_what, attempt) => {
      expect(await attempt()).toContain('forbidden');
    });

    test.each([
      ['../other/root', 'S1: a path as a name'],
      ['root%2f..', 'S1: an escaped path as a name'],
    ])('cannot write %s: %s', async (name) => {
      const auth = { enabled: true, rootCredentialsSecretRef: { name } };
      const refusal = await create(own, 'path', { version, tls: { client: { managed: {} } }, auth });
      expect(refusal).toContain('rootCredentialsSecretRef');
    });

    test('S2: cannot have a Secret of the namespace used, and nothing is created', async () => {
      const auth = { enabled: true, rootCredentialsSecretRef: { name: 'of-another-application' } };
      expect(await create(own, 'db', { version, tls: { client: { managed: {} } }, auth })).toBeUndefined();
      const cluster = await until(own, 'Available', 'False', 'ReferenceNotPermitted');
      expect(JSON.stringify(cluster.status)).toContain(`${REFERENCE_LABEL}=true`);
      expect(await world.list(pods, own)).toEqual([]);
    });

    test('S1, S2, S3, S4: cannot name a Secret of another namespace, a cluster there, another image, or a store without credentials', async () => {
      const s3 = { endpoint: 'https://s3.example.com', bucket: 'b', key: 'k' };
      const from = (source: object) => ({ version, bootstrap: { restore: { source } } });
      const attempts: readonly (readonly [string, object, string])[] = [
        ['foreign', from({ s3: { ...s3, credentialsSecretRef: { name: 'root' } } }), 'Secret root does not exist'],
        ['ambient', from({ s3 }), 'ReferenceNotPermitted'],
        ['evil', { version, image: { repository: 'evil.example.com/etcd' } }, 'evil.example.com'],
      ];
      for (const [name, spec] of attempts) expect(await create(own, name, spec), name).toBeUndefined();
      const destination = { s3: { ...s3, credentialsSecretRef: { name: 'root' } } };
      expect(await create(own, 'x', { clusterRef: { name: 'db' }, destination }, etcdSnapshots)).toBeUndefined();
      for (const [name, , expected] of attempts)
        await eventually(
          `${name} is refused`,
          async () => {
            const { status } = (await world.admin.get(clusters, { namespace: own, name })) ?? {};
            const text = JSON.stringify(status ?? {});
            return text.includes('"Available"') && text.includes(expected) ? true : undefined;
          },
          { timeoutMs: PATIENCE_MS },
        );
      expect(await world.list(pods, own)).toEqual([]);
      expect(await world.list(jobs, own)).toEqual([]);
    });

    test('S2, S4: a member that a user has written for a cluster which may not use its store gets no Pod, also without admission policies', async () => {
      const [kind, name] = [clusters.kind, 'ambient'];
      const { metadata, spec } = (await world.admin.get(clusters, { namespace: own, name })) ?? {};
      const { restore } = (spec as { readonly bootstrap: { readonly restore: object } }).bootstrap;
      const written = object(members, own, 'ambient-x', {
        clusterName: name,
        version,
        storage: { size: '1Gi', medium: '' },
        bootstrap: true,
        initialCluster: `ambient-x=http://ambient-x.ambient.${own}.svc:2380`,
        clusterToken: 't',
        restore,
      });
      const owner = { apiVersion: API_VERSION, kind, name, uid: metadata?.uid ?? '', controller: true };
      const labels = memberLabels(name, 'ambient-x');
      await createAny(members, {
        ...written,
        metadata: { ...written.metadata, labels, ownerReferences: [owner] },
      });
      await eventually(
        'the member is refused',
        async () => {
          const found = await world.admin.get(members, { namespace: own, name: 'ambient-x' });
          return JSON.stringify(found?.status ?? {}).includes('is not bootstrapped') ? true : undefined;
        },
        { timeoutMs: PATIENCE_MS },
      );
      expect(await world.list(pods, own)).toEqual([]);
    });

    test('S1: whatever the tenant wrote, the operator asked for nothing in another namespace', () => {
      const asked = auditEvents(world.audit(), 'operator').slice(before);
      const namespaces = new Set(asked.map(({ objectRef }) => objectRef?.namespace));
      expect(namespaces).toContain(own);
      expect(namespaces).not.toContain(other);
    });
  });
});

describe('an operator with Roles in its namespaces, and nothing cluster-scoped', { timeout }, () => {
  test('S8: uses each of its permissions, is refused nothing, and waits for nothing that it may not read', async () => {
    const namespace = await world.namespace();
    const values = [
      'manager.namespaced=true',
      `manager.watchNamespaces={${namespace}}`,
      'manager.clusterRole=false',
      'kubeRbacProxy.enabled=false',
      'crds.enabled=false',
      'admissionPolicies.enabled=false',
    ];
    const sets = values.flatMap((value) => ['--set', value]);
    const { stdout } = await run(helm, ['template', 'etcd-operator', chartDir, '--namespace', 'default', ...sets]);
    type Rendered = KubeObject & { readonly rules?: readonly PolicyRule[] };
    const objects = parseAllDocuments(stdout).map((document) => document.toJS() as Rendered);
    await world.admin.transport.json(`${RBAC}/clusterrolebindings/etcd-operator`, { method: 'DELETE' });
    for (const each of objects)
      if (each.kind === 'Role' || each.kind === 'RoleBinding') {
        const body = each.kind === 'Role' ? each : { ...each, subjects };
        await post(`${RBAC}/namespaces/${each.metadata.namespace}/${each.kind.toLowerCase()}s`, body);
      }
    const before = auditEvents(world.audit(), 'operator').length;
    operator = world.startOperator(
      IMAGE,
      '--leader-elect',
      '--namespace=default',
      `--watch-namespace=${namespace}`,
      '--cluster-scoped=false',
    );
    await live(namespace);
    expect(operator.log()).toContain('the operator may not read nodes');
    await operator.stop('SIGTERM');
    const roles = objects.filter(({ kind, metadata }) => kind === 'Role' && metadata.name?.includes('manager'));
    const requests = auditEvents(world.audit(), 'operator').slice(before);
    expectEachGrantIsUsed(
      requests,
      roles.flatMap(({ rules = [] }) => rules),
    );
    const clusterScoped = requests.filter(({ objectRef }) => objectRef && objectRef.namespace === undefined);
    expect(clusterScoped.map(nameOf)).toEqual([]);
  });
});
