/** What all agent Pods have in common: command, task, mounts and security context. */

import type { AgentResources } from '../api/agent-resources.ts';
import type { EtcdClusterSpec } from '../api/etcd-cluster.ts';
import type { EtcdSnapshotSpec } from '../api/etcd-snapshot.ts';
import type { ObjectMeta } from '../api/meta.ts';
import { CONFINED, USER } from '../api/security.ts';
import type { SnapshotLocation } from '../api/snapshot-location.ts';
import type {
  Container,
  EnvVar,
  Job,
  PodSecurityContext,
  PodSpec,
  ResourceRequirements,
  Volume,
  VolumeMount,
} from '../gen/kube.ts';
import { present } from '../lib/present.ts';
import { quantityBytes } from '../lib/quantity.ts';
import { HOPELESS_EXIT } from './agent-result.ts';
import { AGENT_RUNTIME } from './agent-runtime.ts';
import { MOUNTS, TASK_VARIABLE, type Task } from './agent-task.ts';
import { TOOLS_ENVIRONMENT, toolsCommand } from './agent-tools.ts';

/** Readable by the Pod's fsGroup, which the agent runs in, and by no other user. */
const MODE = 0o440;

/** Volumes and their mounts. */
export interface Mounted {
  readonly volumes: readonly Volume[];
  readonly mounts: readonly VolumeMount[];
}

export const together = (...parts: readonly Mounted[]): Mounted => ({
  volumes: parts.flatMap(({ volumes }) => volumes),
  mounts: parts.flatMap(({ mounts }) => mounts),
});

/** Some keys of a Secret as files; without keys, all of them. Optional, so that the agent reports a missing Secret: the kubelet would wait for ever. */
export function secretFiles(
  name: string,
  secretName: string,
  mountPath: string,
  keys: readonly string[] = [],
): Mounted {
  const items = keys.map((key) => ({ key, path: key }));
  return {
    volumes: [{ name, secret: { secretName, defaultMode: MODE, optional: true, ...(items.length > 0 && { items }) } }],
    mounts: [{ name, mountPath, readOnly: true }],
  };
}

interface MountedAt {
  readonly mountPath: string;
  readonly readOnly: boolean;
  /** Of a Pod that has another location as well. */
  readonly isSecond?: boolean;
}

/** What an agent needs to open a location: credentials, CA, PVC and encryption key. */
export function locationFiles(
  location: SnapshotLocation,
  encryption: EtcdSnapshotSpec['encryption'],
  { mountPath, readOnly, isSecond = false }: MountedAt,
): Mounted {
  const { s3, gcs, azure, pvc } = location;
  const credentials = (s3 ?? gcs ?? azure)?.credentialsSecretRef?.name;
  const mode = readOnly && { readOnly: true };
  const [store, volume] = isSecond ? ['copy-store', 'copies'] : ['store', 'snapshots'];
  const snapshots = pvc && {
    volumes: [{ name: volume, persistentVolumeClaim: { claimName: pvc.claimName, ...mode } }],
    mounts: [{ name: volume, mountPath, ...mode }],
  };
  const ca = (s3 ?? gcs ?? azure)?.caSecretRef?.name;
  const key = encryption?.keySecretRef.name;
  const [credentialsAt, caAt] = isSecond
    ? [MOUNTS.copyCredentials, MOUNTS.copyCa]
    : [MOUNTS.credentials, MOUNTS.storeCa];
  return together(
    ...(credentials === undefined ? [] : [secretFiles(store, credentials, credentialsAt)]),
    ...(ca === undefined ? [] : [secretFiles(`${store}-ca`, ca, caAt, ['ca.crt'])]),
    ...(key === undefined ? [] : [secretFiles('encryption', key, MOUNTS.encryption)]),
    ...(snapshots ? [snapshots] : []),
  );
}

/** The ServiceAccount whose cloud identity the Pod gets. */
export const serviceAccountOf = ({ s3, gcs, azure }: SnapshotLocation): string | undefined =>
  (s3 ?? gcs ?? azure)?.serviceAccountName;

/** As the restricted Pod Security Standard requires. */
export const agentSecurity: PodSecurityContext = {
  runAsNonRoot: true,
  runAsUser: USER,
  runAsGroup: USER,
  fsGroup: USER,
  fsGroupChangePolicy: 'OnRootMismatch',
  seccompProfile: { type: 'RuntimeDefault' },
};

export const AGENT_RESOURCES: ResourceRequirements = {
  requests: { cpu: '50m', memory: '64Mi' },
  limits: { memory: '256Mi' },
};

/** The user's amounts replace the defaults one by one. */
export function resourcesOf(stated: AgentResources | undefined, defaults: ResourceRequirements): ResourceRequirements {
  const merged = (kind: 'requests' | 'limits') => ({
    [kind]: {
      ...defaults[kind],
      ...Object.fromEntries(Object.entries(stated?.[kind] ?? {}).map(([name, amount]) => [name, String(amount)])),
    },
  });
  return { ...merged('requests'), ...merged('limits') };
}

