/** Helpers of the suites about objects. */
import { afterAll, beforeAll } from 'vitest';
import { API_VERSION, etcdMembers } from '../../src/api/names.ts';
import type { KubeObject, Ref, Resource } from '../../src/kube/object.ts';
import type { KubectlClient } from '../support/kubectl/client.ts';
import type { KubeWorld } from './kube-world.ts';

export type ConfigMap = KubeObject & { readonly data?: Readonly<Record<string, string>> };
export type Member = KubeObject & { readonly spec: object; readonly status?: Readonly<Record<string, unknown>> };
export const configMaps: Resource<ConfigMap> = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap' };
export const members: Resource<Member> = etcdMembers;

export const uidOf = (object: KubeObject): string => object.metadata.uid ?? '';
export const versionOf = (object: KubeObject): string => object.metadata.resourceVersion ?? '';

export interface Kit {
  readonly world: KubeWorld;
  readonly client: KubectlClient;
  /** Of this suite alone. */
  readonly namespace: string;
  readonly aName: () => string;
  readonly ref: (name: string) => Ref;
  readonly aConfigMap: (
    name: string,
    more?: Partial<ConfigMap['metadata']>,
    data?: Readonly<Record<string, string>>,
  ) => Promise<ConfigMap>;
  readonly aMember: (name: string, more?: Partial<Member['metadata']>) => Promise<Member>;
}

/** One world for all tests of a suite; it is started before the first test. */
export function kitIn(start: () => Promise<KubeWorld>): Kit {
  let world: KubeWorld;
  let namespace: string;
  beforeAll(async () => {
    world = await start();
    namespace = await world.namespace();
  });
  afterAll(async () => {
    await world?.close();
  });
  let count = 0;
  return {
    get world() {
      return world;
    },
    get client() {
      return world.client;
    },
    get namespace() {
      return namespace;
    },
    aName: () => `thing-${++count}`,
    ref: (name) => ({ namespace, name }),
    aConfigMap: (name, more = {}, data = { a: '1' }) =>
      world.client.create(configMaps, {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name, namespace, ...more },
        data,
      }),
    aMember: (name, more = {}) =>
      world.client.create(members, {
        apiVersion: API_VERSION,
        kind: 'EtcdMember',
        metadata: { name, namespace, ...more },
        spec: {
          clusterName: 'db',
          version: '3.6.16',
          storage: { size: '1Gi', medium: '' },
          bootstrap: true,
          initialCluster: `${name}=http://${name}.db.n.svc:2380`,
          clusterToken: 'token',
        },
      }),
  };
}
