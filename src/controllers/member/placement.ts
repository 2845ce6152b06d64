/** Scheduling and security context of a member's Pod. */
import type { EtcdMember } from '../../api/etcd-member.ts';
import { CLUSTER_LABEL } from '../../api/names.ts';
import { USER } from '../../api/security.ts';
import { ZONE_LABEL } from '../../domain/node.ts';
import type {
  Affinity,
  PodAffinityTerm,
  PodSecurityContext,
  PodSpec,
  TopologySpreadConstraint,
} from '../../gen/kube.ts';
import { present } from '../../lib/present.ts';

const HOST = 'kubernetes.io/hostname';

/** Members only: Jobs that carry the cluster's label must not influence where members are scheduled. */
const sameCluster = (member: EtcdMember) => ({
  matchLabels: { 'app.kubernetes.io/name': 'etcd', [CLUSTER_LABEL]: member.spec.clusterName },
});

/** The user's affinity is kept; anti-affinity between members is added only where the user states none. */
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

/** Zones are never required by default: nodes without a zone label could then run no member at all. */
function topologySpreadConstraints(member: EtcdMember): readonly TopologySpreadConstraint[] | undefined {
  const { spread, topologySpreadConstraints: stated } = member.spec;
  if (stated !== undefined || spread === undefined || spread === 'None') return stated;
  return [
    { maxSkew: 1, topologyKey: ZONE_LABEL, whenUnsatisfiable: 'ScheduleAnyway', labelSelector: sameCluster(member) },
  ];
}

/** A user cannot override what the restricted Pod Security Standard requires. */
const securityContext = (member: EtcdMember): PodSecurityContext => ({
  runAsUser: USER,
  runAsGroup: USER,
  fsGroup: USER,
  ...member.spec.podSecurityContext,
  runAsNonRoot: true,
  seccompProfile: { type: 'RuntimeDefault' },
});

export function placement(member: EtcdMember): Omit<PodSpec, 'containers'> {
  const { tolerations, nodeSelector, priorityClassName, terminationGracePeriodSeconds, imagePullSecrets } = member.spec;
  return {
    ...present({ affinity: affinity(member), topologySpreadConstraints: topologySpreadConstraints(member) }),
    ...present({ tolerations, nodeSelector, priorityClassName, terminationGracePeriodSeconds, imagePullSecrets }),
    securityContext: securityContext(member),
  };
}
