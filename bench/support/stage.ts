/** Three real nodes with the operator's chart, and one cluster at a time: how long what a user asks for takes there. */
import type { EtcdCluster } from '../../src/api/etcd-cluster.ts';
import { API_VERSION, CLUSTER_LABEL, etcdClusters } from '../../src/api/names.ts';
import type { PersistentVolumeClaim, Pod } from '../../src/gen/kube.ts';
import { HttpClient } from '../../src/kube/http-client.ts';
import { identityFromKubeconfig } from '../../src/kube/kubeconfig.ts';
import type { Resource } from '../../src/kube/object.ts';
import { persistentVolumeClaims, pods } from '../../src/kube/resources.ts';
import { Transport } from '../../src/kube/transport.ts';
import { eventually } from '../../test/support/servers/processes.ts';

export type Progress = (detail: string) => void;
export type Storage = NonNullable<EtcdCluster['spec']['storage']>;

const NAMESPACE = 'bench';
const CLUSTER = 'scratch';
/** etcd rejects another MemberAdd for five seconds after a member was added: an idle cluster is older than that. */
export const REST_MS = 10_000;
const clusterKind: Resource<EtcdCluster> = etcdClusters;
const podKind: Resource<Pod> = pods;
const claimKind: Resource<PersistentVolumeClaim> = persistentVolumeClaims;

export async function withStage<T>(progress: Progress, measured: (stage: Stage) => Promise<T>): Promise<T> {
  const local = await import('../../local/cluster.ts');
  const { etcdImageArchive } = await import('../../local/images.ts');
  const { installOperator, operatorImage } = await import('../../local/operator.ts');
  progress('starting three nodes');
  const cluster = await local.up(CLUSTER, { etcd: ['3.6'] });
  try {
    await cluster.load([await etcdImageArchive('3.6')]);
    await installOperator(cluster, await operatorImage());
    await cluster.apply([{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } }]);
    const source = identityFromKubeconfig(cluster.kubeconfig, {}, () => performance.now());
    const client = new HttpClient(new Transport(source));
    try {
      return await measured(new Stage(client));
    } finally {
      await client.transport.close();
    }
  } finally {
    await local.down(CLUSTER);
  }
}

export class Stage {
  readonly #client: HttpClient;
  constructor(client: HttpClient) {
    this.#client = client;
  }

