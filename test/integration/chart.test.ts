/** What Helm renders from the chart: the names that an upgrade from the Go operator's chart relies on, the RBAC permissions, the hardening. */
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { build } from '../../local/binaries.ts';
import { crds } from '../../src/api/crds.ts';
import { CLIENT_PORT, PEER_PORT } from '../../src/api/names.ts';
import { parseFlags } from '../../src/bin/flags.ts';
import { leaderElectionRbac, rbac } from '../../src/bin/rbac.ts';
import { OPEN } from '../../src/domain/tenancy.ts';
import type { Container, ObjectMeta, PodSpec, PolicyRule, Service } from '../../src/gen/kube.ts';
import { chartDir } from '../../tools/paths.ts';
import { type Finished, run } from '../../tools/process.ts';

interface Rendered {
  readonly kind: string;
  readonly metadata: ObjectMeta;
  readonly rules?: readonly PolicyRule[];
}

interface Deployment {
  readonly spec?: {
    readonly selector: { readonly matchLabels?: Readonly<Record<string, string>> };
    readonly template: { readonly metadata?: ObjectMeta; readonly spec?: PodSpec };
  };
}

let helm: string;
beforeAll(async () => {
  helm = join((await build(['helm'])).helm, 'helm');
}, 600_000);

const template = (...args: readonly string[]): Promise<Finished> =>
  run(helm, ['template', 'etcd-operator', chartDir, '--namespace', 'etcd-operator-system', ...args], {
    allowFailure: true,
  });

/** Every object that the chart renders with these values. */
async function render(...values: readonly string[]): Promise<readonly Rendered[]> {
  const { code, stdout, stderr } = await template(...values.flatMap((value) => ['--set', value]));
  expect(stderr).toBe('');
  expect(code).toBe(0);
  return parseAllDocuments(stdout)
    .map((document) => document.toJS() as Rendered | null)
    .filter((object) => object !== null);
}

