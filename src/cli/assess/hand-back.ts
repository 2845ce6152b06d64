/**
 * What the Go operator needs of a cluster that this operator has managed, and what it cannot have. Each entry is from what its
 * controllers check: a PVC without the owner reference of its EtcdMember ends every reconcile of that member, and a Pod is created
 * with the Secrets that the EtcdMember names, which may be copies that only this operator renews.
 */
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdMember } from '../../api/etcd-member.ts';
import {
  etcdMembers,
  issuedPeerName,
  issuedServerName,
  MEMBER_UID_ANNOTATION,
  peerMountName,
  QUARANTINE_LABEL,
  serverMountName,
  volumeClaimName,
} from '../../api/names.ts';
import { controllerOf, identity, ownedBy } from '../../domain/ownership.ts';
import type { PersistentVolumeClaim, Pod } from '../../gen/kube.ts';

export interface HandedBack {
  readonly cluster: EtcdCluster;
  readonly members: readonly { readonly object: EtcdMember; readonly pod?: Pod }[];
  readonly volumes: readonly PersistentVolumeClaim[];
  readonly schedules: number;
}

export interface Change {
  readonly kind: 'EtcdMember' | 'PersistentVolumeClaim';
  readonly name: string;
  readonly fields: { readonly metadata: object; readonly spec?: object };
}

export interface Assessment {
  readonly changes: readonly Change[];
  /** What the Go operator cannot run, or what has to be done before. */
  readonly obstacles: readonly string[];
  /** What users lose or have to do afterwards. */
  readonly notes: readonly string[];
}

/** The fields of an EtcdCluster that the Go operator has. */
const SPEC = [
  'replicas',
  'version',
  'storage',
  'progressDeadlineSeconds',
  'tls',
  'auth',
  'bootstrap',
  'resources',
  'affinity',
  'topologySpreadConstraints',
  'additionalMetadata',
  'options',
  'imagePullSecrets',
];
const OPTIONS = ['quotaBackendBytes', 'autoCompactionMode', 'autoCompactionRetention', 'snapshotCount'];

const isInQuarantine = ({ metadata }: PersistentVolumeClaim): boolean =>
  metadata.labels?.[QUARANTINE_LABEL] !== undefined;

/** The resourceVersion: nothing is overwritten that another writer has changed since. */
const versioned = ({ metadata: { resourceVersion } }: { readonly metadata: { readonly resourceVersion?: string } }) =>
  resourceVersion === undefined ? {} : { resourceVersion };

type Found = Partial<Assessment>;

function volumeOf({ volumes }: HandedBack, member: EtcdMember): Found {
  const { name, uid } = identity(member);
  const volume = volumes.find(({ metadata }) => metadata.name === volumeClaimName(name));
  if (!volume || member.spec.storage.medium === 'Memory') return {};
  const owners = volume.metadata.ownerReferences ?? [];
  if (owners.some((owner) => owner.uid === uid)) return {};
  const recorded = volume.metadata.annotations?.[MEMBER_UID_ANNOTATION];
  const controller = controllerOf(volume);
  const foreign = controller
    ? `belongs to ${controller.kind} ${controller.name}`
    : recorded !== undefined && recorded !== uid && 'belongs to an earlier EtcdMember of this name';
  if (foreign !== false || isInQuarantine(volume))
    return {
      obstacles: [
        `PVC ${volumeClaimName(name)} ${foreign === false ? 'is in quarantine' : foreign}: the Go operator creates no Pod for EtcdMember ${name}`,
      ],
    };
  const ownerReferences = [...owners, ...ownedBy(etcdMembers, member)];
  const metadata = { ...versioned(volume), ownerReferences };
  return { changes: [{ kind: 'PersistentVolumeClaim', name: volumeClaimName(name), fields: { metadata } }] };
}

/** The names of the Secrets that the spec names, or that cert-manager writes. */
function secretsOf({ metadata: { name = '' }, spec: { tls } }: EtcdCluster) {
  const { client, peer } = tls ?? {};
  return {
    client: client?.serverSecretRef?.name ?? (client?.certManager && issuedServerName(name)),
    peer: peer?.secretRef?.name ?? (peer?.certManager && issuedPeerName(name)),
  };
}