  create(name: string, storage: Storage): Promise<number> {
    return this.#timed(name, 3, () =>
      this.#client.create(clusterKind, {
        apiVersion: API_VERSION,
        kind: 'EtcdCluster',
        metadata: { name, namespace: NAMESPACE },
        spec: { replicas: 3, version: '3.6.16', storage },
      }),
    );
  }

  edited(name: string, spec: Readonly<Record<string, unknown>>, replicas: number): Promise<number> {
    return this.#timed(name, replicas, () => this.#client.patch(clusterKind, { namespace: NAMESPACE, name }, { spec }));
  }

  async remove(name: string): Promise<void> {
    const ref = { namespace: NAMESPACE, name };
    const uid = (await this.#client.get(clusterKind, ref))?.metadata.uid ?? '';
    await this.#client.delete(clusterKind, ref, { uid });
    await eventually('no Pod to be left', async () => (await this.#pods(name)).length === 0 || undefined, {
      timeoutMs: 60_000,
    });
  }

  /** Until the wanted number of members are ready voters with the present spec, and the cluster reports that it is done. */
  async #timed(name: string, replicas: number, act: () => Promise<unknown>): Promise<number> {
    const started = performance.now();
    await act();
    await eventually(`${replicas} members of ${name}`, async () => (await this.#isDone(name, replicas)) || undefined, {
      timeoutMs: 120_000,
      everyMs: 25,
      seen: async () => (await this.#client.get(clusterKind, { namespace: NAMESPACE, name }))?.status,
    });
    return performance.now() - started;
  }

  async #isDone(name: string, replicas: number): Promise<boolean> {
    const found = await this.#client.get(clusterKind, { namespace: NAMESPACE, name });
    const progressing = found?.status?.conditions?.find(({ type }) => type === 'Progressing');
    return (
      found?.status?.readyMembers === replicas &&
      found.status.members?.length === replicas &&
      found.status.updatedMembers === replicas &&
      progressing?.status === 'False' &&
      progressing.observedGeneration === found.metadata.generation
    );
  }

  /** Deletes a member's Pod: if that was its data, another member replaces it. */
  async healed(name: string, inMemory: boolean): Promise<number> {
    const [pod] = await this.#pods(name);
    const ref = { namespace: NAMESPACE, name: pod?.metadata.name ?? '' };
    const started = performance.now();
    await this.#client.delete(podKind, ref, { uid: pod?.metadata.uid ?? '' });
    await eventually(
      `a replacement for ${ref.name}`,
      async () => {
        const members = (await this.#client.get(clusterKind, { namespace: NAMESPACE, name }))?.status?.members ?? [];
        const found = inMemory ? undefined : await this.#client.get(podKind, ref);
        const replaced = inMemory
          ? !members.some((m) => m.name === ref.name)
          : found !== undefined && found.metadata.uid !== pod?.metadata.uid;
        return (replaced && (await this.#isDone(name, 3))) || undefined;
      },
      { timeoutMs: 120_000, everyMs: 25, seen: () => this.#client.get(clusterKind, { namespace: NAMESPACE, name }) },
    );
    return performance.now() - started;
  }

  /** A copy of a member's Pod, as a cluster of its own. */
  async single(name: string): Promise<number> {
    const [model] = await this.#pods(name);
    const [etcd] = model?.spec?.containers ?? [];
    if (!model?.spec || !etcd) throw new Error(`${name} has no Pod to copy`);
    const own = `${name}-single`;
    const ref = { namespace: NAMESPACE, name: own };
    const { nodeName: _node, hostname: _h, subdomain: _s, affinity: _a, ...spec } = model.spec;
    const volumes = (spec.volumes ?? []).map((volume) =>
      volume.persistentVolumeClaim ? { ...volume, persistentVolumeClaim: { claimName: own } } : volume,
    );
    const pod: Pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { ...ref, ...(model.metadata.annotations && { annotations: model.metadata.annotations }) }, // etcd's flags come from annotations
      spec: { ...spec, volumes, containers: [{ ...etcd, command: alone(etcd.command ?? [], own) }] },
    };
    const started = performance.now();
    if (volumes.some(({ persistentVolumeClaim }) => persistentVolumeClaim))
      await this.#client.create(claimKind, {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: ref,
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '256Mi' } } },
      });
    const made = await this.#client.create(podKind, pod);
    await eventually(
      'one etcd to be ready',
      async () => {
        const found = await this.#client.get(podKind, ref);
        return found?.status?.conditions?.find((c) => c.type === 'Ready')?.status === 'True' || undefined;
      },
      { timeoutMs: 60_000, everyMs: 25, seen: async () => (await this.#client.get(podKind, ref))?.status },
    );
    const ms = performance.now() - started;
    await this.#client.delete(podKind, ref, { uid: made.metadata.uid ?? '' });
    return ms;
  }

  async #pods(name: string): Promise<readonly Pod[]> {
    const found: Pod[] = [];
    const selector = `${CLUSTER_LABEL}=${name}`;
    for await (const page of this.#client.pages(podKind, { namespace: NAMESPACE, selector })) found.push(...page.items);
    return found;
  }
}

/** The same command line for a single-member cluster. */
const alone = (command: readonly string[], name: string): string[] =>
  command.map((word) => {
    const [flag] = word.split('=');
    if (flag === '--name') return `--name=${name}`;
    if (flag === '--initial-cluster') return `--initial-cluster=${name}=http://127.0.0.1:2380`;
    if (flag === '--initial-advertise-peer-urls') return '--initial-advertise-peer-urls=http://127.0.0.1:2380';
    if (flag === '--initial-cluster-state') return '--initial-cluster-state=new';
    return word;
  });
