/** Snapshots on a schedule with real servers, at real minutes. Each test has its own operator, for its own namespace. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { EtcdSnapshot, EtcdSnapshotStatus } from '../../src/api/etcd-snapshot.ts';
import type { EtcdSnapshotSchedule, EtcdSnapshotScheduleSpec } from '../../src/api/etcd-snapshot-schedule.ts';
import { API_VERSION, etcdSnapshotSchedules, etcdSnapshots, slotOf } from '../../src/api/names.ts';
import { MOUNTS } from '../../src/domain/agent-task.ts';
import { findCondition } from '../../src/domain/conditions.ts';
import { scheduledSnapshot } from '../../src/domain/scheduled-snapshot.ts';
import type { Resource } from '../../src/kube/object.ts';
import { events, jobs, secrets } from '../../src/kube/resources.ts';
import { permutations } from '../support/permutations.ts';
import type { AgentRuns } from '../support/servers/agent-runs.ts';
import { type Child, eventually, pause } from '../support/servers/processes.ts';
import { BUCKET, startS3, type TestPlace } from '../support/servers/stores.ts';
import { startWorld, type World } from '../support/servers/world.ts';

const snapshots: Resource<EtcdSnapshot> = etcdSnapshots;
const schedules: Resource<EtcdSnapshotSchedule> = etcdSnapshotSchedules;
const PATIENCE_MS = 240_000;
const MINUTE_MS = 60_000;
const timeout = 3 * PATIENCE_MS;
const EVERY_MINUTE = '* * * * *';

let world: World;
let agents: AgentRuns;
let s3: TestPlace;
const operators = new Map<string, Child>();

beforeAll(async () => {
  [world, s3] = await Promise.all([startWorld(), startS3()]);
  agents = world.runAgents();
}, timeout);
afterAll(async () => {
  await world?.stop();
  await s3?.close();
});

/** In a namespace with a cluster that is never bootstrapped: its snapshots wait, and end when the test ends them. */
async function stage(spec: Parameters<World['createCluster']>[2] = { image: { repository: 'not.allowed/etcd' } }) {
  const namespace = await world.namespace();
  await world.createCluster(namespace, 'db', spec);
  const start = (...flags: readonly string[]): Child => {
    const operator = world.startOperator(`--watch-namespace=${namespace}`, '--operator-image=operator:test', ...flags);
    operators.set(namespace, operator);
    return operator;
  };
  const read = async (name = 'all') => {
    const found = await world.admin.get(schedules, { namespace, name });
    if (!found) throw new Error(`${name} is deleted`);
    return found;
  };
  const runs = (): Promise<readonly EtcdSnapshot[]> => world.list(snapshots, namespace);
  const wait = <T>(what: string, check: () => Promise<T | undefined>): Promise<T> =>
    eventually(what, check, { timeoutMs: PATIENCE_MS, everyMs: 500, seen: async () => (await read()).status });
  const becomes = (type: string, expected: string, name = 'all') =>
    wait(`${type} to be ${expected}`, async () => {
      const { status, reason } = findCondition((await read(name)).status?.conditions, type) ?? {};
      return `${status}/${reason}` === expected ? read(name) : undefined;
    });
  return { namespace, start, read, runs, wait, becomes, ...editing(namespace) };
}

function editing(namespace: string) {
  const destination = bucket(namespace);
  return {
    make: (spec: Partial<EtcdSnapshotScheduleSpec>, name = 'all'): Promise<EtcdSnapshotSchedule> =>
      world.admin.create(schedules, {
        apiVersion: API_VERSION,
        kind: 'EtcdSnapshotSchedule',
        metadata: { name, namespace },
        spec: { clusterRef: { name: 'db' }, schedule: EVERY_MINUTE, destination, ...spec },
      }),
    edit: (spec: object, name = 'all'): Promise<unknown> => world.admin.patch(schedules, { namespace, name }, { spec }),
    /** As the snapshot controller would. */
    end: (name: string, status: EtcdSnapshotStatus): Promise<unknown> =>
      world.admin.patch(snapshots, { namespace, name }, { status }, { subresource: 'status' }),
    notesOf: async (reason: string): Promise<readonly string[]> =>
      (await world.list(events, namespace)).filter((e) => e.reason === reason).map((e) => e.note ?? ''),
  };
}
type Stage = Awaited<ReturnType<typeof stage>>;

