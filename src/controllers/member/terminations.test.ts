import { describe, expect, test } from 'vitest';
import { aMember, aPod, CLUSTER_ID, MEMBER_ID } from '../../../test/support/builders/builders.ts';
import { ours, world } from '../../../test/support/builders/member.ts';
import type { EtcdMemberStatus } from '../../api/etcd-member.ts';
import type { ContainerStatus } from '../../gen/kube.ts';
import type { Observed } from './observed.ts';
import { failedStartsOf, findingIn, lastLine } from './terminations.ts';

const log = (level: string, msg: string, error: string): string =>
  JSON.stringify({ level, ts: '2026-11-17T02:03:46.253Z', caller: 'etcdmain/etcd.go:183', msg, error });
const fatal = (error: string): string => log('fatal', 'discovery failed', error);

/** As a kubelet keeps it: the last 2 KiB, of which the first line is cut. */
const kept = (...lines: readonly string[]): string => ['…"caller":"x.go:1"}', ...lines].join('\n');
const frames = ['go.etcd.io/bbolt.(*DB).freepages(0x1867bc51c908)', '\tgo.etcd.io/bbolt@v1.4.3/db.go:1251 +0x22e'];
/** etcd 3.6 with damaged pages: the panic itself is not among the last 2 KiB. */
const cutPanic = ['/common/page.go:83 +0x1c7', ...frames, 'created by main.main in goroutine 1'].join('\n');
/** etcd 3.6 with a database that is shorter than its header states. A disk that cannot be read has the same symptom. */
const fault = [
  'goroutine 43 gp=0xa1351413680 m=nil [GC worker (idle)]:',
  '\truntime/proc.go:462 +0xce fp=0xa1351239740 sp=0xa1351239720 pc=0x48d8ce',
  'created by go.etcd.io/bbolt.(*DB).freepages in goroutine 119',
  '\tgo.etcd.io/bbolt@v1.4.3/db.go:1246 +0x1ef',
].join('\n');
const lostPeer = log('warn', 'lost TCP streaming connection with remote peer', 'unexpected EOF');
const opening =
  '{"level":"info","msg":"Opening db file (db) with options: {NoFreelistSync: true, FreelistType: hashmap, invalid database}"}';

describe('what the exit of etcd proves about its data', () => {
  test.each<[sentence: string, message: string, reason: string | undefined]>([
    ['a WAL whose checksum is wrong', kept(fatal('walpb: crc mismatch: expected: 1')), 'DataInvalid'],
    [
      'the console format',
      kept('2026-11-17T02:03:46Z\tFATAL\tetcdmain/etcd.go:183\twal: file not found'),
      'DataInvalid',
    ],
    [
      'the error of a panic stands in the log line before it',
      kept(
        log('panic', 'failed to open database', 'invalid database'),
        'panic: failed to open database',
        '\tx.go:1 +0x1',
      ),
      'DataInvalid',
    ],
    ['a panic in the database', kept('panic: index out of range', ...frames), 'DataInvalid'],
    ['the end of a panic in the database', cutPanic, 'DataInvalid'],
    ['a fault, whose stack is that of every goroutine', fault, 'StorageError'],
    ['a fault, with its first line', kept('fatal error: fault', ...frames), 'StorageError'],
    [
      'an unlisted file system error',
      kept(log('fatal', 'failed to read WAL', 'read /x/0.wal: bad message')),
      'StorageError',
    ],
    [
      'a peer that has other data',
      kept(log('fatal', 'checkInitialHashKV failed', 'found data inconsistency with peers')),
      'DataInconsistent',
    ],
    [
      'a fault, whose first line is the first that was kept',
      ['fatal error: fault', ...frames].join('\n'),
      'StorageError',
    ],
    ['memory that ran out', kept('fatal error: runtime: cannot allocate memory', ...frames), 'StorageError'],
    ['a peer that was killed', kept(lostPeer, fatal('listen tcp: address already in use')), undefined],
    ['a peer that was killed, and nothing else', kept(lostPeer), undefined],
    ['a line of every start', kept(opening, fatal('unknown flag')), undefined],
    ['a stack in the middle of ordinary lines', kept(opening, ...frames), undefined],
    ['a warning about damage', kept(log('warn', 'x', 'walpb: crc mismatch')), undefined],
    ['a database that another process has open', kept(log('panic', 'failed to open database', 'timeout')), undefined],
    [
      'a database that may not be read',
      kept(log('panic', 'failed to open database', 'permission denied')),
      'StorageError',
    ],
    ['a disk that fails', kept(fatal('read db: input/output error')), 'StorageError'],
    ['a volume that is mounted read-only', kept(fatal('open x: read-only file system')), 'StorageError'],
    ['a full volume', kept(log('panic', 'failed to create WAL', 'no space left on device')), 'VolumeFull'],
    ['a fatal line that is cut', '"level":"fatal","error":"walpb: crc mismatch"}', undefined],
  ])('%s', (_, message, reason) => {
    expect(findingIn({ exitCode: 2, reason: 'Error', message })?.reason).toBe(reason);
  });

  test.each([
    [137, 'OOMKilled'],
    [137, 'Error'],
    [143, 'Error'],
    [0, 'Completed'],
    [255, 'Unknown'],
    [126, 'StartError'],
    [128, 'StartError'],
    [1, 'OOMKilled'],
  ])('nothing, when etcd did not exit by itself: %i %s', (exitCode, reason) => {
    expect(findingIn({ exitCode, reason, message: fatal('walpb: crc mismatch') })).toBeUndefined();
  });

  test('the line that ended etcd is quoted, not the last one', () => {
    const message = kept(fatal('walpb: crc mismatch'), lostPeer);
    expect(lastLine({ exitCode: 1, message })).toBe('discovery failed: walpb: crc mismatch');
    expect(lastLine({ exitCode: 1, message: 'a\nunknown flag\n' })).toBe('unknown flag');
    expect(lastLine({ exitCode: 1, reason: 'Error' })).toBe('Error');
    expect(lastLine({ exitCode: 1, message: 'x'.repeat(300) })).toBe('x'.repeat(300));
    expect(lastLine({ exitCode: 1, message: 'x'.repeat(301) })).toBe(`${'x'.repeat(300)}…`);
  });
});

