/** What is checked before the first member gets another minor, and how it is reported. */
import { describe, expect, test } from 'vitest';
import { CLUSTER_ID, NOW } from '../../../../test/support/builders/builders.ts';
import {
  down,
  entry,
  type Is,
  id,
  name,
  stepsOf,
  withCredentials,
  world,
} from '../../../../test/support/builders/members.ts';
import type { EtcdClusterSpec } from '../../../api/etcd-cluster.ts';
import type { EtcdSnapshot } from '../../../api/etcd-snapshot.ts';
import type { EtcdSnapshotSchedule } from '../../../api/etcd-snapshot-schedule.ts';
import { RESTARTED_AT_ANNOTATION } from '../../../api/names.ts';
import { findCondition } from '../../../domain/conditions.ts';
import { VERSION_SNAPSHOT_MS } from '../../../domain/timing.ts';
import { decide } from '../decide.ts';
import type { Gathered } from '../observed.ts';
import { wantsHashes } from './preflight.ts';
import { versionChangeBlockedBy } from './version-change.ts';
import { versionRequeueMs } from './version-conditions.ts';
import { chosenSnapshot, snapshotNames } from './version-snapshot.ts';

const MIB = 1024 ** 2;
const old: Is = { runs: '3.6.16', storageVersion: '3.6.0', spec: { version: '3.6.16' } };
const hashed = (...hashes: readonly (string | undefined)[]): NonNullable<Gathered['hashes']> =>
  hashes.map((hash, i) => ({ member: name(i + 1), hash, at: '7, compacted up to 0' }));
/** The version has been edited since the operator observes the cluster. */
const EDITED = { rollout: {} };
const cluster = (
  members: readonly Is[],
  spec: Partial<EtcdClusterSpec> = {},
  more: Partial<Gathered> = {},
): Gathered => ({
  ...world(members, { leader: 2, spec: { version: '3.7.3', ...spec }, status: EDITED }),
  hashes: hashed('a', 'a', 'a'),
  ...more,
});
const healthy = cluster([old, old, old]);
const blockedBy = (o: Gathered) => versionChangeBlockedBy(withCredentials(o));
const condition = (o: Gathered) => findCondition(decide(o).status.conditions, 'VersionChangeReady');

const schedule = (backedUp?: string): EtcdSnapshotSchedule => ({
  apiVersion: 'etcd-operator.cozystack.io/v1alpha2',
  kind: 'EtcdSnapshotSchedule',
  metadata: { name: 'nightly', namespace: 'ns' },
  spec: {
    clusterRef: { name: 'db' },
    schedule: '@daily',
    destination: { pvc: { claimName: 'backups' } },
    compression: 'Zstd',
  },
  ...(backedUp !== undefined && {
    status: {
      lastSuccessful: { name: 'n', time: backedUp, artifact: { uri: 'x', takenAt: backedUp, clusterID: CLUSTER_ID } },
    },
  }),
});
const ago = (ms: number): string => new Date(NOW - ms).toISOString();
const HOUR = 3_600_000;
const snapshot = (status: EtcdSnapshot['status']): EtcdSnapshot => ({
  apiVersion: 'etcd-operator.cozystack.io/v1alpha2',
  kind: 'EtcdSnapshot',
  metadata: { name: 's', namespace: 'ns' },
  spec: { clusterRef: { name: 'db' }, destination: { pvc: { claimName: 'backups' } } },
  ...(status && { status }),
});

test('a healthy cluster may be changed', () => {
  expect(blockedBy(healthy)).toBeUndefined();
  expect(condition(healthy)).toMatchObject({ status: 'True', reason: 'ChecksPassed' });
});

