/** One row per finding: a cluster that has it, and what the doctor says. */
import { describe, expect, test } from 'vitest';
import { condition, NOW } from '../../../test/support/builders/builders.ts';
import { facts, HEALTHY, member, NAME } from '../../../test/support/builders/plugin.ts';
import { aSchedule } from '../../../test/support/builders/schedules.ts';
import { aSnapshot } from '../../../test/support/builders/snapshot.ts';
import { NO_CERTIFICATES } from '../../access/evaluate/view.ts';
import { diagnosisText } from '../render/diagnosis.ts';
import { diagnose } from './diagnosis.ts';
import type { ClusterFacts } from './facts.ts';
import type { Level } from './finding.ts';
import { clockOf, metricsOf as judged, type MemberMetrics, parseSample } from './metrics.ts';

const MI = 1024 ** 2;
const DAY = 86_400_000;
const iso = (ms: number): string => new Date(NOW + ms).toISOString();
const FAST: MemberMetrics = { walFsync: { count: 1_000, p99: 0.004 }, backendCommit: { count: 1_000, p99: 0.016 } };
const metricsOf = (metrics: MemberMetrics) => new Map([1, 2, 3].map((index) => [NAME(index), metrics]));

const stored = { name: 's', time: iso(-3_600_000), artifact: { uri: 's3://b/k' } };
const drill = { name: 's', time: iso(-3_600_000), succeeded: true };
const backedUp = (status: object = {}) => ({
  schedules: [aSchedule({}, { lastSuccessful: stored, lastDrill: drill, ...status })],
});
const certificate = (notAfter: number) => ({
  need: { role: 'server', secret: 'tls', from: 'user' } as const,
  findings: [],
  usable: true,
  notAfter,
});
const pdb = {
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name: 'db' },
  status: { disruptionsAllowed: 1 },
} as const;
const spec = { tls: { client: { managed: {} } } };
const valid = { certificates: { ...NO_CERTIFICATES, certificates: [certificate(NOW + 30 * DAY)] } };
const small = [1, 2, 3].map((index) => member(index, { answer: { databaseBytes: 20 * MI, inUseBytes: 15 * MI } }));
const sound = (more: Parameters<typeof facts>[0] = {}): ClusterFacts =>
  facts({ members: small, pdb, ...valid, ...backedUp(), ...more, spec: { ...spec, ...more.spec } });

test('a cluster without anything to improve has only what is ok', () => {
  const findings = diagnose(sound(), metricsOf(FAST));
  expect(findings.filter(({ level }) => level !== 'ok')).toEqual([]);
  expect(findings).toHaveLength(14);
});

const onOneNode = small.map((each) => ({
  ...each,
  pod: each.pod && { ...each.pod, spec: { containers: [], nodeName: 'n' } },
}));
const changed = (type: string, status: 'True' | 'False', reason: string) => ({
  conditions: [...HEALTHY.filter((each) => each.type !== type), condition(type, status, reason, 'the message')],
});

describe.each<[subject: string, level: Level, says: string, given: ClusterFacts, metrics?: MemberMetrics]>([
  ['health', 'problem', 'The message.', sound({ status: changed('Degraded', 'True', 'MembersUnhealthy') })],
  ['members', 'advice', 'any failure of the only member', sound({ spec: { replicas: 1 } })],
  ['members', 'advice', '4 members tolerate no more failures than 3', sound({ spec: { replicas: 4 } })],
  ['members', 'advice', 'in memory only', sound({ spec: { storage: { medium: 'Memory', size: '1Gi' } } })],
  ['spread', 'advice', 'several members run on n', sound({ members: onOneNode as ClusterFacts['members'] })],
  ['spread', 'advice', 'all members are in zone z', sound({ members: small.map((each) => ({ ...each, zone: 'z' })) })],
  [
    'restarts',
    'advice',
    'db-aaaa3 has restarted 9 times',
    sound({ members: [...small.slice(0, 2), member(3, { pod: 'crashing' })] }),
  ],
  ['quota', 'advice', '63 % of its quota', sound({ members: [member(1), member(2), member(3)] })],
  [
    'quota',
    'problem',
    '95 % of its quota',
    sound({
      members: [1, 2, 3].map((index) => member(index, { answer: { databaseBytes: 365 * MI, inUseBytes: 300 * MI } })),
    }),
  ],
  [
    'fragmentation',
    'advice',
    'more than half of the database of db-aaaa1',
    sound({ members: [member(1), member(2), member(3)] }),
  ],
  ['disk', 'unknown', 'no metrics', sound(), {}],
  ['disk', 'advice', 'fsync of db-aaaa1: up to 128 ms', sound(), { walFsync: { count: 500, p99: 0.128 } }],
  [
    'disk',
    'advice',
    'commit of db-aaaa1: up to more than 8 s',
    sound(),
    { backendCommit: { count: 500, p99: Infinity } },
  ],
  ['disk', 'ok', '99 % of fsyncs', sound(), { walFsync: { count: 99, p99: 1 } }],
  [
    'version',
    'advice',
    'etcd 3.5.2: members may have different data',
    sound({ members: [member(1, { answer: { version: '3.5.2' } })] }),
  ],
  [
    'version',
    'advice',
    'members run 3.6.15 and 3.6.16',
    sound({ members: [member(1, { answer: { version: '3.6.15' } }), member(2)] }),
  ],
  [
    'certificates',
    'advice',
    'tls expires within a week',
    sound({ certificates: { ...NO_CERTIFICATES, certificates: [certificate(NOW + DAY)] } }),
  ],
  [
    'certificates',
    'problem',
    'has expired',
    sound({
      certificates: {
        ...NO_CERTIFICATES,
        certificates: [
          { ...certificate(NOW - DAY), findings: [{ is: 'expired', secret: 'tls', key: 'tls.crt', at: 'then' }] },
        ],
      },
    }),
  ],
  ['backups', 'problem', 'no snapshot of this cluster is complete', sound({ schedules: [] })],
  ['backups', 'problem', 'the message', sound({ status: changed('BackupFresh', 'False', 'BackupTooOld') })],
  [
    'backups',
    'problem',
    'the last restore drill of hourly failed: HashMismatch',
    sound(backedUp({ lastDrill: { ...drill, succeeded: false, reason: 'HashMismatch' } })),
  ],
  ['backups', 'advice', 'no restore drill has proven', sound(backedUp({ lastDrill: undefined }))],
  ['backups', 'unknown', 'could not be read', sound({ unread: [{ what: 'snapshots', message: 'm' }] })],
  [
    'drains',
    'advice',
    'the PodDisruptionBudget is disabled',
    sound({ spec: { podDisruptionBudget: { enabled: false } } }),
  ],
  ['drains', 'advice', 'no Pod may be evicted now', sound({ pdb: { ...pdb, status: { disruptionsAllowed: 0 } } })],
  ['operator', 'advice', 'suspended', sound({ spec: { suspend: true } })],
  ['operator', 'advice', 'the message', sound({ status: changed('ManagedObjectsInSync', 'False', 'Refused') })],
  [
    'permissions',
    'unknown',
    'zones: you lack',
    sound({ unread: [{ what: 'zones', message: 'you lack the permission' }] }),
  ],
])('%s: %s, %s', (subject, level, says, given, metrics = FAST) => {
  test('is found', () => {
    const all = Object.keys(metrics).length === 0 ? new Map() : metricsOf(metrics);
    const finding = diagnose(given, all).find((each) => each.subject === subject);
    expect(finding).toMatchObject({ level, message: expect.stringContaining(says) as string });
    expect(level === 'ok' || level === 'unknown' || finding?.advice !== undefined).toBe(true);
  });
});

