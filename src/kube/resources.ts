/** The built-in kinds that the operator uses. */
import type {
  Event,
  Job,
  Lease,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  PodDisruptionBudget,
  Secret,
  Service,
} from '../gen/kube.ts';
import type { Resource } from './object.ts';

export const pods: Resource<Pod> = { group: '', version: 'v1', plural: 'pods', kind: 'Pod' };
export const services: Resource<Service> = { group: '', version: 'v1', plural: 'services', kind: 'Service' };
/** Read by name only: never listed, never watched. */
export const secrets: Resource<Secret> = { group: '', version: 'v1', plural: 'secrets', kind: 'Secret' };
export const persistentVolumeClaims: Resource<PersistentVolumeClaim> = {
  group: '',
  version: 'v1',
  plural: 'persistentvolumeclaims',
  kind: 'PersistentVolumeClaim',
};
/** Cluster-scoped. */
export const persistentVolumes: Resource<PersistentVolume> = {
  group: '',
  version: 'v1',
  plural: 'persistentvolumes',
  kind: 'PersistentVolume',
};
/** Cluster-scoped. */
export const nodes: Resource<Node> = { group: '', version: 'v1', plural: 'nodes', kind: 'Node' };
export const podDisruptionBudgets: Resource<PodDisruptionBudget> = {
  group: 'policy',
  version: 'v1',
  plural: 'poddisruptionbudgets',
  kind: 'PodDisruptionBudget',
};
export const jobs: Resource<Job> = { group: 'batch', version: 'v1', plural: 'jobs', kind: 'Job' };
export const leases: Resource<Lease> = {
  group: 'coordination.k8s.io',
  version: 'v1',
  plural: 'leases',
  kind: 'Lease',
};
export const events: Resource<Event> = { group: 'events.k8s.io', version: 'v1', plural: 'events', kind: 'Event' };
