/** A tenant of the test cluster: its own namespace at the restricted level, and the steps of a user's journey. */
import { onTestFinished } from 'vitest';
import { type LocalCluster, running } from '../../../local/cluster.ts';
import { ETCD_VERSIONS } from '../../../local/images.ts';
import { eventually } from '../servers/processes.ts';
import { readerOf } from './kube-reader.ts';

export const KIND = 'etcdclusters.etcd-operator.cozystack.io';
export const MEMBER_KIND = 'etcdmembers.etcd-operator.cozystack.io';

export async function testCluster(): Promise<LocalCluster> {
  const cluster = await running('test');
  if (!cluster) throw new Error('the test cluster is not running: ./dev test e2e starts it');
  return cluster;
}

/** Long enough for several journeys at once on two cores. */
const PATIENCE_MS = 240_000;

/** Waits for what a user would wait for: retries until the assertion holds. */
export async function becomes<T>(what: string, assertion: () => Promise<T>, everyMs = 250): Promise<T> {
  const met = async (): Promise<{ readonly value: T }> => ({ value: await assertion() });
  return (await eventually(what, met, { timeoutMs: PATIENCE_MS, everyMs })).value;
}

export interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration?: number;
}
export interface AnObject {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly resourceVersion: string;
    readonly generation?: number;
    readonly deletionTimestamp?: string;
    readonly ownerReferences?: readonly unknown[];
    readonly managedFields?: readonly {
      readonly manager: string;
      readonly subresource?: string;
      readonly time: string;
    }[];
  };
  readonly spec: Readonly<Record<string, unknown>>;
  readonly status?: {
    readonly conditions?: readonly Condition[];
    readonly clusterID?: string;
    readonly readyMembers?: number;
    readonly memberID?: string;
    readonly podIP?: string;
    readonly containerStatuses?: readonly { readonly restartCount: number }[];
  };
}

export class Tenant {
  readonly cluster: LocalCluster;
  readonly namespace: string;
  constructor(cluster: LocalCluster, namespace: string) {
    this.cluster = cluster;
    this.namespace = namespace;
  }

  kubectl(...args: readonly string[]): Promise<string> {
    return this.cluster.kubectl(['-n', this.namespace, ...args]);
  }

  /** With all the given labels. */
  async list(kind: string, ...labels: readonly string[]): Promise<readonly AnObject[]> {
    return (await readerOf(this.cluster).list(kind, this.namespace, labels)) as readonly AnObject[];
  }

  async get(kind: string, name: string): Promise<AnObject> {
    return (await readerOf(this.cluster).get(kind, this.namespace, name)) as AnObject;
  }

  /** Creates an EtcdCluster as a user would with `kubectl create`; rejects with the message when admission refuses it. */
  async create(name: string, spec: Readonly<Record<string, unknown>> = {}): Promise<void> {
    const object = {
      apiVersion: 'etcd-operator.cozystack.io/v1alpha2',
      kind: 'EtcdCluster',
      metadata: { name, namespace: this.namespace },
      spec: { replicas: 1, version: ETCD_VERSIONS['3.6'], storage: { size: '256Mi' }, ...spec },
    };
    await this.cluster.kubectl(['create', '-f', '-'], JSON.stringify(object));
  }

  /** Edits the spec as a user would with `kubectl patch`. */
  async edit(name: string, spec: Readonly<Record<string, unknown>>): Promise<void> {
    await this.kubectl('patch', KIND, name, '--type=merge', '-p', JSON.stringify({ spec }));
  }

  async available(name: string, timeoutSeconds = 90): Promise<AnObject> {
    await this.kubectl('wait', '--for=condition=Available', `--timeout=${timeoutSeconds}s`, `${KIND}/${name}`);
    return this.get(KIND, name);
  }

  /** Calls the cluster through its client Service, from inside Kubernetes. */
  async etcdctl(name: string, ...args: readonly string[]): Promise<string> {
    const pods = await this.list('pods', `etcd-operator.cozystack.io/cluster=${name}`);
    const pod = pods.find(({ metadata }) => metadata.deletionTimestamp === undefined);
    if (!pod) throw new Error(`${name} has no Pod`);
    const files = clientFiles(pod);
    const scheme = files.length > 0 ? 'https' : 'http';
    const endpoint = `--endpoints=${scheme}://${name}-client.${this.namespace}.svc:2379`;
    return (await this.kubectl('exec', pod.metadata.name, '--', 'etcdctl', endpoint, ...files, ...args)).trim();
  }

  /** The same, retried until it is served: nodes program a Service a moment after the status reports that all is well. */
  served(name: string, ...args: readonly string[]): Promise<string> {
    return becomes(`etcdctl ${args.join(' ')} to be served`, () => this.etcdctl(name, ...args));
  }
}

/** For clusters with TLS: the certificates that members mount also work for a client. */
function clientFiles({ spec }: AnObject): readonly string[] {
  const volumes = (spec['volumes'] ?? []) as readonly { readonly name: string }[];
  const folder = '/etc/etcd/tls/client';
  return volumes.some(({ name }) => name === 'tls-client')
    ? [`--cacert=${folder}/ca.crt`, `--cert=${folder}/tls.crt`, `--key=${folder}/tls.key`]
    : [];
}

/** A new namespace where only Pods of the restricted level are admitted; it is deleted with the test. */
export async function aTenant(): Promise<Tenant> {
  const cluster = await testCluster();
  const namespace = `t-${crypto.randomUUID().slice(0, 8)}`;
  const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' };
  await cluster.apply([{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels } }]);
  onTestFinished(async () => {
    if (process.env['DEV_KEEP'] !== '1') await cluster.kubectl(['delete', 'namespace', namespace, '--wait=false']);
  });
  return new Tenant(cluster, namespace);
}

export const conditionOf = (object: AnObject, type: string): Condition | undefined =>
  object.status?.conditions?.find((condition) => condition.type === type);
