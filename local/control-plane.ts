/** etcd, API server, controller manager and scheduler of a local cluster, in a network namespace of their own. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../tools/process.ts';
import { enter, startDaemon, waitFor } from './daemon.ts';
import { controlPlaneIp, kubernetesIp, type Range, serviceCidr } from './network.ts';
import { type CertificateAuthority, kubeconfig, loadCA, serviceAccountKey } from './pki.ts';
import { type ClusterName, clusterDir, daemonGroup, kubeconfigPath, logPath } from './state.ts';

export interface ControlPlane {
  readonly name: ClusterName;
  readonly range: Range;
  /** Holds the control plane's namespaces. */
  readonly pid: number;
  readonly ca: CertificateAuthority;
  /** Folders of the built programs. */
  readonly bin: { readonly kubernetes: string; readonly etcd: string };
}

export const apiServerUrl = (range: Range): string => `https://${controlPlaneIp(range)}:6443`;

/** Returns the process ids. */
export async function startControlPlane(plane: ControlPlane): Promise<readonly number[]> {
  await writePki(plane);
  const etcd = daemon(plane, 'etcd', join(plane.bin.etcd, 'etcd'), [
    `--data-dir=${join(clusterDir(plane.name), 'etcd')}`,
    '--listen-client-urls=http://127.0.0.1:2379',
    '--advertise-client-urls=http://127.0.0.1:2379',
    '--listen-peer-urls=http://127.0.0.1:2380',
    '--unsafe-no-fsync', // the local cluster's own store; it need not survive a power cut
    '--log-level=warn',
  ]);
  const api = daemon(plane, 'kube-apiserver', join(plane.bin.kubernetes, 'kube-apiserver'), apiServerFlags(plane));
  await waitFor('the API server responds', () => apiServerReady(plane), { timeoutMs: 90_000, daemon: api });
  const manager = daemon(plane, 'kube-controller-manager', join(plane.bin.kubernetes, 'kube-controller-manager'), [
    `--kubeconfig=${pki(plane, 'controller-manager.kubeconfig')}`,
    `--service-account-private-key-file=${pki(plane, 'service-account.key')}`,
    `--root-ca-file=${pki(plane, 'ca.crt')}`,
    '--use-service-account-credentials',
    '--leader-elect=false',
    '--node-monitor-period=2s',
    '--node-monitor-grace-period=20s', // tests cut nodes off and wait for NotReady; the default is 50 s
  ]);
  const scheduler = daemon(plane, 'kube-scheduler', join(plane.bin.kubernetes, 'kube-scheduler'), [
    `--kubeconfig=${pki(plane, 'scheduler.kubeconfig')}`,
    '--leader-elect=false',
  ]);
  return [etcd, api, manager, scheduler].map(({ pid }) => pid);
}

const pki = (plane: ControlPlane, file: string): string => join(clusterDir(plane.name), 'pki', file);

function daemon(
  plane: ControlPlane,
  name: string,
  binary: string,
  flags: readonly string[],
): { readonly pid: number; readonly log: string } {
  const log = logPath(plane.name, name);
  const cgroup = daemonGroup(plane.name, 'control-plane');
  return { pid: startDaemon({ name, command: [binary, ...flags], cgroup, log, inNamespacesOf: plane.pid }), log };
}

const apiServerFlags = (plane: ControlPlane): readonly string[] => [
  '--etcd-servers=http://127.0.0.1:2379',
  `--bind-address=${controlPlaneIp(plane.range)}`,
  `--advertise-address=${controlPlaneIp(plane.range)}`,
  `--service-cluster-ip-range=${serviceCidr(plane.range)}`,
  `--client-ca-file=${pki(plane, 'ca.crt')}`,
  `--tls-cert-file=${pki(plane, 'apiserver.crt')}`,
  `--tls-private-key-file=${pki(plane, 'apiserver.key')}`,
  `--kubelet-certificate-authority=${pki(plane, 'ca.crt')}`,
  `--kubelet-client-certificate=${pki(plane, 'apiserver.crt')}`,
  `--kubelet-client-key=${pki(plane, 'apiserver.key')}`,
  '--kubelet-preferred-address-types=InternalIP', // node names do not resolve
  `--service-account-key-file=${pki(plane, 'service-account.key')}`,
  `--service-account-signing-key-file=${pki(plane, 'service-account.key')}`,
  '--service-account-issuer=https://kubernetes.default.svc',
  '--authorization-mode=Node,RBAC',
  '--enable-admission-plugins=NodeRestriction',
  '--allow-privileged=true', // the storage provisioner's helper mounts volumes
];

async function apiServerReady(plane: ControlPlane): Promise<boolean> {
  const [command = '', ...args] = enter(plane.pid);
  const kubectl = join(plane.bin.kubernetes, 'kubectl');
  const answer = await run(
    command,
    [...args, kubectl, `--kubeconfig=${kubeconfigPath(plane.name)}`, 'get', '--raw', '/readyz'],
    { allowFailure: true, timeoutMs: 5000 },
  );
  return answer.code === 0;
}

async function writePki(plane: ControlPlane): Promise<void> {
  const { ca, name, range } = plane;
  mkdirSync(join(clusterDir(name), 'pki'), { recursive: true, mode: 0o700 });
  const write = (path: string, content: string): void => writeFileSync(path, content, { mode: 0o600 });
  const server = await ca.issue({ user: 'kube-apiserver', group: 'system:masters' }, [
    controlPlaneIp(range),
    kubernetesIp(range),
    'kubernetes',
    'kubernetes.default',
    'kubernetes.default.svc',
    'kubernetes.default.svc.cluster.local',
  ]);
  write(pki(plane, 'ca.crt'), ca.cert);
  write(pki(plane, 'ca.key'), ca.key);
  write(pki(plane, 'apiserver.crt'), server.cert);
  write(pki(plane, 'apiserver.key'), server.key);
  write(pki(plane, 'service-account.key'), serviceAccountKey());
  const config = async (path: string, user: string, group?: string): Promise<void> =>
    write(path, kubeconfig(apiServerUrl(range), ca.cert, await ca.issue({ user, ...(group && { group }) })));
  await config(kubeconfigPath(name), 'admin', 'system:masters');
  await config(pki(plane, 'controller-manager.kubeconfig'), 'system:kube-controller-manager');
  await config(pki(plane, 'scheduler.kubeconfig'), 'system:kube-scheduler');
  await config(pki(plane, 'kube-proxy.kubeconfig'), 'system:kube-proxy');
}

/** The cluster's CA, for a node that is added later. */
export const savedCA = (name: ClusterName): Promise<CertificateAuthority> => {
  const read = (file: string): string => readFileSync(join(clusterDir(name), 'pki', file), 'utf8');
  return loadCA({ cert: read('ca.crt'), key: read('ca.key') });
};

export const proxyKubeconfig = (name: ClusterName): string => join(clusterDir(name), 'pki', 'kube-proxy.kubeconfig');