/** The largest of these, which are bytes or quantities of a spec. */
export const memoryLimit = (...atLeast: readonly (number | string | undefined)[]): string =>
  `${Math.ceil(Math.max(...atLeast.map((amount) => quantityBytes(amount ?? 0))) / 2 ** 20)}Mi`;

/** The Node binary takes most of it. */
const TOOLS_ROOM = '512Mi';

/** Paths in the operator's image. */
export const AGENT_COMMAND: readonly string[] = ['/usr/local/bin/node', '/agent.mjs'];

/** The kubelet would expand $(NAME), and replace two dollars by one. */
const verbatim = (text: string): string => text.replaceAll('$', () => '$$');

interface AgentContainer {
  readonly name: string;
  readonly image: string;
  readonly task: Task;
  readonly mounts: readonly VolumeMount[];
  readonly command?: readonly string[];
  readonly env?: readonly EnvVar[];
  readonly resources?: ResourceRequirements;
}

export function agentContainer(container: AgentContainer): Container {
  const { name, image, task, mounts, command = AGENT_COMMAND, env = AGENT_RUNTIME } = container;
  return {
    name,
    image,
    command: [...command],
    args: [task.task],
    env: [{ name: TASK_VARIABLE, value: verbatim(JSON.stringify(task)) }, ...env],
    resources: container.resources ?? AGENT_RESOURCES,
    securityContext: CONFINED,
    terminationMessagePolicy: 'File',
    volumeMounts: [...mounts],
  };
}

/**
 * An agent in a container of the etcd image, for etcdutl of that version: the image has neither Node nor a libc, so an init
 * container of the operator's image copies them into a volume first.
 */
export function agentBesideEtcd(
  container: Omit<AgentContainer, 'image' | 'command'> & { readonly operatorImage: string; readonly etcdImage: string },
): { readonly install: Container; readonly agent: Container; readonly volume: Volume } {
  const { operatorImage, etcdImage, env = [], mounts, ...agent } = container;
  const tools = { name: 'tools', mountPath: MOUNTS.tools };
  return {
    install: agentContainer({
      name: 'install-tools',
      image: operatorImage,
      task: { task: 'install-tools' },
      mounts: [tools],
    }),
    agent: agentContainer({
      ...agent,
      image: etcdImage,
      command: toolsCommand(),
      env: [...TOOLS_ENVIRONMENT, ...env],
      mounts: [{ ...tools, readOnly: true }, ...mounts],
    }),
    volume: { name: 'tools', emptyDir: { sizeLimit: TOOLS_ROOM } },
  };
}

/** Agents are scheduled where members may run, without anti-affinity. */
const agentPlacement = ({ tolerations, nodeSelector, priorityClassName, imagePullSecrets }: EtcdClusterSpec) =>
  present({ tolerations, nodeSelector, priorityClassName, imagePullSecrets });

/** A Job that runs the agent in the first container of this Pod. */
export function agentJob({ metadata, seconds, keptSeconds, spec }: AgentJob): Job {
  const onExitCodes = { containerName: spec.containers[0]?.name ?? '', operator: 'In', values: [HOPELESS_EXIT] };
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata,
    spec: {
      backoffLimit: 3,
      podFailurePolicy: { rules: [{ action: 'FailJob', onExitCodes }] }, // no retry after a permanent failure
      activeDeadlineSeconds: seconds,
      ttlSecondsAfterFinished: keptSeconds,
      podReplacementPolicy: 'Failed', // two agents at once would write the same object
      template: { metadata: { ...(metadata.labels && { labels: metadata.labels }) }, spec },
    },
  };
}

interface AgentJob {
  readonly metadata: ObjectMeta;
  /** For all attempts together. */
  readonly seconds: number;
  /** How long the Job is kept after it has finished. */
  readonly keptSeconds: number;
  readonly spec: PodSpec;
}

/** The Pod of a Job that runs an agent once. */
export const agentPodSpec = (pod: {
  readonly cluster: EtcdClusterSpec;
  readonly location: SnapshotLocation;
  readonly second?: SnapshotLocation;
  readonly containers: readonly Container[];
  readonly initContainers?: readonly Container[];
  readonly volumes: readonly Volume[];
}): PodSpec => ({
  restartPolicy: 'Never',
  automountServiceAccountToken: false,
  enableServiceLinks: false,
  ...present({
    serviceAccountName: serviceAccountOf(pod.location) ?? (pod.second && serviceAccountOf(pod.second)),
    initContainers: pod.initContainers,
  }),
  ...agentPlacement(pod.cluster),
  securityContext: agentSecurity,
  containers: pod.containers,
  volumes: pod.volumes,
});