describe('the trend of the database', () => {
  const taken = (daysAgo: number, databaseBytes: number, clusterID?: string) =>
    aSnapshot({
      status: {
        phase: 'Complete',
        artifact: {
          uri: 's3://b/k',
          takenAt: new Date(NOW - daysAgo * DAY).toISOString(),
          databaseBytes,
          ...(clusterID && { clusterID }),
        },
      },
    });
  const quota = (...snapshots: readonly ReturnType<typeof taken>[]) =>
    diagnose(sound({ snapshots }), metricsOf(FAST)).find(({ subject }) => subject === 'quota');
  test.each<[string, Level, string, readonly ReturnType<typeof taken>[]]>([
    [
      'it will be full soon',
      'advice',
      'grows by 40.0 MiB a day: it is full in 9 days',
      [taken(5, 40 * MI), taken(0, 240 * MI)],
    ],
    ['it has time', 'ok', 'grows by 1.0 MiB a day: it is full in 364 days', [taken(5, 235 * MI), taken(0, 240 * MI)]],
    ['it shrinks', 'ok', 'and does not grow', [taken(5, 300 * MI), taken(0, 240 * MI)]],
  ])('%s', (_, level, says, snapshots) => {
    expect(quota(...snapshots)).toMatchObject({ level, message: expect.stringContaining(says) as string });
  });
  test('is unknown by snapshots of one day, of another cluster or of long ago', () => {
    for (const other of [taken(0.5, MI), taken(5, MI, 'other'), taken(60, MI)])
      expect(quota(other, taken(0, 240 * MI))?.message).not.toContain('grow');
  });
});

describe('clocks', () => {
  const at = (...ahead: readonly (readonly [number, number])[]) =>
    diagnose(
      sound(),
      new Map(ahead.map(([least, most], index) => [NAME(index + 1), { ...FAST, clock: { least, most } }])),
    ).find(({ subject }) => subject === 'clocks');
  test('that are certainly apart are found', () => {
    expect(at([4_000, 5_100], [-200, 900], [0, 1_100])).toMatchObject({
      level: 'problem',
      message: `the clock of ${NAME(1)} is at least 3 s ahead of that of ${NAME(2)}`,
    });
    expect(at([1_500, 2_600], [-200, 900])?.level).toBe('ok');
    expect(at([9_000, 9_900])?.level).toBe('ok');
  });
  test('are compared by the date of a response, which has whole seconds', () => {
    expect(clockOf('Thu, 01 Jan 2026 12:00:00 GMT', NOW - 100, NOW + 50)).toEqual({ least: -50, most: 1_100 });
    expect(clockOf(undefined, NOW, NOW)).toBeUndefined();
  });
});

test('the worst comes first, and no line is wider than 100 columns', async () => {
  const text = diagnosisText({ colour: false, width: 100 }, 'Checks', diagnose(facts(), new Map()));
  await expect(`${text}\n`).toMatchFileSnapshot('../render/golden/doctor.txt');
  expect(text.split('\n').filter((line) => line.length > 100)).toEqual([]);
});

test('latencies are read from the histograms of etcd', () => {
  const bucket = (le: string, count: number) => `etcd_disk_wal_fsync_duration_seconds_bucket{le="${le}"} ${count}`;
  const text = [
    '# HELP etcd_disk_wal_fsync_duration_seconds The latency',
    bucket('0.001', 10),
    bucket('0.002', 980),
    bucket('0.004', 990),
    bucket('+Inf', 1_000),
    'etcd_server_leader_changes_seen_total 3',
  ].join('\n');
  expect(judged(parseSample(text, NOW))).toEqual({ walFsync: { count: 1_000, p99: 0.004 }, leaderChanges: 3 });
  expect(judged(parseSample('', NOW))).toEqual({});
});