function bucket(key: string): EtcdSnapshotScheduleSpec['destination'] {
  if (s3.place.kind !== 's3') throw new Error('it is one');
  const { endpoint, forcePathStyle } = s3.place;
  return { s3: { endpoint, bucket: BUCKET, forcePathStyle, key, credentialsSecretRef: { name: 'keys' } } };
}

const nameOf = ({ metadata }: { readonly metadata: { readonly name?: string } }): string => metadata.name ?? '';
const stored = (seconds = 0): EtcdSnapshotStatus => {
  const at = new Date(Date.now() - seconds * 1000).toISOString().replace(/\.\d+/, '');
  return { phase: 'Complete', completionTime: at, artifact: { uri: 's3://x/y.db', takenAt: at } };
};
const failed: EtcdSnapshotStatus = { phase: 'Failed', completionTime: '2026-01-01T00:00:00Z' };

/** A record of some minutes ago, as if the schedule had created it then. */
async function past(
  { namespace, end }: Stage,
  of: EtcdSnapshotSchedule,
  minutesAgo: number,
  status: EtcdSnapshotStatus,
) {
  const slot = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS - minutesAgo * MINUTE_MS;
  const run = scheduledSnapshot(of, slot);
  await world.admin.create(snapshots, { ...run, metadata: { ...run.metadata, namespace } });
  await end(nameOf(run), status);
  return nameOf(run);
}

afterEach(async (context) => {
  if (context.task.result?.state === 'fail')
    for (const operator of operators.values()) process.stderr.write(operator.log().slice(-4_000));
});