describe('no member gets another minor', () => {
  test.each<[string, Gathered, string, string]>([
    ['while a member does not respond', cluster([old, old, { ...old, ...down }]), 'MembersUnhealthy', name(3)],
    ['while a member lags', cluster([old, old, { ...old, lag: 9_000 }]), 'MembersUnhealthy', name(3)],
    ['while there is a learner', cluster([old, old, { ...old, as: 'learner' }]), 'LearnerPresent', name(3)],
    [
      'while etcd has a voter of another owner',
      {
        ...healthy,
        ...world([old, old, old], {
          leader: 2,
          spec: { version: '3.7.3' },
          status: EDITED,
          alsoListed: [{ ...entry(8, {}), id: 'f00', name: 'mirror' }],
        }),
      },
      'ForeignMembers',
      'mirror',
    ],
    [
      'while an alarm is raised',
      {
        ...healthy,
        ...world([old, old, old], {
          leader: 2,
          spec: { version: '3.7.3' },
          status: EDITED,
          alarms: [{ id: id(1), alarm: 'NOSPACE' }],
        }),
      },
      'AlarmRaised',
      'NOSPACE',
    ],
    [
      'while a database is nearly full',
      cluster([
        old,
        old,
        { ...old, databaseBytes: 97 * MIB, spec: { ...old.spec, options: { quotaBackendBytes: 100 * MIB } } },
      ]),
      'QuotaNearlyUsed',
      name(3),
    ],
    [
      'with a flag that it does not know',
      cluster([old, old, old], { extraArgs: ['--experimental-foo'] }),
      'UnknownFlags',
      '--experimental-foo',
    ],
    [
      'while the data differs',
      cluster([old, old, old], {}, { hashes: hashed('a', 'a', 'b') }),
      'DataDiffers',
      `${name(3)} b`,
    ],
    [
      'until all members have hashed their data',
      cluster([old, old, old], {}, { hashes: hashed('a', undefined, 'a') }),
      'ComparingData',
      'same revision',
    ],
    [
      'until the hashes are of one revision',
      cluster(
        [old, old, old],
        {},
        { hashes: [...hashed('a', 'a'), { member: name(3), hash: 'b', at: '7, compacted up to 5' }] },
      ),
      'ComparingData',
      'same revision',
    ],
  ])('%s', (_, o, reason, part) => {
    expect(blockedBy(o)).toMatchObject({ reason, message: expect.stringContaining(part) });
    expect(condition(o)).toMatchObject({ status: 'False', reason, message: expect.stringContaining(part) });
  });

  test('and all that is wrong is reported at once', () => {
    const o = cluster([old, old, { ...old, ...down }], { extraArgs: ['--experimental-foo'] });
    expect(condition(o)?.message).toMatch(/must be healthy first; .*--experimental-foo/);
  });
});

describe('what is not checked', () => {
  const [target, target2] = [
    { ...old, spec: { version: '3.7.3' } },
    { runs: '3.7.3', spec: { version: '3.7.3' } },
  ];
  test.each<[string, Gathered]>([
    ['a patch release', cluster([old, old, { ...old, ...down }], { version: '3.6.11' })],
    ['an upgrade that has started', cluster([{ ...target, ...down }, old, old])],
    ['an upgrade that goes on', cluster([target2, old, { ...old, ...down }])],
    ['a version that is taken back', cluster([{ ...target, ...down }, old, old], { version: '3.6.16' })],
  ])('%s', (_, o) => {
    expect(blockedBy(o)).toBeUndefined();
    expect(condition(o)).toBeUndefined();
  });

  test('hashes of large databases, which the message says', () => {
    const o = cluster([{ ...old, databaseBytes: 65 * MIB }, old, old], {}, { hashes: [] });
    expect([wantsHashes(o), wantsHashes(healthy)]).toEqual([false, true]);
    expect(condition(o)?.message).toContain('was not compared');
  });

  test('hashes while anything else is wrong: hashing stops writes', () => {
    expect(wantsHashes(cluster([old, old, { ...old, ...down }]))).toBe(false);
    expect(wantsHashes(cluster([old, old, old], { version: '3.6.11' }))).toBe(false);
  });
});

describe('while the change cannot start, no data is hashed and no snapshot is taken', () => {
  const CLOSED = { maintenanceWindows: [{ schedule: '0 2 * * *', duration: '1h' }] };
  const failed = { member: name(1), at: ago(HOUR), message: 'it was not ready' };
  const status = (o: Gathered, more: object): Gathered => ({
    ...o,
    cluster: { ...o.cluster, status: { ...o.cluster.status, ...more } },
  });
  const annotated = (o: Gathered): Gathered => ({
    ...o,
    cluster: { ...o.cluster, metadata: { ...o.cluster.metadata, annotations: { [RESTARTED_AT_ANNOTATION]: 'now' } } },
  });
  const waiting = (spec: Partial<EtcdClusterSpec>): Gathered => {
    const { hashes: _, ...o } = cluster([old, old, old], spec, { schedules: [schedule(ago(2 * HOUR))] });
    return o;
  };

  test.each<[string, Gathered, string]>([
    ['no maintenance window is open', waiting({ updateStrategy: CLOSED }), 'WaitingForWindow'],
    ['the version was found at take-over', status(waiting({}), { rollout: undefined }), 'UpdatePending'],
    ['the rollout has failed', status(waiting({}), { rollout: { since: ago(HOUR), failed } }), 'RolloutFailed'],
    ['the cluster is suspended', waiting({ suspend: true }), 'Suspended'],
  ])('%s', (_, o, reason) => {
    expect(wantsHashes(o)).toBe(false);
    expect(stepsOf(o)).toEqual([]);
    expect(condition(o)).toMatchObject({ status: 'False', reason });
    expect(versionRequeueMs(o)).toBeUndefined();
  });

  test('what is wrong is reported before a window opens', () => {
    const o = cluster([old, old, { ...old, ...down }], { updateStrategy: CLOSED });
    expect(condition(o)?.message).toMatch(/must be healthy first; the next maintenance window opens/);
  });

  test.each<[string, Gathered]>([
    ['a user requests a restart, which waits for no window', annotated(waiting({ updateStrategy: CLOSED }))],
    ['a user requests a restart after a take-over', annotated(status(waiting({}), { rollout: undefined }))],
    ['with OnDelete: the next Pod that a user deletes gets it', waiting({ updateStrategy: { type: 'OnDelete' } })],
  ])('it can: %s', (_, o) => {
    expect(wantsHashes(o)).toBe(true);
  });
});

