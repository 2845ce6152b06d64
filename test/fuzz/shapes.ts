/** What a seed's cluster is, and the valid specs that end its rounds. Pure. */
import type { EtcdClusterSpec } from '../../src/api/etcd-cluster.ts';
import { ROOT } from '../sweep/rig.ts';
import type { Random } from './random.ts';

export interface Shape {
  readonly name: string;
  readonly replicas: number;
  readonly inMemory: boolean;
  readonly secured: boolean;
}

const shape = (replicas: number, medium: 'volumes' | 'memory', security: 'plain' | 'mTLS and auth'): Shape => ({
  name: `${replicas} members, ${medium}, ${security}`,
  replicas,
  inMemory: medium === 'memory',
  secured: security !== 'plain',
});

/** Ten seeds in a row have each of them. */
const SHAPES: readonly Shape[] = [
  shape(3, 'volumes', 'plain'),
  shape(3, 'volumes', 'mTLS and auth'),
  shape(1, 'volumes', 'plain'),
  shape(3, 'memory', 'plain'),
  shape(5, 'volumes', 'plain'),
  shape(1, 'volumes', 'mTLS and auth'),
  shape(3, 'memory', 'mTLS and auth'),
  shape(3, 'volumes', 'plain'),
  shape(5, 'memory', 'plain'),
  shape(5, 'volumes', 'mTLS and auth'),
];

export const shapeOf = (seed: number): Shape =>
  SHAPES[(seed + SHAPES.length - 1) % SHAPES.length] ?? shape(3, 'volumes', 'plain');

/** The only image that exists is of this version. */
export const VERSION = '3.6.16';
export const IMAGE = `quay.io/coreos/etcd:v${VERSION}`;

/** The spec that its cluster is created with. What is not among the template fields may differ at the end of a round. */
export const specOf = ({ replicas, inMemory, secured }: Shape, size: string | number = '1Gi'): EtcdClusterSpec => ({
  replicas,
  version: VERSION,
  storage: { size, medium: inMemory ? 'Memory' : '' },
  ...(secured && {
    tls: { client: { managed: {} }, peer: { managed: {} } },
    auth: { enabled: true, rootCredentialsSecretRef: { name: ROOT } },
  }),
});

/** A volume never shrinks: the size is the one that it has now. */
export function goodSpec(seedShape: Shape, random: Random, size: string | number): EtcdClusterSpec {
  const replicas = random.of([seedShape.replicas, seedShape.replicas, 1, 3, 3, 5]) ?? seedShape.replicas;
  return {
    ...specOf({ ...seedShape, replicas }, size),
    ...(random.int(3) === 0 && { deletionPolicy: random.of(['Delete', 'Retain'] as const) ?? 'Delete' }),
    progressDeadlineSeconds: random.between(300, 600),
  };
}
