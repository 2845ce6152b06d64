/** The Pod and the PVC of a member. */

import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdMember } from '../../api/etcd-member.ts';
import {
  CLIENT_PORT,
  clientURL,
  DATA_SUBPATH_ANNOTATION,
  etcdMembers,
  INITIAL_CHECK_ANNOTATION,
  INITIAL_CLUSTER_ANNOTATION,
  INITIAL_STATE_ANNOTATION,
  MEMBER_UID_ANNOTATION,
  METRICS_PORT,
  memberLabels,
  PEER_PORT,
  peerURL,
  ROLE_LABEL,
  ROLE_VOTER,
  volumeClaimName,
} from '../../api/names.ts';
import type { Resources } from '../../api/resources.ts';
import { CONFINED, etcdImageOf } from '../../api/security.ts';
import { metadataWith } from '../../domain/additional-metadata.ts';
import { STATE_VARIABLE } from '../../domain/agent-task.ts';
import { annotated, memberClientScheme, memberHost, memberPeerScheme, serviceOf } from '../../domain/member-address.ts';
import { identity, ownedBy } from '../../domain/ownership.ts';
import { stampAnnotation, stampOf } from '../../domain/pod-template.ts';
import { DEFAULT_GRACE_SECONDS, PRE_STOP_SECONDS } from '../../domain/timing.ts';
import type { Container, EnvVar, PersistentVolumeClaim, Pod, ResourceRequirements, Volume } from '../../gen/kube.ts';
import { present } from '../../lib/present.ts';
import { INITIAL_CHECK, learnerFlags, readinessPath, statedFlags } from './options.ts';
import { placement } from './placement.ts';
import { restoring } from './restore.ts';
import { tlsFlags, tlsMounts, tlsVolumes } from './tls.ts';

/** What etcd may do with an empty data directory: bootstrap a cluster, join one, or (once joined) nothing. */
export type InitialState = 'cluster' | 'member' | 'nothing';

const DATA = 'data';
const DATA_DIR = '/var/lib/etcd';
const dataMount = { name: DATA, mountPath: DATA_DIR };

/** An adopted member keeps its data directory. */
const dataDirOf = (m: EtcdMember): string =>
  [DATA_DIR, annotated(m, DATA_SUBPATH_ANNOTATION)].filter(Boolean).join('/');

/** Instead of an owner reference, with which the garbage collector would delete the PVC before etcd has removed the member, or against the deletionPolicy. */
export const volumeAnnotations = (member: EtcdMember): Readonly<Record<string, string>> => ({
  [MEMBER_UID_ANNOTATION]: member.metadata.uid ?? '',
});

export function volumeClaim(member: EtcdMember): PersistentVolumeClaim {
  const { size, storageClassName } = member.spec.storage;
  const { name, namespace } = identity(member);
  const annotations = volumeAnnotations(member);
  const labels = memberLabels(member.spec.clusterName, name);
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      name: volumeClaimName(name),
      namespace,
      ...metadataWith(member.spec.additionalMetadata, labels, { annotations, on: 'volume' }),
    },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: String(size) } },
      ...(storageClassName !== undefined && { storageClassName }),
    },
  };
}

/** The labels of a member's Pod. The client Service selects by role: the label of a learner would route clients to it. */
export const podLabels = (member: EtcdMember, votes: boolean): Readonly<Record<string, string>> => ({
  ...memberLabels(member.spec.clusterName, identity(member).name),
  ...(votes && { [ROLE_LABEL]: ROLE_VOTER }),
});

/**
 * etcd reads from a Pod annotation at every start what it may do with an empty data directory. The annotation changes once the
 * member has joined: after a container restart, an emptied volume would otherwise bootstrap a second, empty cluster under the
 * same ids, or rejoin as a voter that has lost the log that it acknowledged.
 */
const fromAnnotation = (name: string, annotation: string): EnvVar => ({
  name,
  valueFrom: { fieldRef: { fieldPath: `metadata.annotations['${annotation}']` } },
});
const LIST = 'INITIAL_CLUSTER';

/** An --initial-cluster that etcd cannot join with. An etcd that has its data ignores it. */
const listOfOne = (member: EtcdMember): string => {
  const { name, namespace } = identity(member);
  return `${name}=${peerURL(name, serviceOf(member), namespace, memberPeerScheme(member))}`;
};

