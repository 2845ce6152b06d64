import { describe, expect, test } from 'vitest';
import { aCluster, LATCHED } from '../../../test/support/builders/builders.ts';
import { modelWorld, putInCache } from '../../../test/support/builders/ports.ts';
import { aRun, aSchedule } from '../../../test/support/builders/schedules.ts';
import { aSnapshot, s3 } from '../../../test/support/builders/snapshot.ts';
import type { EtcdMember } from '../../api/etcd-member.ts';
import type { EtcdSnapshot, EtcdSnapshotStatus } from '../../api/etcd-snapshot.ts';
import type { EtcdSnapshotSchedule, EtcdSnapshotScheduleStatus } from '../../api/etcd-snapshot-schedule.ts';
import { findCondition } from '../../domain/conditions.ts';
import { podBlockedBy } from '../../domain/member-pod.ts';
import { OPEN } from '../../domain/tenancy.ts';
import { NO_MEMORY } from '../../runtime/plan.ts';
import { decide } from './decide.ts';
import { observe } from './observe.ts';
import { observeRestore } from './observe-restore.ts';

const { signal } = new AbortController();
const images = { repository: 'quay.io/coreos/etcd', allowed: [], operator: 'example.com/operator:1' };
const checksum = `sha256:${'ab'.repeat(32)}`;
const STORED: EtcdSnapshotStatus = { phase: 'Complete', artifact: { uri: 's3://backups/prod/monday.db', checksum } };
const byName = { snapshotRef: { name: 'monday' } };
const bySchedule = { latest: { scheduleRef: { name: 'hourly' } } };

interface World {
  readonly source: object;
  readonly snapshots?: readonly EtcdSnapshot[];
  readonly schedule?: EtcdSnapshotSchedule;
  readonly tenancy?: typeof OPEN;
}

async function planned({ source, snapshots = [], schedule, tenancy = OPEN }: World) {
  const world = modelWorld();
  putInCache(world.clusters, aCluster({ spec: { bootstrap: { restore: { source } } } }));
  for (const snapshot of snapshots) putInCache(world.snapshots, snapshot);
  if (schedule) putInCache(world.schedules, schedule);
  const gathered = await observe({ ...world, images, tenancy }, 'ns/db', signal, NO_MEMORY);
  if (!gathered) throw new Error('there is a cluster');
  const plan = decide(gathered);
  const created = plan.steps?.flatMap((step) =>
    step.do === 'create' && step.object.kind === 'EtcdMember' ? [step.object as EtcdMember] : [],
  );
  return { plan, seed: created?.[0], restored: findCondition(plan.status?.conditions, 'Restored') };
}

