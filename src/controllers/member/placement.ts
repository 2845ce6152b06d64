/** Where a member's Pod runs and as whom. */
import type { EtcdMember } from '../../api/etcd-member.ts';
import { CLUSTER_LABEL } from '../../api/names.ts';
import { USER } from '../../api/security.ts';
import type {
  Affinity,
  PodAffinityTerm,
  PodSecurityContext,
  PodSpec,
  TopologySpreadConstraint,
} from '../../gen/kube.ts';

const HOST = 'kubernetes.io/hostname';
const ZONE = 'topology.kubernetes.io/zone';

/** Members only: Jobs that carry the cluster's label must not push members around. */
const sameCluster = (member: EtcdMember) => ({
  matchLabels: { 'app.kubernetes.io/name': 'etcd', [CLUSTER_LABEL]: member.spec.clusterName },
});

/** What the user said about nodes and other Pods stays; members keep apart only where nothing was said about that. */
function affinity(member: EtcdMember): Affinity | undefined {
  const { spread, affinity: stated } = member.spec;
  if (spread === undefined || spread === 'None' || stated?.podAntiAffinity) return stated;
  const term: PodAffinityTerm = { labelSelector: sameCluster(member), topologyKey: HOST };
  return {
    ...stated,
    podAntiAffinity:
      spread === 'Required'
        ? { requiredDuringSchedulingIgnoredDuringExecution: [term] }
        : { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, podAffinityTerm: term }] },
  };
}

/** Zones are never required by default: nodes without the label of a zone could then not be used at all. */
function topologySpreadConstraints(member: EtcdMember): readonly TopologySpreadConstraint[] | undefined {
  const { spread, topologySpreadConstraints: stated } = member.spec;
  if (stated !== undefined || spread === undefined || spread === 'None') return stated;
  return [{ maxSkew: 1, topologyKey: ZONE, whenUnsatisfiable: 'ScheduleAnyway', labelSelector: sameCluster(member) }];
}

/** What the restricted level demands is not the user's to change. */
const securityContext = (member: EtcdMember): PodSecurityContext => ({
  runAsUser: USER,
  runAsGroup: USER,
  fsGroup: USER,
  ...member.spec.podSecurityContext,
  runAsNonRoot: true,
  seccompProfile: { type: 'RuntimeDefault' },
});

type Placement = Pick<
  PodSpec,
  | 'affinity'
  | 'topologySpreadConstraints'
  | 'tolerations'
  | 'nodeSelector'
  | 'priorityClassName'
  | 'terminationGracePeriodSeconds'
  | 'imagePullSecrets'
  | 'securityContext'
>;

export function placement(member: EtcdMember): Placement {
  const { tolerations, nodeSelector, priorityClassName, terminationGracePeriodSeconds, imagePullSecrets } = member.spec;
  const [near, over] = [affinity(member), topologySpreadConstraints(member)];
  return {
    ...(near && { affinity: near }),
    ...(over && { topologySpreadConstraints: over }),
    ...(tolerations && { tolerations }),
    ...(nodeSelector && { nodeSelector }),
    ...(priorityClassName !== undefined && { priorityClassName }),
    ...(terminationGracePeriodSeconds !== undefined && { terminationGracePeriodSeconds }),
    ...(imagePullSecrets && { imagePullSecrets }),
    securityContext: securityContext(member),
  };
}