/** The annotation that lets a member bootstrap or join, with its values before and after that. */
export function initialStateOf(
  member: EtcdMember,
  initialState: Exclude<InitialState, 'nothing'>,
): { readonly annotation: string; readonly env: EnvVar; readonly before: string; readonly after: string } {
  if (initialState === 'cluster') {
    const env = fromAnnotation(STATE_VARIABLE, INITIAL_STATE_ANNOTATION);
    return { annotation: INITIAL_STATE_ANNOTATION, env, before: 'new', after: 'existing' };
  }
  const env = fromAnnotation(LIST, INITIAL_CLUSTER_ANNOTATION);
  const { initialCluster: before } = member.spec;
  return { annotation: INITIAL_CLUSTER_ANNOTATION, env, before, after: listOfOne(member) };
}

/**
 * With a restore, the init container reads the annotation and writes the data directory. etcd itself starts with that data or
 * not at all: an emptied volume would otherwise become an empty cluster in place of the restored one.
 */
const bootstrapFlags = (member: EtcdMember, initialState: InitialState): boolean =>
  initialState === 'cluster' && member.spec.restore === undefined;

/**
 * What etcd reads from its Pod's annotations at every start. Members that start together must not run the initial corruption
 * check: each would wait seven seconds for each of the others, none of which serves yet. A new member has no data to compare.
 */
function readsInitialCluster(member: EtcdMember, initialState: InitialState, hasCompany: boolean) {
  const initial = initialState === 'nothing' ? undefined : initialStateOf(member, initialState);
  const checks = member.spec.options?.corruptionCheck?.initial === true;
  return {
    env: [
      ...(initial && (initialState === 'member' || bootstrapFlags(member, initialState)) ? [initial.env] : []),
      ...(checks ? [fromAnnotation(INITIAL_CHECK, INITIAL_CHECK_ANNOTATION)] : []),
    ],
    annotations: {
      ...(initial && { [initial.annotation]: initial.before }),
      ...(checks && { [INITIAL_CHECK_ANNOTATION]: String(!initial && hasCompany) }),
    },
  };
}

function command(member: EtcdMember, initialState: InitialState): readonly string[] {
  const { clusterToken } = member.spec;
  const { name, namespace } = identity(member);
  const service = serviceOf(member);
  const [client, peer] = [memberClientScheme(member), memberPeerScheme(member)];
  return [
    'etcd',
    `--name=${name}`,
    `--data-dir=${dataDirOf(member)}`,
    `--listen-peer-urls=${peer}://0.0.0.0:${PEER_PORT}`,
    `--listen-client-urls=${client}://0.0.0.0:${CLIENT_PORT}`,
    `--advertise-client-urls=${clientURL(name, service, namespace, client)}`,
    `--initial-advertise-peer-urls=${peerURL(name, service, namespace, peer)}`,
    `--initial-cluster=${initialState === 'member' ? `$(${LIST})` : listOfOne(member)}`,
    `--initial-cluster-token=${clusterToken}`,
    `--initial-cluster-state=${bootstrapFlags(member, initialState) ? `$(${STATE_VARIABLE})` : 'existing'}`,
    `--listen-metrics-urls=http://0.0.0.0:${METRICS_PORT}`,
    ...learnerFlags(member.spec.maxLearners, member.spec.version),
    ...statedFlags(member.spec.options, member.spec.extraArgs, member.spec.version),
    ...tlsFlags(member),
  ];
}

/** The user's resources replace the defaults as a whole, as with the earlier operator. */
const DEFAULT_RESOURCES: ResourceRequirements = { requests: { cpu: '100m', memory: '128Mi' } };
const amounts = (map: Resources['limits']): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(map ?? {}).map(([name, amount]) => [name, String(amount)]));
function resources(stated: Resources | undefined): ResourceRequirements {
  const { claims, limits, requests } = stated ?? {};
  if (!claims && !limits && !requests) return DEFAULT_RESOURCES;
  return present({ claims, limits: limits && amounts(limits), requests: requests && amounts(requests) });
}

