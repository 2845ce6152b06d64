/** Which changes reconcile a snapshot. */
import { expect, test } from 'vitest';
import { aCluster, aPod, FORMED, TARGET } from '../../../test/support/builders/builders.ts';
import { modelWorld, putInCache } from '../../../test/support/builders/ports.ts';
import { aJob, anAgent, aSnapshot } from '../../../test/support/builders/snapshot.ts';
import type { EtcdSnapshot } from '../../api/etcd-snapshot.ts';
import { etcdSnapshots, JOB_NAME_LABEL } from '../../api/names.ts';
import type { Job, Pod } from '../../gen/kube.ts';
import { jobs, pods } from '../../kube/resources.ts';
import { ALL_NAMESPACES, Store } from '../../kube/store.ts';
import { wireSnapshot } from './controller.ts';

function aWorld() {
  const ports = {
    ...modelWorld(),
    operatorImage: 'i',
    snapshots: new Store<EtcdSnapshot>(etcdSnapshots, []),
    pods: new Store<Pod>(pods, [], [JOB_NAME_LABEL]),
    jobs: new Store<Job>(jobs, []),
  };
  const enqueued: string[] = [];
  wireSnapshot(ports, (key) => enqueued.push(key));
  return { ...ports, news: (): readonly string[] => enqueued.splice(0) };
}

test('changes of the snapshot, its Job and the Pods of its Job reconcile it; other Jobs and Pods do not', () => {
  const world = aWorld();
  putInCache(world.snapshots, aSnapshot());
  expect(world.news()).toEqual(['ns/monday']);
  putInCache(world.jobs, aJob());
  expect(world.news()).toEqual(['ns/monday']);
  putInCache(world.pods, anAgent(1));
  expect(world.news()).toEqual(['ns/monday']);
  world.pods.apply(ALL_NAMESPACES, { type: 'delete', object: anAgent(1) });
  expect(world.news()).toEqual(['ns/monday']);
  putInCache(world.pods, aPod());
  putInCache(world.jobs, { ...aJob(), metadata: { name: 'other', namespace: 'ns' } });
  expect(world.news()).toEqual([]);
  world.jobs.apply(ALL_NAMESPACES, { type: 'delete', object: aJob() });
  expect(world.news()).toEqual(['ns/monday']);
});

test('cluster changes that a snapshot waits for reconcile it, and other changes do not', () => {
  const world = aWorld();
  putInCache(world.snapshots, aSnapshot());
  world.news();
  const now = (status: object, spec: object = {}): readonly string[] => {
    const cluster = aCluster({ status, spec });
    putInCache(world.clusters, cluster);
    return world.news();
  };
  expect(now({})).toEqual(['ns/monday']);
  expect(now({ readyMembers: 1 })).toEqual([]);
  expect(now(FORMED)).toEqual(['ns/monday']);
  expect(now({ ...FORMED, authEnabled: true })).toEqual(['ns/monday']);
  expect(now({ ...FORMED, authEnabled: true, readyMembers: 3 })).toEqual([]);
  expect(now({ ...FORMED, authEnabled: true }, { replicas: 0 })).toEqual([]); // the pause waits
  expect(now({ ...FORMED, authEnabled: true, observed: { ...TARGET, replicas: 0 } }, { replicas: 0 })).toEqual([
    'ns/monday',
  ]);
  putInCache(world.snapshots, aSnapshot({ status: { phase: 'Failed' } }));
  world.news();
  expect(now(FORMED)).toEqual([]);
});
