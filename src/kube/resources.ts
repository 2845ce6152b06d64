/** The built-in kinds that the operator uses. */
import type {
  Event,
  Job,
  Lease,
  NetworkPolicy,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  PodDisruptionBudget,
  Secret,
  Service,
} from '../gen/kube.ts';
import type { KubeObject, Resource } from './object.ts';

const resource = <T extends KubeObject>(group: string, kind: string): Resource<T> => ({
  group,
  version: 'v1',
  plural: `${kind.toLowerCase()}s`,
  kind,
});

export const pods = resource<Pod>('', 'Pod');
export const services = resource<Service>('', 'Service');
/** Read by name only: never listed, never watched. */
export const secrets = resource<Secret>('', 'Secret');
export const persistentVolumeClaims = resource<PersistentVolumeClaim>('', 'PersistentVolumeClaim');
/** Cluster-scoped. */
export const persistentVolumes = resource<PersistentVolume>('', 'PersistentVolume');
/** Cluster-scoped. */
export const nodes = resource<Node>('', 'Node');
export const podDisruptionBudgets = resource<PodDisruptionBudget>('policy', 'PodDisruptionBudget');
export const networkPolicies: Resource<NetworkPolicy> = {
  ...resource<NetworkPolicy>('networking.k8s.io', 'NetworkPolicy'),
  plural: 'networkpolicies',
};
export const jobs = resource<Job>('batch', 'Job');
export const leases = resource<Lease>('coordination.k8s.io', 'Lease');
export const events = resource<Event>('events.k8s.io', 'Event');

/** The four kinds of RBAC objects, which the operator only deletes. The first two are cluster-scoped. */
const rbac = (kind: string): Resource => resource<KubeObject>('rbac.authorization.k8s.io', kind);
export const clusterRoles = rbac('ClusterRole');
export const clusterRoleBindings = rbac('ClusterRoleBinding');
export const roles = rbac('Role');
export const roleBindings = rbac('RoleBinding');
