/** What a kubelet derives from a Pod's spec: the command line of its container, the probe, and the status. Pure. */
import type { ContainerState, ContainerStatus, Pod } from '../../../src/gen/kube.ts';

/** The second one is that of a StatefulSet which etcd-migrate has adopted. */
const DATA_MOUNT = /\/var\/(lib|run)\/etcd/;

/** Local paths and addresses in place of those inside a container. */
export interface Place {
  /** The address to listen on instead of all addresses. */
  readonly address: string;
  /** The folder in place of its volume. */
  readonly data: string;
  /** The IP in the Pod's status. */
  readonly podIP: string;
  /** Further folders, by their path inside the container. */
  readonly mounts: Readonly<Record<string, string>>;
}

const containerOf = (pod: Pod) => pod.spec?.containers[0];

/** Variables are resolved at every start of a container: a changed annotation takes effect at the next start. */
export function environment(pod: Pod, podIP: string): Readonly<Record<string, string>> {
  const made: Record<string, string> = {};
  for (const { name, value, valueFrom } of containerOf(pod)?.env ?? []) {
    const path = valueFrom?.fieldRef?.fieldPath;
    if (valueFrom && path === undefined)
      throw new Error(`the variable ${name} has a source that this kubelet does not support`);
    made[name] = path === undefined ? expand(value ?? '', made) : field(pod, podIP, path);
  }
  return made;
}

function field({ metadata }: Pod, podIP: string, path: string): string {
  const [, map, key = ''] = /^metadata\.(annotations|labels)\['(.+)'\]$/.exec(path) ?? [];
  if (map === 'annotations' || map === 'labels') return metadata[map]?.[key] ?? '';
  if (path === 'status.podIP') return podIP;
  const plain = {
    'metadata.name': metadata.name,
    'metadata.namespace': metadata.namespace,
    'metadata.uid': metadata.uid,
  };
  const value = plain[path as keyof typeof plain];
  if (value === undefined) throw new Error(`this kubelet does not support the field ${path}`);
  return value;
}

/** `$(NAME)` as Kubernetes expands it: an unknown name stays as it is, and `$$` is one dollar sign. */
export const expand = (text: string, variables: Readonly<Record<string, string>>): string =>
  text.replace(/\$\$|\$\(([A-Za-z_][\w.-]*)\)/g, (whole, name?: string) =>
    name === undefined ? '$' : (variables[name] ?? whole),
  );

/** The arguments of its etcd. */
export function argumentsOf(pod: Pod, { address, data, podIP, mounts }: Place): readonly string[] {
  const { command = [], args = [] } = containerOf(pod) ?? {};
  const [, ...words] = [...command, ...args].map((word) => expand(word, environment(pod, podIP)));
  return words.map((word) => {
    if (word.startsWith('--listen-')) return word.replaceAll('0.0.0.0', address);
    if (word.startsWith('--data-dir=')) return word.replace(DATA_MOUNT, data);
    const mounted = Object.keys(mounts).find((path) => word.includes(`=${path}/`));
    return mounted === undefined ? word : word.replace(mounted, mounts[mounted] ?? '');
  });
}

export const isEtcd = (pod: Pod): boolean => containerOf(pod)?.command?.[0] === 'etcd';

/** The URL of the Pod's own readiness probe. */
export function readinessURL(pod: Pod, address: string): string {
  const probe = containerOf(pod)?.readinessProbe?.httpGet;
  if (!probe) throw new Error(`the Pod ${pod.metadata.name} has a readiness probe that this kubelet does not support`);
  return `http://${address}:${probe.port}${probe.path ?? '/'}`;
}

/** A ready Pod becomes unready after this many failed probes in a row, by default three: one late response means nothing. */
export const readyFor = (pod: Pod): number => containerOf(pod)?.readinessProbe?.failureThreshold ?? 3;

export interface Reported {
  readonly podIP: string;
  readonly startedAt: string;
  readonly ready: boolean;
  readonly readySince: string;
  readonly restarts: number;
  readonly state: ContainerState;
  readonly lastState?: ContainerState;
  /** Of its init containers. */
  readonly init?: readonly ContainerStatus[];
  /** Why no node suits it. */
  readonly unschedulable?: string;
}

export function podStatus(pod: Pod, r: Reported): NonNullable<Pod['status']> {
  const { name = '', image = '' } = containerOf(pod) ?? {};
  const condition = (type: string, status: boolean, lastTransitionTime: string) => ({
    type,
    status: status ? 'True' : 'False',
    lastTransitionTime,
  });
  if (r.unschedulable !== undefined) {
    const reason = { reason: 'Unschedulable', message: r.unschedulable };
    return { phase: 'Pending', conditions: [{ ...condition('PodScheduled', false, r.startedAt), ...reason }] };
  }
  const pulling = r.state.waiting?.reason === 'ImagePullBackOff';
  return {
    phase: pulling || r.init?.every(({ ready }) => ready) === false ? 'Pending' : 'Running',
    podIP: r.podIP,
    podIPs: [{ ip: r.podIP }],
    startTime: r.startedAt,
    conditions: [
      condition('PodScheduled', true, r.startedAt),
      condition('ContainersReady', r.ready, r.readySince),
      condition('Ready', r.ready, r.readySince),
    ],
    ...(r.init && { initContainerStatuses: r.init }),
    containerStatuses: [
      {
        name,
        image,
        imageID: image,
        ready: r.ready,
        started: r.state.running !== undefined,
        restartCount: r.restarts,
        state: r.state,
        ...(r.lastState && { lastState: r.lastState }),
      },
    ],
  };
}