describe('a snapshot first, where a schedule has a destination', () => {
  const waits = cluster([old, old, old], {}, { schedules: [schedule(ago(2 * HOUR))] });

  test('is created with the destination of the schedule, and waited for', () => {
    const plan = decide(waits);
    expect(plan.rule).toBe('snapshotFirst');
    expect(plan.steps).toMatchObject([
      {
        do: 'create',
        object: {
          kind: 'EtcdSnapshot',
          spec: { clusterRef: { name: 'db' }, destination: { pvc: { claimName: 'backups' } }, compression: 'Zstd' },
        },
      },
    ]);
    expect(condition(waits)).toMatchObject({ status: 'False', reason: 'TakingSnapshot' });
  });

  test('is not created while anything else is wrong', () => {
    expect(stepsOf({ ...waits, hashes: hashed('a', 'b', 'a') })).toEqual([]);
  });

  describe('that waited for long', () => {
    const [current, previous] = snapshotNames(waits);
    const named = (name: string, status: EtcdSnapshot['status']): EtcdSnapshot => ({
      ...snapshot(status),
      metadata: { name, namespace: 'ns' },
    });
    const stored = (hoursAgo: number): EtcdSnapshot['status'] => ({
      phase: 'Complete',
      artifact: { uri: 'x', takenAt: ago(hoursAgo * HOUR) },
    });

    test.each<[string, readonly EtcdSnapshot[], string | undefined]>([
      ['is used if it was taken since yesterday', [named(previous, stored(30))], previous],
      ['is taken again if it is older', [named(previous, stored(40))], undefined],
      ['is taken again if it has failed', [named(previous, { phase: 'Failed' })], undefined],
      ['is waited for while it is taken', [named(previous, { phase: 'Started' })], previous],
      [
        'is that of today, if there is one',
        [named(current, { phase: 'Failed' }), named(previous, stored(30))],
        current,
      ],
    ])('%s', (_, found, expected) => {
      expect(chosenSnapshot(withCredentials(waits), found)?.metadata.name).toBe(expected);
    });

    test('has another name than the one before', () => {
      const later = { ...waits, now: waits.now + VERSION_SNAPSHOT_MS };
      expect(snapshotNames(later)).toEqual([expect.not.stringMatching(current), current]);
    });
  });

  test.each<[string, Partial<Gathered>, string | undefined]>([
    ['it runs', { versionSnapshot: snapshot({ phase: 'Started' }) }, 'TakingSnapshot'],
    ['it has failed', { versionSnapshot: snapshot({ phase: 'Failed' }) }, 'SnapshotFailed'],
    [
      'it is stored',
      { versionSnapshot: snapshot({ phase: 'Complete', artifact: { uri: 'x', takenAt: ago(HOUR) } }) },
      undefined,
    ],
    ['the schedule has a recent backup', { schedules: [schedule(ago(HOUR / 2))] }, undefined],
  ])('%s', (_, more, reason) => {
    const o = { ...waits, ...more };
    expect(blockedBy(o)?.reason).toBe(reason);
    expect(stepsOf(o).filter((step) => step.startsWith('create'))).toEqual([]);
  });
});

describe('the cluster version', () => {
  const run = (storageVersion: string, more: Is = {}): Is => ({
    runs: '3.7.3',
    storageVersion,
    spec: { version: '3.7.3' },
    ...more,
  });
  const after = (members: readonly Is[], clusterVersion = '3.6.0') =>
    decide(world(members, { leader: 2, spec: { version: '3.7.3' }, status: { clusterVersion } })).status;
  const progress = (members: readonly Is[]) => findCondition(after(members).conditions, 'Progressing');

  test('is reported when all members have written it; until then the change goes on', () => {
    const waiting = [run('3.7.0'), run('3.6.0'), run('3.7.0')];
    expect(after(waiting).clusterVersion).toBe('3.6.0');
    expect(progress(waiting)).toMatchObject({
      status: 'True',
      reason: 'RollingOut',
      message: expect.stringContaining(name(2)),
    });
    const done = [run('3.7.0'), run('3.7.0'), run('3.7.0')];
    expect(after(done).clusterVersion).toBe('3.7.0');
    expect(progress(done)?.reason).toBe('Reconciled');
  });

  test('of a downgrade is that of the old minor before any member runs it', () => {
    const lowered = run('3.6.0', { downgradeTo: '3.6.0' });
    expect(after([lowered, lowered, lowered], '3.7.0').clusterVersion).toBe('3.6.0');
  });

  test('is kept while a member does not respond', () => {
    expect(after([run('3.7.0'), run('3.7.0'), run('3.7.0', down)]).clusterVersion).toBe('3.6.0');
  });
});
