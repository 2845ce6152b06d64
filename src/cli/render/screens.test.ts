/** Whole screens of single commands, compared with files. */
import { describe, expect, test } from 'vitest';
import { condition, NOW } from '../../../test/support/builders/builders.ts';
import { anEvent, facts, HEALTHY, member } from '../../../test/support/builders/plugin.ts';
import { type LogLine, memberLine, operatorLine } from '../assess/log-lines.ts';
import { type CertificateRow, eventRows } from '../assess/report.ts';
import { restartProgress } from '../assess/rollout.ts';
import { upgradePath, type VersionChecks } from '../assess/upgrade.ts';
import { certificatesText } from './certificates.ts';
import { eventColumns } from './events.ts';
import { logText } from './log.ts';
import type { Paper } from './style.ts';
import { table } from './table.ts';
import { upgradePlan } from './upgrade.ts';

const DAY = 86_400_000;

const certificates: readonly CertificateRow[] = [
  { role: 'server', secret: 'db-server-mounted', notAfter: NOW + 61 * DAY, renewAt: NOW + 31 * DAY, problems: [] },
  { role: 'operator', secret: 'db-operator-client-tls', notAfter: NOW + 1.5 * DAY, problems: ['it expires soon'] },
  { role: 'application', secret: 'db-client-tls', notAfter: NOW - DAY, problems: ['it has expired'] },
  { role: 'peer', secret: 'db-peer-mounted', problems: ['Secret db-peer-mounted has no tls.crt'] },
];
const trust = [
  { port: 'client', bundle: '0123456789', state: 'settled' },
  { port: 'peer', bundle: 'abcdef0123', state: 'CA rotation: members restart one after the other' },
];

const events = eventRows([
  anEvent(1, {
    type: 'Warning',
    reason: 'BackOff',
    note: 'Back-off restarting failed container etcd in pod db-aaaa3_ns(33333333-0000-4000-8000-000000000000)',
    regarding: { kind: 'Pod', name: 'db-aaaa3' },
    series: { count: 12, lastObservedTime: new Date(NOW - 30_000).toISOString() },
  }),
  anEvent(3),
  anEvent(50, { note: 'a\u001B[31mred\nline' }),
]).toReversed();

const keys = new Set(['ns/db']);
const log = [
  memberLine(
    'db-aaaa1',
    '2026-01-01T11:59:58.25Z {"level":"warn","ts":"x","caller":"a.go:1","msg":"slow fdatasync","took":"1.2s"}',
  ),
  {
    at: NOW - 1_000,
    source: 'event',
    level: 'warn',
    text: 'BackOff Pod db-aaaa3: Back-off restarting failed container',
  } as const,
  operatorLine(
    keys,
    '2026-01-01T11:59:59.5Z {"level":"info","controller":"cluster","key":"ns/db","rule":"promote","message":"db-aaaa3 has caught up","steps":["promote db-aaaa3"]}',
  ),
  memberLine('db-aaaa3', '2026-01-01T12:00:00Z panic: \u001B]0;owned\u0007 boom'),
].filter((line): line is LogLine => line !== undefined);

const rolling = (done: number) =>
  condition('Progressing', 'True', 'RollingOut', `${done} of 3 members have the requested restart; waits for db-aaaa2`);
const uids = (...of: readonly string[]) => of.map((uid) => ({ pod: withUid(uid) }));
const withUid = (uid: string) => {
  const { pod } = member(1);
  if (!pod) throw new Error('no Pod');
  return { ...pod, metadata: { ...pod.metadata, uid } };
};
const restart = (done: number, pods: readonly string[], isRolling = true): string => {
  const { cluster } = facts({ status: { conditions: isRolling ? [rolling(done)] : HEALTHY } });
  return restartProgress(cluster, uids(...pods), { value: 'now', before: new Set(['a', 'b', 'c']) }).line;
};

const onTheWay = facts({
  spec: { version: '3.5.30' },
  members: [1, 2, 3].map((index) => member(index, { answer: { version: '3.5.30' } })),
});
const checks: VersionChecks = {
  found: [
    {
      reason: 'AlarmRaised',
      message: 'etcd has the alarm NOSPACE: remove its cause, and disarm it with etcdctl alarm disarm',
    },
    { reason: 'TakingSnapshot', message: 'EtcdSnapshot db-version-x is taken before the first member is changed' },
  ],
  limits: ['schedules: you lack the permission to list etcdsnapshotschedules in namespace ns'],
};
const plan = (paper: Paper, more: VersionChecks): string => {
  const path = upgradePath(onTheWay, '3.7.3');
  if (typeof path === 'string') throw new Error(path);
  return upgradePlan(paper, 'etcd cluster ns/db: to 3.7.3', path, { wanted: '3.5.30', checks: more });
};

const SCREENS: Readonly<Record<string, (paper: Paper) => string>> = {
  certs: (paper) => certificatesText(paper, certificates, trust, NOW),
  events: (paper) => table(paper, eventColumns(paper, events, { wide: false, now: NOW }), events).join('\n'),
  logs: (paper) => log.map((line) => logText(paper, line, 8)).join('\n'),
  restart: () =>
    [
      restart(0, ['a', 'b', 'c'], false),
      restart(0, ['a', 'b', 'c']),
      restart(1, ['d', 'b', 'c']),
      restart(2, ['d', 'b', 'e']),
      restart(3, ['d', 'f', 'e'], false),
    ].join('\n'),
  upgrade: (paper) => plan(paper, { found: [], limits: [] }),
  'upgrade-held': (paper) => plan(paper, checks),
};

test('what could not be checked is not said to be right', () => {
  const text = plan({ colour: false, width: 100 }, { found: [], limits: ['nodes: you lack the permission'] });
  expect(text).toContain('nothing is wrong, as far as could be read\n  Not checked: nodes:');
});

describe.each(Object.entries(SCREENS))('%s', (name, screen) => {
  test('the whole screen', async () => {
    await expect(`${screen({ colour: false, width: 100 })}\n`).toMatchFileSnapshot(`golden/${name}.txt`);
  });
  test('no line is wider than 100 columns, ends with a space or controls the terminal', () => {
    const lines = screen({ colour: false, width: 100 }).split('\n');
    expect(lines.filter((line) => line.length > 100 || line !== line.trimEnd() || /\p{Cc}/u.test(line))).toEqual([]);
  });
  test('colours change nothing but the colour', () => {
    const coloured = screen({ colour: true, width: 100 });
    expect(coloured.replaceAll(/\p{Cc}\[\d+m/gu, '')).toBe(screen({ colour: false, width: 100 }));
  });
});
