/** A real Kubernetes API server on loopback, with its etcd and the garbage collector. No nodes, no root. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from '../../../local/binaries.ts';
import type { CustomResourceDefinition } from '../../../src/api/crd.ts';
import { crds } from '../../../src/api/crds.ts';
import { leaderElectionRbac, rbac } from '../../../src/bin/rbac.ts';
import { isConflict } from '../../../src/kube/errors.ts';
import type { HttpClient } from '../../../src/kube/http-client.ts';
import { type Identity, Transport } from '../../../src/kube/transport.ts';
import { UserClient } from '../etcd-client.ts';
import { HttpKubectlClient } from '../kubectl/client.ts';
import { auditFlags } from './audit.ts';
import { type Child, eventually, freePort, type Processes } from './processes.ts';

export interface ControlPlane {
  /** With all permissions. */
  readonly admin: HttpKubectlClient;
  /** A kubeconfig with exactly the permissions that the chart grants to the operator. */
  readonly operatorKubeconfig: string;
  /** The same, for a program with a client of its own. */
  readonly operator: Identity;
  /** A user without any permissions. */
  readonly tenant: Identity;
  readonly etcdBinary: string;
  readonly apiServer: ApiServer;
}

export interface ApiServer {
  /** With all permissions. */
  readonly kubeconfig: string;
  /** The URL of its own etcd. */
  readonly etcdUrl: string;
  /** Kills it, as when its machine dies. */
  kill(): Promise<void>;
  /** Restarts it at the same address with the same certificate; resolves when it serves. */
  start(): Promise<void>;
}

const ALL_CONTROLLERS = [
  'garbage-collector-controller',
  'namespace-controller',
  'disruption-controller',
  'job-controller',
  'persistentvolumeclaim-protection-controller', // releases a PVC once no Pod uses it
];

export interface ControlPlaneOptions {
  readonly definitions?: readonly CustomResourceDefinition[];
  /** Controllers of Kubernetes itself. Without any, their process is not started. */
  readonly controllers?: readonly string[];
  /** The API server logs the requests of the operator and of the tenant: see audit.ts. */
  readonly audit?: boolean;
}
const ADMIN = 'admin-token';
const OPERATOR = 'operator-token';
const TENANT = 'tenant-token';

export async function startControlPlane(
  processes: Processes,
  folder: string,
  { definitions = crds, controllers = ALL_CONTROLLERS, audit = false }: ControlPlaneOptions = {},
): Promise<ControlPlane> {
  const bin = await build(['kubernetes', 'etcd-3.6']);
  const etcdBinary = join(bin['etcd-3.6'], 'etcd');
  const [etcdPort, peerPort, apiPort] = await Promise.all([freePort(), freePort(), freePort()]);
  const etcdUrl = `http://127.0.0.1:${etcdPort}`;
  processes.start('kubernetes-etcd', etcdBinary, [
    `--data-dir=${join(folder, 'kubernetes-etcd')}`,
    `--listen-client-urls=${etcdUrl}`,
    `--advertise-client-urls=${etcdUrl}`,
    `--listen-peer-urls=http://127.0.0.1:${peerPort}`,
    '--unsafe-no-fsync',
    '--log-level=warn',
  ]);
  const audited = audit ? auditFlags(folder) : [];
  const flags = [...apiServerFlags(folder, [`--etcd-servers=${etcdUrl}`], apiPort), ...audited];
  const startServer = (): Child => processes.start('kube-apiserver', join(bin.kubernetes, 'kube-apiserver'), flags);
  let child = startServer();
  const server = `https://127.0.0.1:${apiPort}`;
  const identity = await adminOf(folder, apiPort);
  const { ca = '' } = identity;
  const admin = new HttpKubectlClient(new Transport(() => Promise.resolve(identity)));
  const serves = (): Promise<unknown> =>
    eventually('the API server', () => admin.transport.json<unknown>('/api/v1/namespaces/default'), {
      timeoutMs: 90_000,
      everyMs: 200,
    });
  await serves();
  await Promise.all([installCrds(admin, definitions), grantRights(admin)]);
  const adminKubeconfig = writeKubeconfig(folder, 'admin', server, ca, ADMIN);
  if (controllers.length > 0)
    await startControllers(
      processes,
      folder,
      join(bin.kubernetes, 'kube-controller-manager'),
      adminKubeconfig,
      controllers,
    );
  return {
    admin,
    etcdBinary,
    operator: { server, ca, token: OPERATOR },
    tenant: { server, ca, token: TENANT },
    operatorKubeconfig: writeKubeconfig(folder, 'operator', server, ca, OPERATOR),
    apiServer: {
      kubeconfig: adminKubeconfig,
      etcdUrl,
      kill: () => child.stop('SIGKILL'),
      start: async () => {
        child = startServer();
        await serves();
      },
    },
  };
}