describe.concurrent('a schedule', { timeout }, () => {
  test('takes a snapshot every minute, deletes what is not kept, and runs a restore drill with the newest', async () => {
    const it = await stage({ replicas: 1 });
    const keys = Object.entries(s3.secrets).map(([path, value]) => [
      path.slice(MOUNTS.credentials.length + 1),
      Buffer.from(value).toString('base64'),
    ]);
    const metadata = { name: 'keys', namespace: it.namespace };
    await world.admin.create(secrets, { apiVersion: 'v1', kind: 'Secret', metadata, data: Object.fromEntries(keys) });
    // No etcd image runs here: restore drills are tested elsewhere.
    const drilled = { ok: true, task: 'drill', revision: 1, totalKeys: 0, hashCompared: true, durationMilliseconds: 1 };
    agents.instead((pod) =>
      nameOf(pod).startsWith('all-drill-')
        ? Promise.resolve({ exitCode: 0, message: JSON.stringify(drilled) })
        : undefined,
    );
    it.start();
    await world.patiently(PATIENCE_MS).condition(it.namespace, 'db', 'Available', 'True');
    await it.make({ retention: { keepLast: 1 }, drill: {}, recoveryPoint: '1h', concurrencyPolicy: 'Allow' });
    const first = await it.wait('the first', async () => (await it.read()).status?.lastSuccessful);
    expect(first.artifact.uri).toBe(`s3://${BUCKET}/${it.namespace}/${first.name}.db`);
    await it.becomes('RetentionApplied', 'True/Applied');
    await it.becomes('DrillSucceeded', 'True/Restored');
    await world.patiently(PATIENCE_MS).condition(it.namespace, 'db', 'BackupFresh', 'True', 'Fresh');
    const { status } = await it.wait('the second, and the first removed', async () => {
      const found = await it.read();
      return (found.status?.stored?.removed ?? 0) > 0 ? found : undefined;
    });
    expect(status?.stored).toMatchObject({ kept: 1, removed: 1 });
    expect(slotOf('all', status?.stored?.for ?? '')).toBeGreaterThan(slotOf('all', first.name) ?? Infinity);
    expect(status?.lastDrill).toMatchObject({ succeeded: true });
    expect(Date.parse(status?.nextScheduleTime ?? '')).toBeGreaterThan(Date.now() - MINUTE_MS);
    const made = (await world.list(jobs, it.namespace)).map(nameOf);
    expect(made.filter((name) => name.startsWith('all-prune-')).length).toBeGreaterThanOrEqual(2);
  });

  test.each(permutations(1, ['before', 'after'] as const))(
    'creates one snapshot although the operator is killed %s its creation',
    async (when) => {
      const it = await stage();
      const proxy = await world.faultProxy();
      let operator: Child;
      const run = (): Promise<unknown> => operator.stop('SIGKILL');
      proxy.fault({ verb: 'create', resource: 'etcdsnapshots', nth: 1 }, { do: 'interrupt', when, run });
      operator = it.start(...proxy.flags);
      await it.make({ concurrencyPolicy: 'Allow' });
      await operator.ended;
      const known = (await it.runs()).map(nameOf);
      expect(known).toHaveLength(when === 'after' ? 1 : 0);
      it.start();
      const [first] = await it.wait('the snapshot', async () => ((await it.runs()).length > 0 ? it.runs() : undefined));
      await it.wait('the record', async () => (await it.read()).status?.lastScheduleTime);
      const all = await it.wait('the next minute', async () => ((await it.runs()).length > 1 ? it.runs() : undefined));
      const slots = all.map((each) => slotOf('all', nameOf(each)) ?? 0);
      if (first && known.length > 0) expect(known).toContain(nameOf(first));
      expect(new Set(slots).size).toBe(slots.length);
      expect(Math.max(...slots) - Math.min(...slots)).toBe((slots.length - 1) * MINUTE_MS);
      expect(await it.notesOf('MissedSchedule')).toEqual([]);
    },
  );

  test.runIf(process.env['DEV_TEST_ALL'])('catches up on the newest missed run, and reports the others', async () => {
    const it = await stage();
    const operator = it.start();
    await it.make({ concurrencyPolicy: 'Allow' });
    await it.becomes('Scheduled', 'True/Scheduled');
    // Not during a run: it would have been started, and the status would still announce it.
    await it.wait('a moment between two', async () => {
      const next = Date.parse((await it.read()).status?.nextScheduleTime ?? '');
      return next - Date.now() > 10_000 || undefined;
    });
    await operator.stop('SIGKILL');
    const since = Date.parse((await it.read()).status?.nextScheduleTime ?? '');
    const before = (await it.runs()).length;
    await pause(since + 2 * MINUTE_MS - Date.now() + 1_000);
    expect(await it.runs()).toHaveLength(before);
    it.start();
    const all = await it.wait('it', async () => ((await it.runs()).length > before ? it.runs() : undefined));
    expect(slotOf('all', nameOf(all.at(-1) ?? { metadata: {} }))).toBeGreaterThanOrEqual(since + 2 * MINUTE_MS);
    const [note] = await it.wait('the Event', async () => {
      const notes = await it.notesOf('MissedSchedule');
      return notes.length > 0 ? notes : undefined;
    });
    expect(note).toMatch(/^\d snapshots were missed since .*: only that of .* is taken now$/);
  });

  test('waits, replaces, suspends and reports it, as configured', async () => {
    const it = await stage();
    it.start();
    await it.make({ schedule: '0 0 30 2 *' });
    await it.becomes('Scheduled', 'False/InvalidSchedule');
    await it.edit({ schedule: EVERY_MINUTE, suspend: true });
    await it.becomes('Scheduled', 'False/Suspended');
    expect((await it.read()).status?.nextScheduleTime).toBeUndefined();
    await pause(MINUTE_MS - (Date.now() % MINUTE_MS) + 5_000); // past the next run
    expect(await it.runs()).toEqual([]);
    await it.edit({ suspend: false });
    const [first] = await it.wait('the first', async () => ((await it.runs()).length > 0 ? it.runs() : undefined));
    await it.becomes('Scheduled', 'True/WaitingForLast');
    expect((await it.runs()).map(nameOf)).toEqual([nameOf(first ?? { metadata: {} })]);
    expect((await it.read()).status?.active).toEqual([{ name: nameOf(first ?? { metadata: {} }) }]);
    await it.edit({ concurrencyPolicy: 'Replace' });
    const [second] = await it.wait('another instead', async () => {
      const all = await it.runs(); // for a moment there is none
      return all.length === 0 || all.some((run) => nameOf(run) === nameOf(first ?? { metadata: {} })) ? undefined : all;
    });
    expect(slotOf('all', nameOf(second ?? { metadata: {} }))).toBeGreaterThan(
      slotOf('all', nameOf(first ?? { metadata: {} })) ?? Infinity,
    );
    expect(await it.notesOf('MissedSchedule')).toEqual([]);
  });

  test('keeps a short history, and always the last successful snapshot', async () => {
    const it = await stage();
    it.start();
    const made = await it.make({
      schedule: '@yearly',
      successfulSnapshotsHistoryLimit: 2,
      failedSnapshotsHistoryLimit: 1,
    });
    const names: string[] = [];
    for (const [ago, status] of [
      [9, stored()],
      [8, failed],
      [7, stored()],
      [6, failed],
      [5, stored()],
      [4, stored()],
      [3, failed],
    ] as const)
      names.push(await past(it, made, ago, status));
    await it.wait('a short history', async () => ((await it.runs()).length === 3 ? true : undefined));
    expect((await it.runs()).map(nameOf)).toEqual([names[4], names[5], names[6]]);
    expect((await it.read()).status).toMatchObject({
      lastSuccessful: { name: names[5] },
      lastFailed: { name: names[6] },
    });
    await it.becomes('SnapshotSucceeded', 'False/Failed');
    await it.edit({ successfulSnapshotsHistoryLimit: 0, failedSnapshotsHistoryLimit: 0 });
    await it.wait('the last good one', async () => ((await it.runs()).length === 1 ? true : undefined));
    expect((await it.runs()).map(nameOf)).toEqual([names[5]]);
  });

  test.runIf(process.env['DEV_TEST_ALL'])('makes its cluster report whether a backup is recent enough', async () => {
    const it = await stage();
    it.start();
    // The recovery point must not have passed before an operator can report that it has not.
    await world.patiently(PATIENCE_MS).condition(it.namespace, 'db', 'Available', 'False', 'ImageNotAllowed');
    const made = await it.make({ schedule: '@yearly', recoveryPoint: '30s' });
    const fresh = (status: string, reason: string) =>
      world.patiently(PATIENCE_MS).condition(it.namespace, 'db', 'BackupFresh', status, reason);
    await fresh('Unknown', 'NoBackupYet');
    await fresh('False', 'BackupTooOld');
    await past(it, made, 1, stored());
    await fresh('True', 'Fresh');
    await fresh('False', 'BackupTooOld');
    await it.edit({ recoveryPoint: '24h' });
    await fresh('True', 'Fresh');
    await it.edit({ recoveryPoint: null });
    await eventually('nothing to be demanded', async () => {
      const [cluster] = await world.list<{ metadata: object; status?: { conditions?: [] } }>(
        { group: 'etcd-operator.cozystack.io', version: 'v1alpha2', plural: 'etcdclusters', kind: 'EtcdCluster' },
        it.namespace,
      );
      return findCondition(cluster?.status?.conditions, 'BackupFresh') === undefined ? true : undefined;
    });
  });
});
