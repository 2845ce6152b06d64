/** Whole screens, compared with files: what users see, character by character. */
import { describe, expect, test } from 'vitest';
import { condition, NOW } from '../../../test/support/builders/builders.ts';
import { aDefrag, DEFRAG_UID, done, MI, outcome } from '../../../test/support/builders/defrags.ts';
import { anEvent, facts, HEALTHY, member } from '../../../test/support/builders/plugin.ts';
import { aSchedule } from '../../../test/support/builders/schedules.ts';
import { aSnapshot } from '../../../test/support/builders/snapshot.ts';
import { NO_CERTIFICATES } from '../../access/evaluate/view.ts';
import type { ClusterFacts } from '../assess/facts.ts';
import { reportOn } from '../assess/report.ts';
import { clusterScreen } from './cluster.ts';

const DAY = 86_400_000;
const iso = (ms: number): string => new Date(NOW + ms).toISOString();
const failed = { is: 'failed', message: 'dial tcp 10.0.0.3:2379: connection refused' } as const;
const degraded = condition(
  'Degraded',
  'True',
  'MembersUnhealthy',
  'db-aaaa3 is not ready: etcd is waiting: CrashLoopBackOff: back-off 5m0s; waits for the volume of db-aaaa3, which is on node worker-3, and replaces the member after it was unreachable for 5 minutes',
);
const notReady = condition('Ready', 'False', 'PodNotReady', 'etcd is waiting: CrashLoopBackOff');

const artifact = { uri: 's3://b/k', sizeBytes: 21_000_000, revision: 8_900, takenAt: iso(-3 * 3_600_000) };
const backedUp: Partial<ClusterFacts> = {
  schedules: [
    aSchedule(
      { schedule: '0 */6 * * *' },
      {
        lastSuccessful: { name: 'hourly-202601010900', time: iso(-3 * 3_600_000 + 20_000), artifact },
        nextScheduleTime: iso(3 * 3_600_000),
        lastDrill: { name: 'hourly-202601010300', time: iso(-9 * 3_600_000), succeeded: true },
      },
    ),
  ],
  snapshots: [
    aSnapshot({ status: { phase: 'Complete', completionTime: iso(-3 * 3_600_000 + 20_000), artifact } }),
    aSnapshot({
      status: {
        phase: 'Failed',
        completionTime: iso(-2 * DAY),
        conditions: [condition('Ready', 'False', 'StoreRefused', 'the store refused the credentials')],
      },
    }),
  ],
};

const secured: Partial<ClusterFacts> = {
  certificates: {
    ...NO_CERTIFICATES,
    certificates: [
      {
        need: { role: 'server', secret: 'db-server-mounted', from: 'user' },
        findings: [],
        usable: true,
        notAfter: NOW + 61 * DAY,
        renewAt: NOW + 31 * DAY,
      },
      {
        need: { role: 'operator', secret: 'db-operator-client-tls', from: 'user' },
        findings: [{ is: 'expiresSoon', secret: 'db-operator-client-tls', key: 'tls.crt', at: '2026-01-03T00:00:00Z' }],
        usable: true,
        notAfter: NOW + 1.5 * DAY,
      },
    ],
  },
};

const pdb = {
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name: 'db' },
  status: { disruptionsAllowed: 1, currentHealthy: 3, desiredHealthy: 2 },
} as const;

