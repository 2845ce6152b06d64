/** Which changes reconcile a schedule, and what is observed then. */

import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { aCluster, condition, FORMED } from '../../../test/support/builders/builders.ts';
import { modelWorld, putInCache } from '../../../test/support/builders/ports.ts';
import { ARTIFACT, aRun, aSchedule, aWork, SCHEDULE_UID } from '../../../test/support/builders/schedules.ts';
import type { EtcdSnapshot } from '../../api/etcd-snapshot.ts';
import { API_VERSION, agentLabels, etcdSnapshots, JOB_NAME_LABEL, SCHEDULE_LABEL } from '../../api/names.ts';
import type { Job, Pod } from '../../gen/kube.ts';
import { ApiError } from '../../kube/errors.ts';
import { jobs, pods, secrets } from '../../kube/resources.ts';
import { Store } from '../../kube/store.ts';
import { NO_MEMORY } from '../../runtime/plan.ts';
import { lastBackups, measureSchedules, scheduleReconciler, wireSchedule } from './controller.ts';

const owner = {
  apiVersion: API_VERSION,
  kind: 'EtcdSnapshotSchedule',
  name: 'hourly',
  uid: SCHEDULE_UID,
  controller: true,
};

function aWorld(now = '2026-03-01T05:30:00Z') {
  const ports = {
    ...modelWorld(),
    now: () => Date.parse(now),
    operatorImage: 'i',
    snapshots: new Store<EtcdSnapshot>(etcdSnapshots, [], [SCHEDULE_LABEL]),
    pods: new Store<Pod>(pods, [], [JOB_NAME_LABEL]),
    jobs: new Store<Job>(jobs, [], [SCHEDULE_LABEL]),
  };
  const enqueued: string[] = [];
  wireSchedule(ports, (key) => enqueued.push(key));
  putInCache(ports.schedules, aSchedule());
  const reconciler = scheduleReconciler(ports);
  const observe = () => reconciler.observe('ns/hourly', AbortSignal.timeout(1000), NO_MEMORY);
  enqueued.length = 0;
  return { ...ports, observe, news: (): readonly string[] => enqueued.splice(0) };
}

function aJobOf(name: string, ownerReferences: Job['metadata']['ownerReferences'] = [owner]): Job {
  const { job } = aWork(name);
  return {
    ...job,
    metadata: { ...job.metadata, labels: { ...agentLabels('db'), [SCHEDULE_LABEL]: 'hourly' }, ownerReferences },
  };
}
function aPodOf(job: Job, created: string): Pod {
  const { name = '', uid = '' } = job.metadata;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `${name}-${created}`,
      namespace: 'ns',
      creationTimestamp: created,
      labels: { [JOB_NAME_LABEL]: name },
      ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name, uid, controller: true }],
    },
  };
}

test('changes of its snapshots, its Jobs and their Pods reconcile a schedule', () => {
  const { snapshots, jobs: cached, pods: seen, news } = aWorld();
  putInCache(snapshots, aRun('05:00:00'));
  expect(news()).toEqual(['ns/hourly']);
  const job = aJobOf('hourly-prune-x');
  putInCache(cached, job);
  expect(news()).toEqual(['ns/hourly']);
  putInCache(seen, aPodOf(job, '2026-03-01T05:00:00Z'));
  expect(news()).toEqual(['ns/hourly']);
  putInCache(cached, aJobOf('other', [{ ...owner, kind: 'EtcdSnapshot' }]));
  expect(news()).toEqual([]);
});

test('only cluster changes that decide whether snapshots are possible reconcile it', () => {
  const { clusters, news } = aWorld();
  putInCache(clusters, aCluster());
  expect(news()).toEqual(['ns/hourly']);
  putInCache(clusters, aCluster({ status: { readyMembers: 1 } }));
  expect(news()).toEqual([]);
  putInCache(clusters, aCluster({ spec: { replicas: 0 } }));
  expect(news()).toEqual(['ns/hourly']);
  putInCache(clusters, aCluster({ spec: { replicas: 0 }, status: FORMED }));
  expect(news()).toEqual(['ns/hourly']);
});

test('objects of another schedule of the same name are not its own', async () => {
  const { snapshots, jobs: cached, observe } = aWorld();
  const theirs = { ...owner, uid: 'earlier' };
  const run = aRun('04:00:00');
  putInCache(snapshots, aRun('03:00:00'), { ...run, metadata: { ...run.metadata, ownerReferences: [theirs] } });
  putInCache(cached, aJobOf('hourly-prune-a'), aJobOf('hourly-prune-b', [theirs]));
  const seen = await observe();
  expect(seen?.runs.map(({ metadata }) => metadata.name)).toEqual(['hourly-202603010300']);
  expect(seen?.jobs.map(({ job }) => job.metadata.name)).toEqual(['hourly-prune-a']);
});

test('the Pods of a Job are sorted, the oldest first', async () => {
  const { jobs: cached, pods: seen, observe } = aWorld();
  const job = aJobOf('hourly-prune-a');
  putInCache(cached, job);
  putInCache(seen, aPodOf(job, '2026-03-01T05:02:00Z'), aPodOf(job, '2026-03-01T05:01:00Z'));
  const found = (await observe())?.jobs[0]?.pods.map(({ metadata }) => metadata.creationTimestamp);
  expect(found).toEqual(['2026-03-01T05:01:00Z', '2026-03-01T05:02:00Z']);
});

