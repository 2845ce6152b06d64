/** Everything for an integration test: a Kubernetes, a kubelet, the operator as a process, and helpers to observe it. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CustomResourceDefinition } from '../../../src/api/crd.ts';
import { crds } from '../../../src/api/crds.ts';
import type { EtcdCluster, EtcdClusterSpec } from '../../../src/api/etcd-cluster.ts';
import type { EtcdMember } from '../../../src/api/etcd-member.ts';
import { API_VERSION, etcdClusters, etcdMembers } from '../../../src/api/names.ts';
import { HttpClient } from '../../../src/kube/http-client.ts';
import type { Identity } from '../../../src/kube/identity.ts';
import type { KubeObject, Ref, Resource } from '../../../src/kube/object.ts';
import { Transport } from '../../../src/kube/transport.ts';
import { bundle } from '../../../tools/image/bundle.ts';
import { UserClient } from '../etcd-client.ts';
import { type FaultProxy, startFaultProxy } from '../faults/proxy.ts';
import { Kubelet } from '../kubelet/kubelet.ts';
import { PortForwarding } from '../kubelet/kubelet-api.ts';
import { removeFolder } from '../kubelet/pod-run.ts';
import { AgentRuns } from './agent-runs.ts';
import { auditText } from './audit.ts';
import { type ApiServer, type ControlPlaneOptions, startControlPlane, writeKubeconfig } from './control-plane.ts';
import { type Child, eventually, Processes } from './processes.ts';

export const clusters: Resource<EtcdCluster> = etcdClusters;
export const members: Resource<EtcdMember> = etcdMembers;

export interface World {
  readonly admin: HttpClient;
  readonly kubelet: Kubelet;
  readonly etcd: UserClient;
  readonly apiServer: ApiServer;
  /** A faulty proxy to the API server, and flags that make an operator use it. It is closed with the world. */
  faultProxy(): Promise<FaultProxy & { readonly flags: readonly string[] }>;
  startOperator(...flags: readonly string[]): Child;
  /** A user without any permissions. */
  readonly tenant: HttpClient;
  /** What the API server has logged, if the world was started so. */
  audit(): string;
  /** Of everything that it has started. */
  readonly folder: string;
  /** From now on, the API server forwards ports of Pods, as it does for kubectl, and has this log of every container. */
  forwardPorts(log?: string): Promise<void>;
  /** From now on, the Pods of Jobs run. They end with the world. */
  runAgents(): AgentRuns;
  /** A new namespace that admits only Pods of the restricted level. */
  namespace(): Promise<string>;
  createCluster(namespace: string, name: string, spec?: Partial<EtcdClusterSpec>): Promise<EtcdCluster>;
  list<T extends KubeObject>(resource: Resource<T>, namespace: string): Promise<readonly T[]>;
  /** Waits until a condition of the cluster has this status, and this reason if one is given. */
  condition(namespace: string, name: string, type: string, status: string, reason?: string): Promise<EtcdCluster>;
  /** Waits longer than usual: for a world in which everything is late. */
  patiently(timeoutMs: number): Pick<World, 'condition'>;
  stop(): Promise<void>;
}

/** With our CRDs unless others are given. */
export async function startWorld(
  definitions: readonly CustomResourceDefinition[] = crds,
  options: Pick<ControlPlaneOptions, 'audit'> = {},
): Promise<World> {
  const folder = mkdtempSync(join(tmpdir(), 'etcd-operator-test-'));
  const processes = new Processes(folder);
  try {
    return await assemble(folder, processes, { ...options, definitions });
  } catch (error) {
    await processes.stopAll();
    throw error;
  }
}

async function assemble(folder: string, processes: Processes, options: ControlPlaneOptions): Promise<World> {
  const plane = await startControlPlane(processes, folder, options);
  const { admin, operatorKubeconfig, operator, etcdBinary, apiServer } = plane;
  const tenant = new HttpClient(new Transport(() => Promise.resolve(plane.tenant)));
  const kubelet = new Kubelet(admin, processes, folder, etcdBinary);
  await kubelet.register();
  const etcd = new UserClient(() => performance.now());
  // As in the image: one file, which starts in a third of the time.
  const program = join(folder, 'manager.mjs');
  writeFileSync(program, (await bundle('src/bin/operator.ts')).code);
  let namespaces = 0;
  const proxies: FaultProxy[] = [];
  const forwarding = new PortForwarding(kubelet);
  return {
    admin,
    kubelet,
    etcd,
    apiServer,
    tenant,
    folder,
    audit: () => auditText(folder),
    faultProxy: proxyMaker(operator, folder, proxies),
    startOperator: (...flags) =>
      processes.start('operator', process.execPath, [
        program,
        `--kubeconfig=${operatorKubeconfig}`,
        '--metrics-bind-address=0',
        '--health-probe-bind-address=0',
        ...flags,
      ]),
    forwardPorts: (log) => forwarding.start(log),
    runAgents: () => new AgentRuns({ client: admin, processes, folder, kubelet }),
    namespace: () => createNamespace(admin, `test-${++namespaces}`),
    createCluster: (namespace, name, spec = {}) =>
      admin.create(clusters, {
        apiVersion: API_VERSION,
        kind: 'EtcdCluster',
        metadata: { name, namespace },
        spec: { replicas: 1, version: '3.6.16', ...spec },
      }),
    list: async (resource, namespace) => {
      const found = [];
      for await (const page of admin.pages(resource, { namespace })) found.push(...page.items);
      return found;
    },
    condition: (namespace, name, ...wanted) => condition(admin, { namespace, name }, 30_000, ...wanted),
    patiently: (timeoutMs) => ({
      condition: (namespace, name, ...wanted) => condition(admin, { namespace, name }, timeoutMs, ...wanted),
    }),
    stop: async () => {
      forwarding.stop();
      await kubelet.stop();
      etcd.close();
      await processes.stopAll();
      await Promise.all(proxies.map((proxy) => proxy.close()));
      await Promise.all([admin, tenant].map(({ transport }) => transport.close()));
      removeFolder(folder);
    },
  };
}

const proxyMaker =
  (operator: Identity, folder: string, proxies: FaultProxy[]): World['faultProxy'] =>
  async () => {
    const proxy = await startFaultProxy(operator);
    proxies.push(proxy);
    const { server, ca = '', token = '' } = proxy.identity;
    return {
      ...proxy,
      flags: [`--kubeconfig=${writeKubeconfig(folder, `proxy-${proxies.length}`, server, ca, token)}`],
    };
  };

async function createNamespace(admin: HttpClient, name: string): Promise<string> {
  const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' };
  await admin.transport.json('/api/v1/namespaces', { method: 'POST', body: { metadata: { name, labels } } });
  return name;
}

/** Ten tests may wait at once: with 20 polls a second each, the API server has no time for anything else. */
const CONDITION_POLL_MS = 200;

function condition(
  admin: HttpClient,
  ref: Ref,
  timeoutMs: number,
  type: string,
  status: string,
  reason?: string,
): Promise<EtcdCluster> {
  return eventually(
    `${type}=${status}${reason ? `/${reason}` : ''} of ${ref.name}`,
    async () => {
      const cluster = await admin.get(clusters, ref);
      const condition = cluster?.status?.conditions?.find((c) => c.type === type);
      return condition?.status === status && (reason === undefined || condition.reason === reason)
        ? cluster
        : undefined;
    },
    { timeoutMs, everyMs: CONDITION_POLL_MS, seen: async () => (await admin.get(clusters, ref))?.status },
  );
}