describe('ends in a row', () => {
  const MINUTE = 60_000;
  const minute = (n: number): string => new Date(Date.parse('2026-01-01T00:00:00Z') + n * MINUTE).toISOString();
  const damaged = fatal('walpb: crc mismatch');
  interface End {
    readonly restartCount: number;
    readonly at: number;
    readonly message?: string;
    readonly exitCode?: number;
    readonly more?: Partial<ContainerStatus>;
    readonly etcd?: Observed['etcd'];
    /** Since when its Pod is not ready; optional in Kubernetes. */
    readonly notReady?: number;
  }
  const after = (ends: readonly End[]): EtcdMemberStatus['failedStarts'] =>
    ends.reduce<EtcdMemberStatus['failedStarts']>((failedStarts, end) => {
      const { restartCount, at, message = damaged, exitCode = 1, more, notReady } = end;
      const conditions = [
        { type: 'Ready', status: 'False', ...(notReady !== undefined && { lastTransitionTime: minute(notReady) }) },
      ];
      const lastState = { terminated: { exitCode, message, startedAt: minute(at), finishedAt: minute(at) } };
      const etcd = { name: 'etcd', image: '', imageID: '', ready: false, restartCount, lastState, ...more };
      return failedStartsOf(
        world({
          member: aMember({ status: { memberID: MEMBER_ID, ...(failedStarts && { failedStarts }) } }),
          pod: ours(aPod({ status: { conditions, containerStatuses: [etcd] } })),
          etcd: end.etcd ?? { is: 'unreachable', message: 'connection refused' },
        }),
      );
    }, undefined);
  const running = { state: { running: { startedAt: minute(9) } } };
  const first: End = { restartCount: 0, at: 1 };
  const second: End = { restartCount: 1, at: 2 };

  test.each<[sentence: string, ends: readonly End[], expected: object | undefined]>([
    ['each is counted', [first, second, { restartCount: 2, at: 3 }], { reason: 'DataInvalid', count: 3, total: 3 }],
    ['two within a second are two', [first, { restartCount: 1, at: 1 }], { count: 2 }],
    ['none is counted twice', [first, second, second, { ...second, restartCount: 2, more: running }], { count: 2 }],
    [
      'an exit is observed only when the next start runs',
      [first, { restartCount: 2, at: 2, more: running }],
      { count: 2 },
    ],
    [
      'an exit that was not observed may be of a run that served',
      [first, { restartCount: 2, at: 3 }],
      { count: 1, total: 1 },
    ],
    [
      'a run that was not observed did not serve, when the Pod was not ready all the time',
      [first, { restartCount: 4, at: 5, notReady: 1 }],
      { count: 2, total: 2 },
    ],
    [
      'an observed run did serve, when the Pod was ready in between',
      [first, { ...second, notReady: 2 }],
      { count: 1, total: 1 },
    ],
    [
      'another finding starts another count',
      [first, { ...second, message: 'x' }],
      { reason: 'Unknown', count: 1, total: 2 },
    ],
    ['a signal breaks the row', [first, { ...second, exitCode: 137 }], undefined],
    [
      'so does a SIGTERM, which ends etcd without a message',
      [first, { ...second, exitCode: 2, message: 'x' }],
      undefined,
    ],
    [
      'a panic does not',
      [first, { ...second, exitCode: 2, message: 'panic: wal: crc mismatch' }],
      { count: 2, total: 2 },
    ],
    [
      'a disk that fails breaks the row',
      [first, { ...second, message: fatal('read db: input/output error') }],
      undefined,
    ],
    ['a run that serves breaks the row', [first, { ...second, more: { ready: true } }], undefined],
    [
      'so does one that responds',
      [first, { ...second, etcd: { is: 'answers', clusterID: CLUSTER_ID, memberID: MEMBER_ID, version: '3.6.16' } }],
      undefined,
    ],
    [
      'the kubelet reports some seconds late that the Pod is not ready',
      [first, { restartCount: 4, at: 5, notReady: 1 + 5 / 60 }],
      { count: 2, total: 2 },
    ],
    ['a pause of ten minutes breaks the row', [first, { restartCount: 1, at: 11 }], { count: 1, total: 1 }],
    ['a long pause breaks the row', [first, { restartCount: 1, at: 12 }], { count: 1, total: 1 }],
    ['a new Pod starts another row', [first, second, { restartCount: 0, at: 3 }], { count: 1, total: 1 }],
    ['also one that was never ready', [first, second, { restartCount: 0, at: 3, notReady: 1 }], { count: 1, total: 1 }],
  ])('%s', (_, ends, expected) => {
    if (expected) expect(after(ends)).toMatchObject(expected);
    else expect(after(ends)).toBeUndefined();
  });
});
