/** What a kubelet makes of a Pod's spec: the command line of its container, the probe, and what it reports. Pure. */
import type { ContainerState, ContainerStatus, Pod } from '../../../src/gen/kube.ts';

const DATA_MOUNT = '/var/lib/etcd';

/** Where things are for this process instead of inside a container. */
export interface Place {
  /** Where it listens instead of on every address. */
  readonly address: string;
  /** What it takes for its volume. */
  readonly data: string;
  /** What the Pod's status says. */
  readonly podIP: string;
  /** Further folders, by where they are inside of the container. */
  readonly mounts: Readonly<Record<string, string>>;
}

const containerOf = (pod: Pod) => pod.spec?.containers[0];

/** Variables are read anew at every start of a container: a changed annotation counts from the next start on. */
export function environment(pod: Pod, podIP: string): Readonly<Record<string, string>> {
  const made: Record<string, string> = {};
  for (const { name, value, valueFrom } of containerOf(pod)?.env ?? []) {
    const path = valueFrom?.fieldRef?.fieldPath;
    if (valueFrom && path === undefined) throw new Error(`the variable ${name} comes from where we cannot look`);
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
  if (value === undefined) throw new Error(`no field ${path} is known here`);
  return value;
}

/** `$(NAME)` as Kubernetes replaces it: an unknown name stays as it is, and two dollar signs are one. */
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

/** What the Pod itself says by which it is ready. */
export function readinessURL(pod: Pod, address: string): string {
  const probe = containerOf(pod)?.readinessProbe?.httpGet;
  if (!probe) throw new Error(`the Pod ${pod.metadata.name} is probed in a way that is not known here`);
  return `http://${address}:${probe.port}${probe.path ?? '/'}`;
}

/** So many probes in a row must fail before a Pod that was ready is not: one that is late says nothing. Three, unless it says so. */
export const readyFor = (pod: Pod): number => containerOf(pod)?.readinessProbe?.failureThreshold ?? 3;

export interface Reported {
  readonly podIP: string;
  readonly startedAt: string;
  readonly ready: boolean;
  readonly readySince: string;
  readonly restarts: number;
  readonly state: ContainerState;
  readonly lastState?: ContainerState;
  /** Of what runs before it. */
  readonly init?: readonly ContainerStatus[];
}

export function podStatus(pod: Pod, r: Reported): NonNullable<Pod['status']> {
  const { name = '', image = '' } = containerOf(pod) ?? {};
  const condition = (type: string, status: boolean, lastTransitionTime: string) => ({
    type,
    status: status ? 'True' : 'False',
    lastTransitionTime,
  });
  return {
    phase: r.init?.every(({ ready }) => ready) === false ? 'Pending' : 'Running',
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
