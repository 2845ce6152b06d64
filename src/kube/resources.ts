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
import type { KubeObject, Resource } from './object.ts';

const resource = <T extends KubeObject>(group: string, plural: string, kind: string): Resource<T> => ({
  group,
  version: 'v1',
  plural,
  kind,
});

export const pods = resource<Pod>('', 'pods', 'Pod');
export const services = resource<Service>('', 'services', 'Service');
/** Read by name only: never listed, never watched. */
export const secrets = resource<Secret>('', 'secrets', 'Secret');
export const persistentVolumeClaims = resource<PersistentVolumeClaim>(
  '',
  'persistentvolumeclaims',
  'PersistentVolumeClaim',
);
/** Cluster-scoped. */
export const persistentVolumes = resource<PersistentVolume>('', 'persistentvolumes', 'PersistentVolume');
/** Cluster-scoped. */
export const nodes = resource<Node>('', 'nodes', 'Node');
export const podDisruptionBudgets = resource<PodDisruptionBudget>(
  'policy',
  'poddisruptionbudgets',
  'PodDisruptionBudget',
);
export const jobs = resource<Job>('batch', 'jobs', 'Job');
export const leases = resource<Lease>('coordination.k8s.io', 'leases', 'Lease');
export const events = resource<Event>('events.k8s.io', 'events', 'Event');