test('the API server is asked whether the name of the next snapshot is free: the cache may be stale', async () => {
  const { client, clusters, observe } = aWorld();
  putInCache(clusters, aCluster());
  expect((await observe())?.due).toEqual({ is: 'absent' });
  const { uid: _, ownerReferences: __, ...metadata } = aRun('05:00:00').metadata;
  await client.create(etcdSnapshots, { ...aRun('05:00:00'), metadata });
  expect((await observe())?.due).toMatchObject({ is: 'foreign' });
});

test('a deleted schedule is not observed', async () => {
  const { schedules, observe } = aWorld();
  schedules.apply('', { type: 'delete', object: aSchedule() });
  expect(await observe()).toBeUndefined();
});

test('the metric of the last backup leaves out that of a previous cluster of the same name', () => {
  const { schedules, clusters } = aWorld();
  const lastSuccessful = { name: 'x', time: '2026-03-01T05:01:00Z', artifact: { ...ARTIFACT, clusterID: 'aa' } };
  putInCache(schedules, aSchedule({}, { lastSuccessful }));
  const at = Date.parse('2026-03-01T05:01:00Z');
  const backups = () => [...lastBackups(schedules, clusters)];
  expect(backups()).toEqual([{ namespace: 'ns', cluster: 'db', schedule: 'hourly', at }]);
  putInCache(clusters, aCluster({ status: { clusterID: 'aa' } }));
  expect(backups()).toHaveLength(1);
  putInCache(clusters, aCluster({ status: { clusterID: 'bb' } }));
  expect(backups()).toEqual([]);
});

test('the destination is another one after an edit of its Secret, and none that can be tried when that cannot be read', async () => {
  const { client, schedules, observe } = aWorld();
  const locationOf = async () => (await observe())?.location;
  const absent = await locationOf();
  const secret = await client.create(secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 's3', namespace: 'ns' },
    stringData: { AWS_ACCESS_KEY_ID: 'a' },
  });
  const present = await locationOf();
  expect(present).not.toBe(absent);
  expect(await locationOf()).toBe(present);
  await client.delete(secrets, { namespace: 'ns', name: 's3' }, { uid: secret.metadata.uid ?? '' });
  await client.create(secrets, {
    ...secret,
    metadata: { name: 's3', namespace: 'ns' },
    stringData: { AWS_ACCESS_KEY_ID: 'b' },
  });
  expect([absent, present]).not.toContain(await locationOf());
  putInCache(schedules, aSchedule({ suspend: true }));
  const refused = new ApiError('get secrets', 403, { reason: 'Forbidden' });
  client.get = () => Promise.reject(refused);
  expect((await observe())?.location).toBeUndefined();
});

test('metrics have how long the last snapshot took, how large it is, when and how fast a drill restored one, and what scrubs found', async () => {
  const { schedules } = aWorld();
  const registry = new Registry();
  measureSchedules(registry, schedules);
  expect(await registry.metrics()).not.toContain('schedule="hourly"');
  const artifact = { ...ARTIFACT, durationMilliseconds: 2_500 };
  const lastSuccessful = { name: 'x', time: '2026-03-01T05:01:00Z', artifact };
  const lastDrill = { name: 'x', time: '2026-03-01T05:02:00Z', succeeded: true, recoverySeconds: 41 };
  const lastRestored = { name: 'x', time: '2026-03-01T05:02:00Z' };
  const time = '2026-03-02T05:02:00Z';
  const scrubbed = [
    { name: 'w', time: '2026-03-01T05:02:00Z', reason: 'SnapshotDamaged' },
    { name: 'x', time },
  ];
  const usable = condition('LocationUsable', 'False', 'AccessDenied');
  putInCache(schedules, aSchedule({}, { lastSuccessful, lastDrill, lastRestored, scrubbed, conditions: [usable] }));
  const labels = '{namespace="ns",cluster="db",schedule="hourly"}';
  const text = await registry.metrics();
  expect(text).toContain(`etcd_operator_last_snapshot_duration_seconds${labels} 2.5\n`);
  expect(text).toContain(`etcd_operator_last_snapshot_bytes${labels} 10\n`);
  expect(text).toContain(
    `etcd_operator_last_restored_drill_timestamp_seconds${labels} ${Date.parse('2026-03-01T05:02:00Z') / 1000}\n`,
  );
  expect(text).toContain(`etcd_operator_drill_recovery_seconds${labels} 41\n`);
  expect(text).toContain(`etcd_operator_last_scrub_timestamp_seconds${labels} ${Date.parse(time) / 1000}\n`);
  expect(text).toContain(`etcd_operator_damaged_snapshots${labels} 1\n`);
  expect(text).toContain(`etcd_operator_last_drill_succeeded${labels} 1\n`);
  expect(text).toContain(`etcd_operator_location_usable${labels} 0\n`);
});