function secretsNamedBy({ cluster }: HandedBack, member: EtcdMember): Found {
  const { name = '' } = cluster.metadata;
  const { clientServerSecretRef, peerSecretRef } = member.spec.tls ?? {};
  const { client, peer } = secretsOf(cluster);
  const tls = {
    ...(client !== undefined &&
      clientServerSecretRef?.name === serverMountName(name) && { clientServerSecretRef: { name: client } }),
    ...(peer !== undefined && peerSecretRef?.name === peerMountName(name) && { peerSecretRef: { name: peer } }),
  };
  if (Object.keys(tls).length === 0) return {};
  const fields = { metadata: versioned(member), spec: { tls } };
  return { changes: [{ kind: 'EtcdMember', name: member.metadata.name ?? '', fields }] };
}

function aboutSpec({ cluster: { spec }, members, schedules, volumes }: HandedBack): Found {
  const managed = [spec.tls?.client?.managed && 'tls.client.managed', spec.tls?.peer?.managed && 'tls.peer.managed'];
  const unknown = [
    ...Object.keys(spec).filter((field) => !SPEC.includes(field)),
    ...Object.keys(spec.options ?? {}).flatMap((field) => (OPTIONS.includes(field) ? [] : [`options.${field}`])),
  ];
  const concurrent = members.filter(({ object }) => (object.spec.maxLearners ?? 1) > 1);
  const dormant = members.filter(({ object }) => object.spec.dormant === true).length;
  const replicas = spec.replicas ?? 3;
  const kept = volumes.filter(isInQuarantine).map(({ metadata }) => metadata.name ?? '');
  return {
    obstacles: [
      ...managed.flatMap((field) =>
        field ? [`${field}: the Go operator issues no certificates. Restore a snapshot into a cluster without it`] : [],
      ),
      ...(concurrent.length > 0
        ? [
            `${concurrent.map(({ object }) => object.metadata.name).join(', ')} run with --max-learners, which the Go operator does not pass: etcd cannot replay a log in which two learners were added at once without it, and a Pod that is recreated exits with "failed to nodeToMember". Restore a snapshot into a cluster that the Go operator creates`,
          ]
        : []),
      ...(dormant > 0 && replicas > 0 && replicas < dormant
        ? [
            `${dormant} members are paused and replicas is ${replicas}: the Go operator would start too few for a quorum. Set replicas to ${dormant}`,
          ]
        : []),
    ],
    notes: [
      ...(unknown.length > 0 ? [`without effect under the Go operator: ${unknown.join(', ')}`] : []),
      ...(schedules > 0 ? [`no snapshot is taken by its ${schedules} EtcdSnapshotSchedules any more`] : []),
      ...(kept.length > 0 ? [`PVCs in quarantine are kept until you delete them: ${kept.join(', ')}`] : []),
    ],
  };
}

/** Pods are never changed: those with copies run on, but see no renewed certificate. */
function aboutPods({ cluster, members }: HandedBack): Found {
  const { name = '', namespace = '' } = cluster.metadata;
  const copies = [serverMountName(name), peerMountName(name)];
  const mounts = (pod: Pod | undefined): boolean =>
    (pod?.spec?.volumes ?? []).some(({ secret, projected }) =>
      [secret?.secretName, ...(projected?.sources ?? []).map((source) => source.secret?.name)].some(
        (mounted) => mounted !== undefined && copies.includes(mounted),
      ),
    );
  const pods = members.flatMap(({ object, pod }) => (mounts(pod) ? [object.metadata.name ?? ''] : []));
  if (pods.length === 0) return {};
  return {
    notes: [
      `Pods ${pods.join(', ')} mount copies of its Secrets, which are not renewed any more: once the Go operator runs, delete one after the other, each when all are ready (the first with: kubectl delete pod -n ${namespace} ${pods[0]})`,
    ],
  };
}

export function assessHandBack(facts: HandedBack): Assessment {
  const parts: readonly Found[] = [
    ...facts.members.flatMap(({ object }) => [volumeOf(facts, object), secretsNamedBy(facts, object)]),
    aboutSpec(facts),
    aboutPods(facts),
  ];
  return {
    changes: parts.flatMap(({ changes = [] }) => changes),
    obstacles: parts.flatMap(({ obstacles = [] }) => obstacles),
    notes: parts.flatMap(({ notes = [] }) => notes),
  };
}
