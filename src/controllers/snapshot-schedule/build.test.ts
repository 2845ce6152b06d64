import { expect, test } from 'vitest';
import { aCluster } from '../../../test/support/builders/builders.ts';
import { ARTIFACT, aRun, aSchedule, pruneTaskOf, STORED } from '../../../test/support/builders/schedules.ts';
import type { EtcdSnapshot } from '../../api/etcd-snapshot.ts';
import type { EtcdSnapshotSchedule, EtcdSnapshotScheduleSpec } from '../../api/etcd-snapshot-schedule.ts';
import { scheduledSnapshot } from '../../domain/scheduled-snapshot.ts';
import { drillJob, jobNames, policyOf, pruneJob } from './build.ts';
import { scrubJob } from './build-scrub.ts';

const cluster = aCluster({
  spec: { tolerations: [{ key: 'etcd', operator: 'Exists' }], imagePullSecrets: [{ name: 'pull' }] },
});
const of = { schedule: aSchedule({ retention: { keepLast: 3 } }), cluster, operatorImage: 'operator:1' };
const images = { repository: 'quay.io/coreos/etcd', allowed: [] };

test('the prune Job', () => {
  expect(
    pruneJob({ ...of, run: 'hourly-202603010500', runs: [], retention: { keepLast: 3 }, now: 1 }),
  ).toMatchSnapshot();
});

test('a prune Job has the uid and SHA-256 of the newest stored snapshots, also of the last when its EtcdSnapshot is deleted', () => {
  const checksum = (n: number): string => `${n}`.padStart(64, '0');
  const stored = (n: number) => ({ uri: 's3://b/x', checksum: `sha256:${checksum(n)}` });
  const runs = Array.from({ length: 22 }, (_, n) =>
    aRun(`${String(n).padStart(2, '0')}:00:00`, { phase: 'Complete', artifact: stored(n) }),
  );
  const recordedIn = (schedule: EtcdSnapshotSchedule, of_: readonly EtcdSnapshot[]) =>
    pruneTaskOf(pruneJob({ ...of, schedule, run: 'x', runs: of_, retention: { keepLast: 3 }, now: 1 })).recorded;
  const fromIn = (limit: number | undefined, of_: readonly EtcdSnapshot[]) => {
    const schedule = aSchedule(limit === undefined ? {} : { successfulSnapshotsHistoryLimit: limit });
    return pruneTaskOf(pruneJob({ ...of, schedule, run: 'x', runs: of_, retention: {}, now: 1 })).allRecordedFrom;
  };
  const [proven] = runs;
  for (const [limit, hour] of [
    [undefined, 19],
    [5, 17],
    [0, 21],
    [100, 2],
  ] as const)
    expect(fromIn(limit, [...(proven && limit !== 100 ? [proven] : []), ...runs.slice(2)])).toBe(
      Date.UTC(2026, 2, 1, hour),
    );
  const all = recordedIn(of.schedule, runs);
  expect(all).toHaveLength(20);
  expect(all?.at(-1)).toEqual({ name: 'hourly-202603012100', uid: runs[21]?.metadata.uid, sha256: checksum(21) });
  const lastSuccessful = { name: 'hourly-202603012200', time: '2026-03-01T22:01:00Z', artifact: stored(22) };
  const expected = { name: 'hourly-202603012200', sha256: checksum(22) };
  expect(recordedIn(aSchedule({}, { lastSuccessful }), [])).toEqual([expected]);
  expect(recordedIn(aSchedule({}, { lastSuccessful }), runs.slice(20))).toContainEqual(expected);
});

test('with the layout ByCluster, snapshots are stored, drilled and pruned in the folder of the namespace and the cluster', () => {
  const schedule = aSchedule({ layout: 'ByCluster' });
  const snapshot = scheduledSnapshot(schedule, Date.parse('2026-03-01T05:00:00Z'));
  expect(snapshot.spec.layout).toBe('ByCluster');
  const key = 'backups/ns/db/hourly-202603010500.db';
  const drill = drillJob({ ...of, schedule, run: snapshot, images });
  expect(drill.spec?.template.spec?.containers[0]?.env?.[0]?.value).toContain(`"key":"${key}"`);
  const prune = pruneJob({ ...of, schedule, run: 'x', runs: [], retention: { keepLast: 3 }, now: 1 });
  expect(pruneTaskOf(prune).prefix).toBe('backups/ns/db');
  expect(policyOf(schedule)).not.toBe(policyOf(aSchedule()));
  expect(policyOf(aSchedule({ layout: 'Flat' }))).toBe(policyOf(aSchedule()));
});

test('the prune Job of an encrypted schedule has all keys of its Secret, which authenticate the manifests', () => {
  const schedule = aSchedule({ encryption: { keySecretRef: { name: 'snapshot-key' } } });
  const job = pruneJob({ ...of, schedule, run: 'x', runs: [], retention: { keepLast: 3 }, now: 1 });
  expect(pruneTaskOf(job).encrypted).toBe(true);
  const volume = job.spec?.template.spec?.volumes?.find(({ name }) => name === 'encryption');
  expect(volume?.secret).toEqual({ secretName: 'snapshot-key', defaultMode: 0o440, optional: true });
});

test('the drill Job', () => {
  expect(drillJob({ ...of, run: aRun('05:00:00'), images })).toMatchSnapshot();
});