/**
 * A Pod that is being deleted leaves the client Service at once, and nodes learn of it later: connections that they still route to
 * it would be refused by an etcd that stops. Meanwhile the operator takes the leadership from it. The API server refuses a sleep
 * that is longer than the grace period, and etcd needs a part of that to stop.
 */
function lifecycle({ spec }: EtcdMember): Pick<Container, 'lifecycle'> {
  const grace = spec.terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS;
  const seconds = Math.min(PRE_STOP_SECONDS, Math.floor(grace / 2));
  return seconds > 0 ? { lifecycle: { preStop: { sleep: { seconds } } } } : {};
}

const etcdContainer = (
  member: EtcdMember,
  image: string,
  initialState: InitialState,
  env: readonly EnvVar[],
): Container => ({
  name: 'etcd',
  image,
  command: command(member, initialState),
  ...(env.length > 0 && { env }),
  ports: [
    { name: 'client', containerPort: CLIENT_PORT, protocol: 'TCP' },
    { name: 'peer', containerPort: PEER_PORT, protocol: 'TCP' },
    { name: 'metrics', containerPort: METRICS_PORT, protocol: 'TCP' },
  ],
  resources: resources(member.spec.resources),
  volumeMounts: [dataMount, ...tlsMounts(member)],
  terminationMessagePolicy: 'FallbackToLogsOnError', // the termination message is the evidence whether the data is usable
  // Checks only that the process listens: restarting a member because its peers are unreachable would cost quorum.
  livenessProbe: { tcpSocket: { port: PEER_PORT }, initialDelaySeconds: 15, periodSeconds: 10, failureThreshold: 3 },
  readinessProbe: {
    httpGet: { path: readinessPath(member.spec.version), port: METRICS_PORT },
    periodSeconds: 1,
    failureThreshold: 3,
  },
  ...lifecycle(member),
  securityContext: CONFINED,
});

const dataVolume = (member: EtcdMember): Volume =>
  member.spec.storage.medium === 'Memory'
    ? { name: DATA, emptyDir: { medium: 'Memory', sizeLimit: String(member.spec.storage.size) } }
    : { name: DATA, persistentVolumeClaim: { claimName: volumeClaimName(identity(member).name) } };

export function memberPod(
  member: EtcdMember,
  options: {
    readonly imageRepository: string;
    readonly initialState: InitialState;
    readonly votes: boolean;
    /** Another member serves, so etcd can compare its data at start. */
    readonly hasCompany: boolean;
    /** The agent's image, and whether auth is enabled; for a seed that restores a snapshot. */
    readonly restore?: { readonly operatorImage: string; readonly auth: boolean };
    /** The recorded digests of the CA bundles. */
    readonly trust?: NonNullable<EtcdCluster['status']>['trust'];
  },
): Pod {
  const { env, annotations } = readsInitialCluster(member, options.initialState, options.hasCompany);
  const image = etcdImageOf(member.spec, options.imageRepository);
  const restore =
    options.restore &&
    options.initialState === 'cluster' &&
    restoring(member, {
      ...options.restore,
      etcdImage: image,
      dataDir: dataDirOf(member),
      data: dataMount,
      initial: initialStateOf(member, 'cluster').env,
    });
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: identity(member).name,
      namespace: identity(member).namespace,
      ...metadataWith(member.spec.additionalMetadata, podLabels(member, options.votes), {
        annotations: { ...annotations, ...stampAnnotation(stampOf(member, options.imageRepository)) },
      }),
      ownerReferences: ownedBy(etcdMembers, member),
    },
    spec: {
      hostname: identity(member).name,
      subdomain: serviceOf(member),
      // etcd resolves its own name when it joins. DNS may not have it yet, and caches the negative response.
      hostAliases: [{ ip: '127.0.0.1', hostnames: [memberHost(member)] }],
      automountServiceAccountToken: false,
      enableServiceLinks: false, // a Service called "etcd" would set ETCD_* variables, which etcd reads as flags
      ...placement(member),
      ...(restore && restore.pod),
      containers: [etcdContainer(member, image, options.initialState, env)],
      volumes: [dataVolume(member), ...tlsVolumes(member, options.trust), ...(restore ? restore.volumes : [])],
    },
  };
}