describe('a cluster that is restored from an EtcdSnapshot by name', () => {
  test('is restored from the object of that snapshot, with its checksum and its key', async () => {
    const encryption = { keySecretRef: { name: 'key' } };
    const snapshot = aSnapshot({ spec: { compression: 'Zstd', encryption, layout: 'ByCluster' }, status: STORED });
    const { plan, seed } = await planned({ source: byName, snapshots: [snapshot] });
    const source = { s3: { ...s3, key: 'prod/ns/db/monday.db.zst.enc' }, checksum };
    expect(seed?.spec.restore).toEqual({ source, encryption });
    expect(plan.latch?.restore).toEqual({ snapshot: 'monday', source, encryption });
  });

  test('falls back to the copy of that snapshot, once it is there', async () => {
    const copyTo = { destination: { pvc: { claimName: 'second', subPath: 'backups' } } };
    const snapshot = (copy: EtcdSnapshotStatus['copy']) =>
      aSnapshot({ spec: { copyTo }, status: { ...STORED, ...(copy && { copy }) } });
    const sourceWith = async (copy: EtcdSnapshotStatus['copy']) =>
      (await planned({ source: byName, snapshots: [snapshot(copy)] })).seed?.spec.restore?.source;
    const first = { s3: { ...s3, key: 'prod/monday.db' }, checksum };
    expect(await sourceWith({ uri: 'file:///copy/data/backups/monday.db' })).toEqual({
      ...first,
      copy: { pvc: { claimName: 'second', subPath: 'backups/monday.db' } },
    });
    expect(await sourceWith(undefined)).toEqual(first);
    expect(await sourceWith({ attempts: 1, reason: 'AccessDenied' })).toEqual(first);
  });

  test.each<[string, string, readonly EtcdSnapshot[]]>([
    ['does not exist', 'SnapshotNotFound', []],
    ['is being deleted', 'SnapshotNotFound', [aSnapshot({ status: STORED, deleting: true })]],
    ['has not finished', 'SnapshotNotReady', [aSnapshot({ status: { phase: 'Started' } })]],
    ['has failed', 'SnapshotFailed', [aSnapshot({ status: { phase: 'Failed' } })]],
  ])('waits while it %s: %s', async (_what, reason, snapshots) => {
    const { plan, restored } = await planned({ source: byName, snapshots });
    expect([plan.rule, plan.steps, restored?.reason]).toEqual(['blocked', [], reason]);
    expect(findCondition(plan.status?.conditions, 'Available')?.reason).toBe(reason);
    expect(plan.requeueAfterMs).toBeLessThanOrEqual(10_000);
  });

  test('is not restored from a store that the administrator does not permit', async () => {
    const tenancy = { ...OPEN, allowedStoreEndpoints: ['other.example.com'] };
    const { plan } = await planned({ source: byName, snapshots: [aSnapshot({ status: STORED })], tenancy });
    expect(findCondition(plan.status?.conditions, 'Available')?.reason).toBe('ReferenceNotPermitted');
  });

  test('keeps to the recorded object when the EtcdSnapshot is deleted, and only that gets a Pod', async () => {
    const { plan, seed } = await planned({ source: byName, snapshots: [aSnapshot({ status: STORED })] });
    const before = aCluster({ spec: { bootstrap: { restore: { source: byName } } } });
    const cluster = { ...before, status: { ...LATCHED, ...plan.latch } };
    expect(observeRestore(modelWorld(), cluster).cluster.spec.bootstrap?.restore).toEqual(seed?.spec.restore);
    if (!seed?.spec.restore) throw new Error('there is a seed');
    expect(podBlockedBy(seed, images, cluster)).toBeUndefined();
    const other = { ...seed.spec.restore, source: { pvc: { claimName: 'of-another', subPath: 'x' } } };
    expect(podBlockedBy({ ...seed, spec: { ...seed.spec, restore: other } }, images, cluster)?.reason).toBe(
      'ReferenceNotPermitted',
    );
  });
});

describe('a cluster that is restored from the newest snapshot of a schedule', () => {
  const [good, newest] = [aRun('04:00', STORED), aRun('05:00', STORED)];
  const lastSuccessful = { name: 'hourly-202603010500', time: '2026-03-01T05:01:00Z', artifact: { uri: 'x' } };
  const lastRestored = { name: 'hourly-202603010400', time: '2026-03-01T04:09:00Z' };
  const failed = { ...lastSuccessful, artifact: undefined, succeeded: false, reason: 'DrillFailed' };
  const keyOf = (seed: EtcdMember | undefined) => seed?.spec.restore?.source.s3?.key;
  const from = (status: EtcdSnapshotScheduleStatus) =>
    planned({ source: bySchedule, snapshots: [good, newest], schedule: aSchedule({}, status) });

  test('gets the last that was stored', async () => {
    expect(keyOf((await from({ lastSuccessful, lastRestored })).seed)).toBe('backups/hourly-202603010500.db');
  });

  test('gets the last that a drill restored when the last that was stored cannot be', async () => {
    const { seed } = await from({ lastSuccessful, lastRestored, lastDrill: failed });
    expect(keyOf(seed)).toBe('backups/hourly-202603010400.db');
  });

  test.each<[string, string, EtcdSnapshotScheduleStatus | undefined]>([
    ['the schedule does not exist', 'SnapshotNotFound', undefined],
    ['nothing is stored', 'SnapshotNotReady', {}],
    ['the only one cannot be restored', 'SnapshotNotReady', { lastSuccessful, lastDrill: failed }],
  ])('waits while %s', async (_what, reason, status) => {
    const world = status ? await from(status) : await planned({ source: bySchedule });
    expect([world.plan.rule, world.restored?.reason]).toEqual(['blocked', reason]);
  });
});