test('a drill reads the stored format, with the version and image of the cluster, within its storageSize', () => {
  const made = aRun('05:00:00');
  const run = {
    ...made,
    spec: {
      ...made.spec,
      destination: { pvc: { claimName: 'backups', subPath: 'db' } },
      compression: 'Zstd' as const,
      encryption: { keySecretRef: { name: 'key' } },
    },
  };
  const image = { repository: 'mirror/etcd', digest: `sha256:${'0'.repeat(64)}` };
  const job = drillJob({
    ...of,
    schedule: aSchedule({ drill: { storageSize: '5Gi' } }),
    cluster: aCluster({ spec: { version: '3.5.30', image } }),
    run,
    images,
  });
  const {
    containers: [container],
    volumes,
  } = job.spec?.template.spec ?? { containers: [] };
  expect(container?.image).toBe(`mirror/etcd:v3.5.30@sha256:${'0'.repeat(64)}`);
  expect(JSON.parse(container?.env?.find(({ name }) => name === 'AGENT_TASK')?.value ?? '')).toEqual({
    task: 'drill',
    from: { kind: 'pvc', root: '/restore/src' },
    key: 'db/hourly-202603010500.db.zst.enc',
    encrypted: true,
    version: '3.5.30',
    bumpRevision: 1_000_000_000,
    limitBytes: 5 * 2 ** 30 - 64 * 2 ** 20,
  });
  expect(volumes?.find(({ name }) => name === 'room')?.emptyDir).toEqual({ sizeLimit: '5Gi' });
  expect(volumes?.find(({ name }) => name === 'snapshots')?.persistentVolumeClaim?.readOnly).toBe(true);
});

test.each<[string, number | undefined, EtcdSnapshotScheduleSpec['drill'], object, string | undefined]>([
  ['a database of 100 MiB', 100, {}, { memory: '2048Mi' }, '472Mi'],
  ['a database of 4 GiB', 4096, {}, { memory: '9216Mi' }, '8464Mi'],
  ['a snapshot of an earlier operator', undefined, {}, { memory: '2048Mi' }, undefined],
  [
    'stated amounts',
    100,
    { storageSize: '1Gi', resources: { limits: { cpu: 2, memory: '3Gi' } } },
    { cpu: '2', memory: '3Gi' },
    '1Gi',
  ],
])(
  'a drill requests the disk of the node, and may use no more: %s',
  (_what, mebibytes, drill = {}, limits, scratch) => {
    const artifact = { ...ARTIFACT, ...(mebibytes !== undefined && { databaseBytes: mebibytes * 2 ** 20 }) };
    const run = aRun('05:00:00', { ...STORED, artifact });
    const job = drillJob({ ...of, schedule: aSchedule({ drill }), run, images });
    const { containers = [], volumes } = job.spec?.template.spec ?? {};
    expect(containers[0]?.resources).toEqual({
      requests: { cpu: '100m', memory: '128Mi', ...(scratch !== undefined && { 'ephemeral-storage': scratch }) },
      limits,
    });
    const room = volumes?.find(({ name }) => name === 'room')?.emptyDir;
    expect(room).toEqual(scratch === undefined ? {} : { sizeLimit: scratch });
  },
);

test('a scrub reads the store, and has neither a disk of its own nor a way to write', () => {
  const destination = { pvc: { claimName: 'backups', subPath: 'db' } };
  const encryption = { keySecretRef: { name: 'key' } };
  const schedule = aSchedule({ destination, encryption, layout: 'ByCluster' });
  const job = scrubJob({ ...of, schedule, due: '2026-03-01T04:00:00Z', runs: [], now: 7 });
  const { containers: [container] = [], volumes = [] } = job.spec?.template.spec ?? {};
  expect(JSON.parse(container?.env?.find(({ name }) => name === 'AGENT_TASK')?.value ?? '')).toEqual({
    task: 'scrub',
    at: { kind: 'pvc', root: '/restore/src' },
    prefix: 'db/ns/db',
    cluster: { name: 'db', uid: of.cluster.metadata.uid },
    schedule: { name: 'hourly', uid: schedule.metadata.uid },
    encrypted: true,
    verified: [],
    bytesPerSecond: 32 * 2 ** 20,
    now: 7,
  });
  expect(container?.volumeMounts?.every(({ readOnly }) => readOnly === true)).toBe(true);
  expect(volumes.map(({ name }) => name)).toEqual(['encryption', 'snapshots']);
  expect(volumes[1]?.persistentVolumeClaim?.readOnly).toBe(true);
  expect(container?.resources).toEqual({ requests: { cpu: '50m', memory: '64Mi' }, limits: { memory: '256Mi' } });
});

test('each snapshot and each retention has a Job of its own, and its name is short enough', () => {
  const name = 'a'.repeat(41);
  const long = { ...aSchedule(), metadata: { ...aSchedule().metadata, name } };
  const names = [
    jobNames(long, `${name}-202603010500`),
    jobNames(long, `${name}-202603010600`),
    jobNames({ ...long, spec: { ...long.spec, retention: { keepLast: 1 } } }, `${name}-202603010500`),
  ];
  expect(new Set(names.map(({ prune }) => prune)).size).toBe(3);
  expect(new Set(names.map(({ drill }) => drill)).size).toBe(2);
  for (const job of names.flatMap(({ prune, drill }) => [prune, drill])) expect(job.length).toBeLessThanOrEqual(63);
  expect(policyOf(aSchedule({ retention: { keepLast: 1 } }))).toBe(policyOf(aSchedule({ retention: { keepLast: 1 } })));
});