/** Of an API server with these flags, as soon as it has made its certificate. */
export async function adminOf(folder: string, port: number): Promise<Identity> {
  const certificate = join(folder, 'apiserver', 'apiserver.crt');
  const ca = await eventually(
    'the certificate of the API server',
    () => readFileSync(certificate, 'utf8') || undefined,
  );
  return { server: `https://127.0.0.1:${port}`, ca, token: ADMIN };
}

/** `etcd`: how it reaches its etcd. */
export function apiServerFlags(folder: string, etcd: readonly string[], port: number): readonly string[] {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const keyFile = join(folder, 'service-account.key');
  const tokens = join(folder, 'tokens.csv');
  const certs = join(folder, 'apiserver');
  mkdirSync(certs);
  writeFileSync(keyFile, privateKey.export({ type: 'pkcs8', format: 'pem' }));
  writeFileSync(
    tokens,
    `${ADMIN},admin,admin,system:masters\n${OPERATOR},operator,operator\n${TENANT},tenant,tenant\n`,
  );
  return [
    ...etcd,
    '--bind-address=127.0.0.1',
    '--advertise-address=127.0.0.1',
    `--secure-port=${port}`,
    `--cert-dir=${certs}`,
    `--token-auth-file=${tokens}`,
    '--authorization-mode=RBAC',
    '--service-cluster-ip-range=10.0.0.0/16',
    `--service-account-key-file=${keyFile}`,
    `--service-account-signing-key-file=${keyFile}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    '--disable-admission-plugins=ServiceAccount', // no controller creates the default accounts here
  ];
}

async function startControllers(
  processes: Processes,
  folder: string,
  binary: string,
  kubeconfig: string,
  names: readonly string[],
): Promise<void> {
  processes.start('kube-controller-manager', binary, [
    `--kubeconfig=${kubeconfig}`,
    `--controllers=${names.join(',')}`,
    '--leader-elect=false',
    '--bind-address=127.0.0.1',
    `--secure-port=${await freePort()}`,
    `--cert-dir=${join(folder, 'controller-manager')}`,
  ]);
}

/** Resolves when the CRDs are served. */
export async function installCrds(admin: HttpClient, definitions: readonly CustomResourceDefinition[]): Promise<void> {
  const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  for (const body of definitions) await admin.transport.json(path, { method: 'POST', body });
  for (const { metadata, spec } of definitions) {
    const [plural, ...group] = metadata.name.split('.');
    const [version] = spec['versions'] as readonly { readonly name: string }[];
    const served = `/apis/${group.join('.')}/${version?.name}/${plural}`;
    await eventually(`${plural} are served`, () => admin.transport.json<unknown>(served));
  }
}

export const RBAC = '/apis/rbac.authorization.k8s.io/v1';
export const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'operator' }];

/** A slow server may have created it and report AlreadyExists to its own retry: no other client creates it here. */
const make = (admin: HttpClient, path: string, body: object): Promise<unknown> =>
  admin.transport.json<unknown>(path, { method: 'POST', body }).catch((error: unknown) => {
    if (!isConflict(error)) throw error;
  });

/** Lets the operator keep its Lease in this namespace. */
export async function grantLease(admin: HttpClient, namespace: string): Promise<void> {
  const metadata = { name: 'etcd-operator' };
  const own = `${RBAC}/namespaces/${namespace}`;
  await make(admin, `${own}/roles`, { metadata, rules: leaderElectionRbac });
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: metadata.name };
  await make(admin, `${own}/rolebindings`, { metadata, roleRef, subjects });
}

async function grantRights(admin: HttpClient): Promise<void> {
  const metadata = { name: 'etcd-operator' };
  await make(admin, `${RBAC}/clusterroles`, { metadata, rules: rbac });
  await grantLease(admin, 'default');
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: metadata.name };
  await make(admin, `${RBAC}/clusterrolebindings`, { metadata, roleRef, subjects });
}

export function writeKubeconfig(folder: string, user: string, server: string, ca: string, token: string): string {
  const path = join(folder, `${user}.kubeconfig`);
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'test',
    contexts: [{ name: 'test', context: { cluster: 'test', user } }],
    clusters: [{ name: 'test', cluster: { server, 'certificate-authority-data': Buffer.from(ca).toString('base64') } }],
    users: [{ name: user, user: { token } }],
  };
  writeFileSync(path, JSON.stringify(config));
  return path;
}

/** Compacts an etcd up to its last revision. */
export async function compact(endpoint: string): Promise<void> {
  const etcd = new UserClient(() => performance.now());
  const ask = { endpoint, timeoutMs: 5_000 };
  try {
    const status = await etcd.status(ask);
    if (!status.ok) throw new Error(status.error.message);
    const done = await etcd.kv.compact(ask, status.value.revision);
    if (!done.ok) throw new Error(done.error.message);
  } finally {
    etcd.close();
  }
}