const SCREENS: Readonly<Record<string, ClusterFacts>> = {
  healthy: facts({
    ...backedUp,
    ...secured,
    pdb,
    events: [anEvent(3), anEvent(90, { series: { count: 4, lastObservedTime: iso(-DAY) } })],
  }),
  'one-member-down': facts({
    members: [member(1), member(2), member(3, { answer: failed, ready: notReady, pod: 'crashing' })],
    status: { conditions: [HEALTHY[0], HEALTHY[1], degraded].filter((each) => each !== undefined) },
    pdb: { ...pdb, status: { disruptionsAllowed: 0, currentHealthy: 2, desiredHealthy: 2 } },
    events: [
      anEvent(1, {
        type: 'Warning',
        reason: 'BackOff',
        note: 'Back-off restarting failed container etcd in pod db-aaaa3_ns(33333333-0000-4000-8000-000000000000)',
        regarding: { kind: 'Pod', name: 'db-aaaa3' },
      }),
    ],
  }),
  'quorum-lost': facts({
    members: [
      member(1, { answer: { leader: undefined } }),
      member(2, { answer: failed, ready: notReady, pod: 'crashing' }),
      member(3, {
        answer: failed,
        ready: condition('Ready', 'False', 'NodeLost', 'node worker-3 was deleted'),
        pod: 'absent',
      }),
    ],
  }),
  'no-space': facts({
    members: [1, 2, 3].map((index) =>
      member(index, { answer: { databaseBytes: 2 ** 31, ...(index === 1 && { alarms: ['NOSPACE'] }) } }),
    ),
  }),
  'without-permissions': facts({
    members: [1, 2, 3].map((index) => member(index, { answer: { is: 'notAsked', message: 'x' } })),
    list: { is: 'notAsked', message: 'x' },
    unread: [
      {
        what: 'what the members respond',
        message: 'you lack the permission to get and create pods/portforward in namespace ns',
      },
      { what: 'zones', message: 'you lack the permission to get nodes in the whole Kubernetes cluster' },
    ],
  }),
  'rolling-out': facts({
    members: [member(1, { answer: { version: '3.5.35' } }), member(2), member(3, { answer: { version: '3.5.35' } })],
    spec: { version: '3.6.16' },
    status: {
      version: '3.5.35',
      clusterVersion: '3.5.0',
      updatedMembers: 1,
      rollout: { since: iso(-150_000) },
      members: [1, 2, 3].map((index) => ({
        name: `db-aaaa${index}`,
        role: index === 1 ? 'leader' : 'follower',
        ...(index !== 2 && { outdated: ['version', 'resources'] }),
      })),
      conditions: [
        ...HEALTHY.slice(0, 1),
        condition(
          'Progressing',
          'True',
          'RollingOut',
          '1 of 3 members have version 3.6.16, resources; db-aaaa3 is restarted next: waits until all members have been ready for a moment',
        ),
        ...HEALTHY.slice(2),
      ],
    },
  }),
  'rollout-failed': facts({
    spec: { version: '3.6.17' },
    status: {
      updatedMembers: 0,
      rollout: {
        since: iso(-900_000),
        failed: {
          member: 'db-aaaa2',
          at: iso(-60_000),
          message: 'it was not ready within 600 s: etcd is waiting: ImagePullBackOff: no such image',
        },
      },
      members: [1, 2, 3].map((index) => ({ name: `db-aaaa${index}`, role: 'follower', outdated: ['version'] })),
      conditions: [
        ...HEALTHY.slice(0, 1),
        condition(
          'Progressing',
          'False',
          'RolloutFailed',
          'it was not ready within 600 s: etcd is waiting: ImagePullBackOff: no such image',
        ),
        ...HEALTHY.slice(2),
      ],
    },
  }),
  defragmenting: facts({
    status: {
      defragmentation: {
        member: 'db-aaaa3',
        defrag: 'nightly',
        uid: DEFRAG_UID,
        attempt: 1,
        startedAt: iso(-2_000),
        dbSizeBefore: 500 * MI,
      },
    },
    defrags: [
      aDefrag(
        {},
        { phase: 'Complete', completedAt: iso(-40 * 60_000), members: [done('db-aaaa1'), done('db-aaaa2')] },
        { name: 'db-20260101111500', uid: 'x' },
      ),
      aDefrag(
        {},
        { phase: 'Complete', completedAt: iso(-3 * 3_600_000), members: [done('db-aaaa1')] },
        { name: 'earlier', uid: 'y' },
      ),
      aDefrag(
        {},
        {
          phase: 'Pending',
          waitingFor: 'EtcdDefrag nightly of the same cluster goes first, and then this one has to wait for the others',
        },
        { name: 'queued', uid: 'z', creationTimestamp: '2026-01-01T11:59:00Z' },
      ),
      aDefrag({}, { phase: 'Running', members: [done('db-aaaa2'), outcome('db-aaaa3'), outcome('db-aaaa1')] }),
    ],
  }),
  'edited-while-suspended': facts({
    spec: { suspend: true, version: '3.7.1' },
    status: {
      updatedMembers: 1,
      conditions: [...HEALTHY, condition('Suspended', 'True', 'Suspended', 'suspended: the operator changes nothing')],
    },
  }),
};

describe.each(Object.entries(SCREENS))('%s', (name, given) => {
  const screen = (colour: boolean, wide: boolean): string =>
    clusterScreen({ colour, width: 100 }, reportOn(given), { wide, now: NOW });

  test('the whole screen', async () => {
    await expect(`${screen(false, false)}\n`).toMatchFileSnapshot(`golden/${name}.txt`);
  });
  test('no line is wider than 100 columns, and none ends with a space', () => {
    const lines = screen(false, false).split('\n');
    expect(lines.filter((line) => line.length > 100)).toEqual([]);
    expect(lines.filter((line) => line !== line.trimEnd())).toEqual([]);
  });
  test('colours change nothing but the colour', () => {
    const coloured = screen(true, true);
    expect(coloured).toContain('\u001B[');
    expect(coloured.replaceAll(/\p{Cc}\[\d+m/gu, '')).toBe(screen(false, true));
  });
});

test('with -o wide, the members have their addresses, restarts, terms and revisions', async () => {
  const given = SCREENS['healthy'];
  if (!given) throw new Error('no such screen');
  const screen = clusterScreen({ colour: false, width: 140 }, reportOn(given), { wide: true, now: NOW });
  await expect(`${screen}\n`).toMatchFileSnapshot('golden/wide.txt');
});

test('the recovery point of a user who may not list snapshots is unknown, not missing', () => {
  const unread = [{ what: 'snapshots', message: 'you lack the permission to list etcdsnapshots' }];
  const screen = clusterScreen({ colour: false, width: 100 }, reportOn(facts({ unread })), { wide: false, now: NOW });
  expect(screen).toContain('Backups: unknown, see below');
  expect(screen).not.toContain('no snapshot');
});

test('what an Event or a member reports cannot control the terminal', () => {
  const given = facts({ events: [anEvent(1, { note: 'a\u001B]0;owned\u0007b\r\nc' })] });
  const screen = clusterScreen({ colour: false, width: 100 }, reportOn(given), { wide: false, now: NOW });
  expect(screen.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u);
});