const names = (objects: readonly Rendered[]): string[] =>
  objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`).toSorted();
const find = <T>(objects: readonly Rendered[], kind: string, name = 'etcd-operator'): T | undefined =>
  objects.find((object) => object.kind === kind && object.metadata.name === name) as T | undefined;
const deployment = (objects: readonly Rendered[]): Deployment => find<Deployment>(objects, 'Deployment') as Deployment;
const containers = (objects: readonly Rendered[]): readonly Container[] =>
  deployment(objects).spec?.template.spec?.containers ?? [];
const environment = (container: Container | undefined): Record<string, unknown> =>
  Object.fromEntries((container?.env ?? []).map(({ name, value, valueFrom }) => [name, value ?? valueFrom]));

test('the longest name of a release makes no Service name that is too long', async () => {
  const services = (await render(`fullnameOverride=${'x'.repeat(63)}`)).filter(({ kind }) => kind === 'Service');
  expect(services.map(({ metadata }) => metadata.name)).toEqual([`${'x'.repeat(55)}-metrics`]);
});

describe('the names that "helm upgrade" from the Go operator relies on', () => {
  test('every object is called as in its chart', async () => {
    expect(names(await render())).toEqual([
      'ClusterRole etcd-operator-manager-role',
      'ClusterRole etcd-operator-metrics-reader',
      'ClusterRole etcd-operator-proxy-role',
      'ClusterRoleBinding etcd-operator-manager-rolebinding',
      'ClusterRoleBinding etcd-operator-proxy-rolebinding',
      ...crds.map((crd) => `CustomResourceDefinition ${crd.metadata.name}`).toSorted(),
      'Deployment etcd-operator',
      'Role etcd-operator-leader-election-role',
      'RoleBinding etcd-operator-leader-election-rolebinding',
      'Service etcd-operator-metrics',
      'ServiceAccount etcd-operator',
      'ValidatingAdmissionPolicy etcd-operator-confined',
      'ValidatingAdmissionPolicy etcd-operator-image-repositories',
      'ValidatingAdmissionPolicy etcd-operator-member-deletion',
      'ValidatingAdmissionPolicy etcd-operator-member-writes',
      'ValidatingAdmissionPolicy etcd-operator-own-objects',
      'ValidatingAdmissionPolicy etcd-operator-quota-fits-volume',
      'ValidatingAdmissionPolicy etcd-operator-warnings',
      'ValidatingAdmissionPolicyBinding etcd-operator-confined',
      'ValidatingAdmissionPolicyBinding etcd-operator-image-repositories',
      'ValidatingAdmissionPolicyBinding etcd-operator-member-deletion',
      'ValidatingAdmissionPolicyBinding etcd-operator-member-writes',
      'ValidatingAdmissionPolicyBinding etcd-operator-own-objects',
      'ValidatingAdmissionPolicyBinding etcd-operator-quota-fits-volume',
      'ValidatingAdmissionPolicyBinding etcd-operator-warnings',
    ]);
  });

  test('a release that only observes may only read, needs no Lease, and refuses nothing', async () => {
    const objects = await render('manager.observeOnly=true', 'crds.enabled=false', 'kubeRbacProxy.enabled=false');
    expect(names(objects)).toEqual([
      'ClusterRole etcd-operator-manager-role',
      'ClusterRoleBinding etcd-operator-manager-rolebinding',
      'Deployment etcd-operator',
      'ServiceAccount etcd-operator',
    ]);
    const reads = ['get', 'list', 'watch'];
    const readable = rbac.map((rule) => ({ ...rule, verbs: rule.verbs.filter((verb) => reads.includes(verb)) }));
    const role = find<Rendered>(objects, 'ClusterRole', 'etcd-operator-manager-role');
    expect(role?.rules).toEqual(readable.filter(({ verbs }) => verbs.length > 0));
    expect(containers(objects)[0]?.args).toContain('--observe-only');
    expect(containers(objects)[0]?.args).not.toContain('--leader-elect');
  });

  test.each([
    ['one', 'etcd-operator', [], 'etcd-operator'],
    ['another', 'tenant', [], 'tenant-etcd-operator'],
    ['nameOverride', 'tenant', ['--set', 'nameOverride=keeper'], 'tenant-keeper'],
    ['fullnameOverride', 'tenant', ['--set', 'fullnameOverride=keeper'], 'keeper'],
  ])('the release is part of the names: %s', async (_name, release, args, expected) => {
    const { stdout } = await run(helm, [
      'template',
      release,
      chartDir,
      '--show-only',
      'templates/deployment.yaml',
      ...args,
    ]);
    expect(stdout).toContain(`\n  name: ${expected}\n`);
  });

  test('the immutable selector of the Deployment has exactly two labels', async () => {
    const objects = await render('podLabels.team=storage', 'podLabels.app\\.kubernetes\\.io/name=other');
    const selector = { 'app.kubernetes.io/name': 'etcd-operator', 'app.kubernetes.io/instance': 'etcd-operator' };
    expect(deployment(objects).spec?.selector.matchLabels).toEqual(selector);
    expect(deployment(objects).spec?.template.metadata?.labels).toEqual({
      ...selector,
      'control-plane': 'controller-manager',
      team: 'storage',
    });
    expect(find<Service>(objects, 'Service', 'etcd-operator-metrics')?.spec?.selector).toEqual(selector);
  });
});

describe('the operator’s container', () => {
  test('gets its flags and its environment', async () => {
    const [manager, proxy] = containers(await render());
    expect(manager?.name).toBe('manager');
    expect(manager?.args).toEqual([
      '--leader-elect',
      '--health-probe-bind-address=:8081',
      '--metrics-bind-address=127.0.0.1:8080',
    ]);
    expect(environment(manager)).toEqual({
      POD_NAMESPACE: { fieldRef: { fieldPath: 'metadata.namespace' } },
      OPERATOR_IMAGE: manager?.image,
      ETCD_IMAGE_REPOSITORY: 'quay.io/coreos/etcd',
      NODE_LOST_AFTER: '600',
      REPLACEMENTS_PER_HOUR: '10',
      DEFRAGMENTATIONS_AT_ONCE: '10',
      MAX_ROLLING_CLUSTERS: '10',
      ROTATION_GRACE: '120',
    });
    expect(manager?.livenessProbe?.httpGet).toEqual({ path: '/healthz', port: 8081 });
    expect(manager?.readinessProbe?.httpGet).toEqual({ path: '/readyz', port: 8081 });
    expect(manager?.resources?.limits).toEqual({ memory: '512Mi' });
    expect(proxy?.name).toBe('kube-rbac-proxy');
    expect(proxy?.image).toBe('ghcr.io/kube-rbac-proxy/kube-rbac-proxy:v0.22.0');
  });

  test('gets what tenants may refer to, and nothing about it by default', async () => {
    const values = [
      'tenancy.allowedStoreEndpoints={s3.example.com,*.amazonaws.com}',
      'tenancy.requireReferenceLabel=true',
    ];
    const [manager] = containers(await render(...values));
    expect(parseFlags([], { TENANCY: String(environment(manager)['TENANCY']) }).tenancy).toEqual({
      ...OPEN,
      allowedStoreEndpoints: ['s3.example.com', '*.amazonaws.com'],
      requireReferenceLabel: true,
    });
  });

  test('gets the namespaces to watch', async () => {
    const [manager] = containers(await render('manager.watchNamespaces={one,two}'));
    expect(environment(manager)['WATCH_NAMESPACE']).toBe('one,two');
  });

  test('gets them from a string with commas as well, and the Roles are in each', async () => {
    const objects = await render(String.raw`manager.watchNamespaces=one\, two`, 'manager.namespaced=true');
    expect(environment(containers(objects)[0])['WATCH_NAMESPACE']).toBe('one,two');
    const roles = objects.filter(({ kind, metadata }) => kind === 'Role' && metadata.name?.endsWith('-manager-role'));
    expect(roles.map(({ metadata }) => metadata.namespace)).toEqual(['one', 'two']);
    expect(environment(containers(await render('manager.watchNamespaces='))[0])).not.toHaveProperty('WATCH_NAMESPACE');
  });

  test('gets the limit of replacements, also 0, which stops them', async () => {
    const [manager] = containers(await render('manager.replacementsPerHour=0'));
    expect(environment(manager)['REPLACEMENTS_PER_HOUR']).toBe('0');
  });

  test('gets the limit of clusters that roll out at the same time, also 0, which is none', async () => {
    const [manager] = containers(await render('manager.maxRollingClusters=0'));
    expect(environment(manager)['MAX_ROLLING_CLUSTERS']).toBe('0');
  });

  test('serves metrics without TLS and without a Service, when there is no proxy', async () => {
    const objects = await render('kubeRbacProxy.enabled=false');
    expect(containers(objects).map(({ name }) => name)).toEqual(['manager']);
    expect(containers(objects)[0]?.args).toContain('--metrics-bind-address=:8080');
    expect(names(objects).filter((name) => /^Service |proxy/.test(name))).toEqual([]);
  });

  test('runs the given image, and passes it to the operator', async () => {
    const [manager] = containers(await render('image.repository=example.org/x', 'image.tag=v9'));
    expect(manager?.image).toBe('example.org/x:v9');
    expect(environment(manager)['OPERATOR_IMAGE']).toBe('example.org/x:v9');
  });

  test('S9: and its Pod meet the "restricted" level, with a read-only file system', async () => {
    const objects = await render();
    expect(deployment(objects).spec?.template.spec?.securityContext).toEqual({
      runAsNonRoot: true,
      runAsUser: 65532,
      runAsGroup: 65532,
      seccompProfile: { type: 'RuntimeDefault' },
    });
    for (const container of containers(objects))
      expect(container.securityContext, container.name).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
    const pod = deployment(objects).spec?.template.spec;
    expect([pod?.hostNetwork, pod?.hostPID, pod?.hostIPC]).toEqual([undefined, undefined, undefined]);
  });

  test('S14: has a token of an hour, which the API server does not extend, and opens no debugger at a signal', async () => {
    const objects = await render();
    const pod = deployment(objects).spec?.template.spec;
    expect(pod?.automountServiceAccountToken).toBe(false);
    expect(pod?.volumes?.map(({ projected }) => projected?.sources)).toEqual([
      [
        { serviceAccountToken: { path: 'token', expirationSeconds: 3600 } },
        { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
        { downwardAPI: { items: [{ path: 'namespace', fieldRef: { fieldPath: 'metadata.namespace' } }] } },
      ],
    ]);
    for (const { volumeMounts } of containers(objects))
      expect(volumeMounts).toEqual([
        { name: 'token', mountPath: '/var/run/secrets/kubernetes.io/serviceaccount', readOnly: true },
      ]);
    expect(containers(objects)[0]?.command).toContain('--disable-sigusr1');
  });

  test('S9: gets the user of members and agents, and leaves it to OpenShift where that is configured', async () => {
    const user = async (value: string) => environment(containers(await render(value))[0])['POD_USER'];
    expect(await user('replicaCount=1')).toBeUndefined();
    expect(await user('workloads.runAsUser=1000')).toBe('1000');
    expect(await user('workloads.runAsUser=null')).toBe('none');
  });

  test('renders the same with the values of a release that is older than they are: --reuse-values keeps no others', async () => {
    const blocks = ['tenancy', 'networkPolicy', 'workloads', 'admissionPolicies', 'podSecurityContext'];
    const later = ['manager.clusterRole', 'manager.namespaced', 'manager.observeOnly', 'metrics.prometheusRule'];
    const older = await render(...[...blocks, ...later].map((value) => `${value}=null`));
    expect(older).toEqual(await render());
  });

  test('leaves the user to OpenShift where that is configured', async () => {
    const objects = await render('podSecurityContext.runAsUser=null', 'podSecurityContext.runAsGroup=null');
    expect(deployment(objects).spec?.template.spec?.securityContext).toEqual({
      runAsNonRoot: true,
      seccompProfile: { type: 'RuntimeDefault' },
    });
  });
});

describe('RBAC permissions', () => {
  test('are those that the code lists', async () => {
    const objects = await render();
    expect(find<Rendered>(objects, 'ClusterRole', 'etcd-operator-manager-role')?.rules).toEqual(rbac);
    expect(find<Rendered>(objects, 'Role', 'etcd-operator-leader-election-role')?.rules).toEqual(leaderElectionRbac);
  });

  test('S8: are given in the watched namespaces only, and cluster-wide only to read nodes and volumes', async () => {
    const objects = await render('manager.namespaced=true', 'manager.watchNamespaces={one,two}');
    const isClusterScoped = ({ resources }: PolicyRule) => /^(nodes|persistentvolumes)$/.test(resources?.[0] ?? '');
    const roles = objects.filter(
      ({ kind, metadata }) => kind === 'Role' && metadata.name === 'etcd-operator-manager-role',
    );
    expect(roles.map(({ metadata }) => metadata.namespace)).toEqual(['one', 'two']);
    for (const { rules } of roles) expect(rules).toEqual(rbac.filter((rule) => !isClusterScoped(rule)));
    const wide = find<Rendered>(objects, 'ClusterRole', 'etcd-operator-manager-role');
    expect(wide?.rules).toEqual(rbac.filter(isClusterScoped));
    expect(wide?.rules?.flatMap(({ verbs }) => verbs).toSorted()).toEqual(['get', 'get', 'list', 'watch']);
    expect(names(objects).filter((name) => name === 'RoleBinding etcd-operator-manager-rolebinding')).toHaveLength(2);
  });

  test('S8: can do without anything cluster-scoped', async () => {
    const values = ['manager.namespaced=true', 'manager.watchNamespaces={one,two}', 'manager.clusterRole=false'];
    const objects = await render(
      ...values,
      'kubeRbacProxy.enabled=false',
      'crds.enabled=false',
      'admissionPolicies.enabled=false',
    );
    expect(names(objects)).toEqual([
      'Deployment etcd-operator',
      'Role etcd-operator-leader-election-role',
      ...Array.from({ length: 2 }, () => 'Role etcd-operator-manager-role'),
      'RoleBinding etcd-operator-leader-election-rolebinding',
      ...Array.from({ length: 2 }, () => 'RoleBinding etcd-operator-manager-rolebinding'),
      'ServiceAccount etcd-operator',
    ]);
    expect(environment(containers(objects)[0])['CLUSTER_SCOPED']).toBe('false');
    const withProxy = await template(...values.flatMap((value) => ['--set', value]));
    expect(withProxy.stderr).toContain('kubeRbacProxy.enabled=false');
    const wide = await template('--set', 'manager.clusterRole=false');
    expect(wide.stderr).toContain('manager.clusterRole=false needs manager.namespaced=true');
  });

  test('of the Go operator are kept during an upgrade that cannot be recognized, when it is configured, and can be deleted', async () => {
    const name = 'etcd-operator-go-operator';
    const of = (objects: readonly Rendered[]) => names(objects).filter((each) => each.endsWith(` ${name}`));
    expect(of(await render())).toEqual([]);
    expect(of(await render('takeOver.keepPermissions=false'))).toEqual([]);
    expect(of(await render('takeOver.keepPermissions=true', 'manager.observeOnly=true'))).toEqual([]);
    const objects = await render('takeOver.keepPermissions=true');
    const kinds = ['ClusterRole', 'ClusterRoleBinding', 'Role', 'RoleBinding'];
    expect(of(objects)).toEqual(kinds.map((kind) => `${kind} ${name}`));
    for (const { metadata } of objects.filter((object) => object.metadata.name === name))
      expect(metadata.annotations).toMatchObject({ 'helm.sh/hook': 'pre-upgrade' });
    expect(environment(containers(objects)[0])['OBSOLETE_PERMISSIONS']).toBe(name);
    const removal = { apiGroups: ['rbac.authorization.k8s.io'], resourceNames: [name], verbs: ['delete', 'get'] };
    expect(find<Rendered>(objects, 'ClusterRole', 'etcd-operator-manager-role')?.rules).toEqual([
      ...rbac,
      { ...removal, resources: ['clusterrolebindings', 'clusterroles'] },
    ]);
    expect(find<Rendered>(objects, 'Role', 'etcd-operator-leader-election-role')?.rules).toEqual([
      ...leaderElectionRbac,
      { ...removal, resources: ['rolebindings', 'roles'] },
    ]);
  });

  test('S8: never include a wildcard, a list of Secrets, exec in a Pod, or escalation', async () => {
    for (const { metadata, rules = [] } of await render()) {
      for (const { apiGroups = [], resources = [], nonResourceURLs = [], verbs } of rules) {
        const words = [...apiGroups, ...resources, ...nonResourceURLs, ...verbs];
        expect(
          words.filter((word) => word.includes('*')),
          metadata.name,
        ).toEqual([]);
        expect(resources, metadata.name).not.toContain('pods/exec');
        expect(
          verbs.filter((verb) => ['escalate', 'bind', 'impersonate'].includes(verb)),
          metadata.name,
        ).toEqual([]);
        if (resources.includes('secrets'))
          expect(verbs.filter((verb) => ['list', 'watch', 'deletecollection'].includes(verb))).toEqual([]);
      }
    }
  });
});

describe('CRDs', () => {
  const kept = async (...values: string[]): Promise<unknown[]> =>
    (await render(...values))
      .filter(({ kind }) => kind === 'CustomResourceDefinition')
      .map(({ metadata }) => metadata.annotations?.['helm.sh/resource-policy']);

  test('are those of the code', async () => {
    const objects = await render();
    for (const { metadata, spec } of crds)
      expect(find<Rendered>(objects, 'CustomResourceDefinition', metadata.name)).toMatchObject({
        spec: JSON.parse(JSON.stringify(spec)) as object,
      });
  });

  test('stay when the release is uninstalled, unless configured otherwise', async () => {
    expect(await kept()).toEqual(crds.map(() => 'keep'));
    expect(await kept('crds.keep=false')).toEqual(crds.map(() => undefined));
    expect(await kept('crds.enabled=false')).toEqual([]);
  });
});

test('S10: with a NetworkPolicy, the operator reaches DNS, the API server and members, and only metrics and probes come in', async () => {
  const objects = await render(
    'networkPolicy.enabled=true',
    'networkPolicy.metricsFrom[0].podSelector.matchLabels.app=prometheus',
  );
  const policy = find<{ readonly spec: object }>(objects, 'NetworkPolicy');
  const tcp = (...ports: number[]) => ports.map((port) => ({ port }));
  expect(policy?.spec).toMatchObject({
    policyTypes: ['Ingress', 'Egress'],
    podSelector: { matchLabels: deployment(objects).spec?.selector.matchLabels },
    ingress: [
      { ports: tcp(8081) },
      { ports: tcp(8443), from: [{ podSelector: { matchLabels: { app: 'prometheus' } } }] },
    ],
    egress: [
      {
        ports: [
          { port: 53, protocol: 'UDP' },
          { port: 5353, protocol: 'UDP' }, // of the DNS Pods of OpenShift
          ...tcp(53, 5353, 443, 6443),
        ],
      },
      {
        to: [{ namespaceSelector: {}, podSelector: { matchLabels: { 'app.kubernetes.io/name': 'etcd' } } }],
        ports: tcp(CLIENT_PORT, PEER_PORT),
      },
    ],
  });
});

test('a Namespace and a ServiceMonitor are rendered when enabled', async () => {
  const objects = await render('namespace.create=true', 'metrics.serviceMonitor.enabled=true');
  expect(names(objects)).toEqual(
    expect.arrayContaining(['Namespace etcd-operator-system', 'ServiceMonitor etcd-operator-metrics']),
  );
});

test('alerts about backups are rendered when enabled, with the labels and the thresholds that are set', async () => {
  expect(names(await render()).join()).not.toContain('PrometheusRule');
  const set = ['enabled=true', 'labels.release=prometheus', 'backupAgeSeconds=7200'];
  const objects = await render(...set.map((value) => `metrics.prometheusRule.${value}`));
  type Rule = Rendered & {
    readonly spec: { readonly groups: readonly { readonly rules: readonly { readonly expr: string }[] }[] };
  };
  const rule = find<Rule>(objects, 'PrometheusRule', 'etcd-operator-backups');
  expect(rule?.metadata.labels).toMatchObject({ release: 'prometheus' });
  const expressions = rule?.spec.groups.flatMap(({ rules }) => rules.map(({ expr }) => expr));
  expect(expressions).toContain('time() - etcd_operator_last_backup_timestamp_seconds > 7200');
  expect(expressions).toContain('etcd_operator_drill_recovery_seconds > 900');
});

test('each alert has the URL of its runbook where the administrator says where they are', async () => {
  type Rules = Rendered & {
    readonly spec: {
      readonly groups: readonly {
        readonly rules: readonly { readonly alert: string; readonly annotations: object }[];
      }[];
    };
  };
  const rulesFor = async (...set: readonly string[]) =>
    find<Rules>(
      await render('metrics.prometheusRule.enabled=true', ...set),
      'PrometheusRule',
      'etcd-operator-backups',
    )?.spec.groups.flatMap(({ rules }) => rules) ?? [];
  const url = 'https://git.example.com/docs/runbooks';
  const linked = await rulesFor(`metrics.prometheusRule.runbookUrl=${url}`);
  expect(linked.length).toBeGreaterThan(5);
  for (const { alert, annotations } of linked)
    expect(annotations).toMatchObject({ summary: expect.any(String), runbook_url: `${url}/${alert}.md` });
  for (const { annotations } of await rulesFor()) expect(annotations).not.toHaveProperty('runbook_url');
});

test.each([
  [
    'a ServiceMonitor without the proxy',
    ['metrics.serviceMonitor.enabled=true', 'kubeRbacProxy.enabled=false'],
    'needs kubeRbacProxy.enabled',
  ],
  ['no account at all', ['serviceAccount.create=false'], 'serviceAccount.name is required'],
  ['a namespaced release of every namespace', ['manager.namespaced=true'], 'needs manager.watchNamespaces'],
  ['a misspelt value', ['manager.watchNamespace={x}'], 'watchNamespace'],
  ['a value of another type', ['replicaCount=two'], 'replicaCount'],
  ['a URL that is none', ['metrics.prometheusRule.runbookUrl=docs/runbooks/'], 'runbookUrl'],
  ['an invalid namespace', ['manager.watchNamespaces={Not_A_Name}'], 'watchNamespaces'],
  ['an invalid namespace in a string', [String.raw`manager.watchNamespaces=one\,Not_A_Name`], 'watchNamespaces'],
])('%s is refused with a sentence', async (_name, values, sentence) => {
  const { code, stderr } = await template(...values.flatMap((value) => ['--set', value]));
  expect(stderr).toContain(sentence);
  expect(code).not.toBe(0);
});

const notesFor = async (...args: readonly string[]): Promise<string> =>
  (await run(helm, ['install', 'etcd-operator', chartDir, '--dry-run=client', ...args])).stdout;

test.each(['128Mi', '100M', '128000Ki', '0.1Gi', '.1G', '134217728', '1e8', '100000000000m'])(
  'a memory limit of %s, as with the Go operator, is accepted with a warning',
  async (limit) => {
    const notes = await notesFor('--set-string', `manager.resources.limits.memory=${limit}`);
    expect(notes).toContain(
      `WARNING: manager.resources.limits.memory is ${limit} and the operator needs at least 192Mi`,
    );
    expect(notes).toContain('--reset-then-reuse-values');
  },
);

test.each(['192Mi', '202M', '196608Ki', '0.25Gi', '1G', '1Ti', '201326592', '1E'])(
  'a memory limit of %s is enough',
  async (limit) => {
    expect(await notesFor('--set-string', `manager.resources.limits.memory=${limit}`)).not.toContain('WARNING');
  },
);

test('the name of an account that the chart creates is that of the release, as in the chart of the Go operator', async () => {
  const accountIn = async (...values: readonly string[]) =>
    deployment(await render(...values)).spec?.template.spec?.serviceAccountName;
  expect(await accountIn('serviceAccount.name=mine')).toBe('etcd-operator');
  expect(await accountIn('serviceAccount.name=mine', 'serviceAccount.create=false')).toBe('mine');
});

test('unknown values of the Go operator’s chart do not stop an upgrade', async () => {
  const { code } = await template('--set', 'memberDeletionProtection.enabled=true');
  expect(code).toBe(0);
});

test('helm lint reports nothing', async () => {
  const { stdout } = await run(helm, ['lint', '--strict', chartDir]);
  expect(stdout).toContain('0 chart(s) failed');
});

test('after the installation the notes show what to type next', async () => {
  const { stdout } = await run(helm, ['install', 'etcd-operator', chartDir, '--dry-run=client', '--namespace', 'ops']);
  expect(stdout).toContain('kubectl -n ops rollout status deployment/etcd-operator');
  expect(stdout).toMatch(/kind: EtcdCluster[^]*replicas: 1\n\s+version: 3\.6\.16\n/);
});

test.each([
  ['null', 'default', 'in every namespace'],
  ['{one,two}', 'one', 'in: one, two'],
  [String.raw`one\,two`, 'one', 'in: one, two'],
])('and with watchNamespaces=%s, they show it for the namespace %s', async (watched, namespace, sentence) => {
  const dryRun = ['install', 'etcd-operator', chartDir, '--dry-run=client'];
  const { stdout } = await run(helm, [...dryRun, '--set', `manager.watchNamespaces=${watched}`]);
  expect(stdout).toContain(`It reconciles etcd clusters ${sentence}.`);
  expect(stdout).toContain(`kubectl -n ${namespace} get etcdclusters`);
});
