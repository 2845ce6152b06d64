/** What the cluster controller does for an EtcdDefrag: which member is next, what comes first, and what is recorded. */
import { describe, expect, test } from 'vitest';
import { condition, NOW } from '../../../test/support/builders/builders.ts';
import { aDefrag, DEFRAG_UID, done, MI, outcome } from '../../../test/support/builders/defrags.ts';
import { at, down, type Is, id, joining, name, stepsOf, up, world } from '../../../test/support/builders/members.ts';
import { remembering, rowsOf } from '../../../test/support/builders/plan.ts';
import type { EtcdDefrag, EtcdDefragStatus, MemberOutcome } from '../../api/etcd-defrag.ts';
import { EVIDENCE } from '../../api/etcd-member.ts';
import { findCondition } from '../../domain/conditions.ts';
import { UNHEALTHY_RESYNC_MS } from '../../domain/timing.ts';
import { iso } from '../../lib/time.ts';
import { decide } from './decide.ts';
import type { DefragResponse, Gathered, MemberView } from './observed.ts';

type Sizes = Readonly<Record<number, readonly [bytes: number, inUse: number]>>;
const FULL: readonly [number, number] = [500 * MI, 100 * MI];

const changed = (o: Gathered, n: number, change: (m: MemberView) => MemberView): Gathered => ({
  ...o,
  members: o.members.map((m) => (m.object.metadata.name === name(n) ? change(m) : m)),
});

/** Members whose databases would free 400 MiB, except for what is stated, and the EtcdDefrag whose turn it is. */
function asked(members: readonly Is[], defrag: EtcdDefrag | undefined, sizes: Sizes = {}, more = {}): Gathered {
  const o = world(members, more);
  const sized = o.members.reduce<Gathered>((before, _, i) => {
    const [databaseBytes, databaseBytesInUse] = sizes[i + 1] ?? FULL;
    return changed(before, i + 1, (m) =>
      m.self ? { ...m, self: { ...m.self, databaseBytes, databaseBytesInUse } } : m,
    );
  }, o);
  return { ...sized, ...(defrag && { defrag }), streams: [] };
}

const drained = (o: Gathered, n: number, forMs = 3_000): Gathered =>
  changed(o, n, (m) => ({ ...m, pod: { ...m.pod, drainingSince: NOW - forMs } as MemberView['pod'] }));

const three = [up, up, up];
const pending = (...ns: readonly number[]): readonly MemberOutcome[] =>
  ns.map((n) => outcome(name(n), n === 1 ? { role: 'leader' } : {}));
const running = (members: readonly MemberOutcome[], more: EtcdDefragStatus = {}): EtcdDefrag =>
  aDefrag({}, { phase: 'Running', members, ...more });
/** The short form of a plan. */
const shortOf = (o: Gathered): readonly string[] => {
  const { rule } = decide(o);
  return [rule, ...stepsOf(o).map((step) => step.replace(/(patch \S+) .*$/, '$1'))];
};

describe('which members, in which order', () => {
  test('nothing without an EtcdDefrag', () => {
    expect(shortOf(asked(three, undefined))).toEqual(['steady']);
  });

  test('the work list is recorded first: followers, then the leader', () => {
    const [step] = decide(asked(three, aDefrag())).steps;
    expect(step).toMatchObject({
      to: { kind: 'EtcdDefrag', name: 'nightly', uid: DEFRAG_UID },
      subresource: 'status',
      fields: {
        status: {
          members: [
            { name: name(2), role: 'follower', outcome: 'Pending' },
            { name: name(3), role: 'follower', outcome: 'Pending' },
            { name: name(1), role: 'leader', outcome: 'Pending' },
          ],
        },
      },
    });
  });

  test.each<[string, Gathered, readonly string[]]>([
    [
      'a follower leaves the client Service first',
      asked(three, running(pending(2, 3, 1))),
      ['defragment', `patch ${name(2)}`],
    ],
    [
      'and stays out of it for as long as connections may be routed to it',
      drained(asked(three, running(pending(2, 3, 1))), 2, 1_000),
      ['defragment'],
    ],
    [
      'then etcd is asked',
      drained(asked(three, running(pending(2, 3, 1))), 2),
      ['defragment', `defragment ${name(2)}`],
    ],
    [
      'the leader hands over first, as the last one',
      asked(three, running([done(name(2)), done(name(3)), ...pending(1)])),
      ['defragment', `moveLeader ${name(2)}`],
    ],
    [
      'the member that leads now is the last one',
      asked(three, running(pending(2, 3, 1)), {}, { leader: 2 }),
      ['defragment', `patch ${name(3)}`],
    ],
    [
      'the next one waits until the one before it is back in the client Service',
      drained(asked(three, running([done(name(2)), ...pending(3, 1)])), 2),
      ['defragment', `restoreTraffic: patch ${name(2)}`],
    ],
    ['a single voter is asked at once', asked([up], running(pending(1))), ['defragment', `defragment ${name(1)}`]],
    [
      'a member that joined meanwhile is added to the list',
      asked(three, running(pending(2, 1))),
      ['defragment', 'patch nightly'],
    ],
    ['nothing more when all are done', asked(three, running([1, 2, 3].map((n) => done(name(n))))), ['steady']],
  ])('%s', (_sentence, o, expected) => {
    expect(shortOf(o)).toEqual(expected);
  });

  test('a single voter only with a warning: it serves nothing meanwhile', () => {
    const [event] = decide(asked([up], running(pending(1)))).events;
    expect(event).toMatchObject({ type: 'Warning', reason: 'DefragmentingOnlyVoter' });
  });

  test('what is asked of etcd is recorded in the cluster before', () => {
    const { latch } = decide(drained(asked(three, running(pending(2, 3, 1))), 2));
    expect(latch?.defragmentation).toEqual({
      member: name(2),
      defrag: 'nightly',
      uid: DEFRAG_UID,
      attempt: 1,
      startedAt: iso(NOW),
      dbSizeBefore: 500 * MI,
    });
  });

  test.each<[string, Gathered, Partial<MemberOutcome>]>([
    [
      'a member that would free too little is skipped, without leaving the client Service',
      asked(three, running(pending(2, 3, 1)), { 2: [500 * MI, 400 * MI] }),
      { name: name(2), outcome: 'Skipped', reason: 'BelowThreshold', dbSizeBefore: 500 * MI },
    ],
    [
      'a member that does not exist any more is skipped',
      asked(three, running([outcome('db-gone'), ...pending(2, 3, 1)])),
      { name: 'db-gone', outcome: 'Skipped', reason: 'MemberGone' },
    ],
  ])('%s', (_sentence, o, expected) => {
    const [step] = decide(o).steps;
    const { members } = (step as unknown as { readonly fields: { readonly status: EtcdDefragStatus } }).fields.status;
    expect(members?.find((each) => each.name === expected.name)).toMatchObject(expected);
  });
});

describe('no member is defragmented while', () => {
  const list = running(pending(2, 3, 1));
  const streaming = (streams: readonly string[] | string): Gathered => ({ ...asked(three, list), streams });
  test.each<[string, Gathered, RegExp]>([
    ['another member does not respond', asked([up, up, down], list), /ready and healthy first/],
    ['a snapshot streams from it', streaming([name(2)]), /a snapshot streams from/],
    ['it is unknown whether a snapshot streams from it', streaming('no answer'), /unknown: no answer/],
  ])('%s', (_sentence, o, why) => {
    const { steps } = decide(o);
    expect(steps.every((step) => step.do === 'patch' && step.to.kind === 'EtcdDefrag')).toBe(true);
    expect(JSON.stringify(steps)).not.toMatch(/"Defragmented"/);
    expect(JSON.stringify(steps)).toMatch(why);
  });

  test('a member joins', () => {
    expect(shortOf(asked([up, up, up, joining], list))[0]).not.toBe('defragment');
  });

  test('the reason is reported once, and not in the half minute after a member', () => {
    const waits = asked([up, up, down], running(pending(2, 3, 1), { waitingFor: '' }));
    const [step] = decide(waits).steps;
    const why = (step as unknown as { readonly fields: { readonly status: EtcdDefragStatus } }).fields.status
      .waitingFor;
    const again = { ...waits, defrag: running(pending(2, 3, 1), { waitingFor: why ?? '' }) };
    const justNow = { ...waits, defrag: running([done(name(2), { finishedAt: at(5_000) }), ...pending(3, 1)]) };
    expect([stepsOf(again), stepsOf(justNow)]).toEqual([[], []]);
  });

  test('events and the resync of unhealthy clusters end the wait: it may last for hours', () => {
    const waits = [asked([up, up, down], list), streaming([name(2)])];
    expect(waits.map((o) => decide(o).requeueAfterMs)).toEqual([UNHEALTHY_RESYNC_MS, UNHEALTHY_RESYNC_MS]);
  });
});

describe('with CRDs of an earlier version, which have no field for the marker', () => {
  const message = 'the API server drops status.defragmentation: the CRDs are older than the operator';
  const remembers = (retryInMs: number, fields = ['status.defragmentation']) =>
    remembering(message, { in: 'steps', row: 'defragment', target: 'the status', is: 'dropped', fields, retryInMs });
  const ready = drained(asked(three, running(pending(2, 3, 1))), 2);

  test('no member is defragmented, and the one that was taken out of the client Service returns', () => {
    const o = { ...ready, ...remembers(20_000) };
    expect(shortOf(o)).toEqual(['defragment', 'patch nightly', `restoreTraffic: patch ${name(2)}`]);
    expect(JSON.stringify(decide(o).steps)).toContain(message);
    expect([decide(o).latch, decide(o).requeueAfterMs]).toEqual([undefined, 20_000]);
    const isReported = { ...drained(asked(three, running(pending(2, 3, 1), { waitingFor: message })), 2) };
    expect(shortOf({ ...isReported, ...remembers(20_000) })).toEqual([
      'defragment',
      `restoreTraffic: patch ${name(2)}`,
    ]);
  });

  test('a condition of the cluster says so, for as long as that is known', () => {
    const { conditions } = decide({ ...ready, ...remembers(20_000) }).status;
    expect(findCondition(conditions, 'CRDsCurrent')).toMatchObject({
      status: 'False',
      reason: 'StatusFieldsDropped',
      message,
    });
    const cluster = { ...ready.cluster, status: { ...ready.cluster.status, ...(conditions && { conditions }) } };
    expect(findCondition(decide({ ...ready, cluster }).status.conditions, 'CRDsCurrent')).toBeUndefined();
  });

  test('it is attempted again: new CRDs send no event', () => {
    expect(decide({ ...ready, ...remembers(0) }).latch?.defragmentation?.member).toBe(name(2));
    expect(decide({ ...ready, ...remembers(20_000, ['status.rollout']) }).latch?.defragmentation).toBeDefined();
  });
});

describe('the member that etcd was asked to defragment', () => {
  const marker = (more = {}) => ({
    defragmentation: {
      member: name(2),
      defrag: 'nightly',
      uid: DEFRAG_UID,
      attempt: 1,
      startedAt: at(10_000),
      dbSizeBefore: 500 * MI,
      ...more,
    },
  });
  const busy = (answersReads: boolean, bytes: number, members = pending(2, 3, 1), more = {}): Gathered => {
    const o = asked(three, running(members), { 2: [bytes, 100 * MI] }, { status: marker(more) });
    return drained(
      changed(o, 2, (m) => ({ ...m, answersReads })),
      2,
    );
  };
  const recorded = (o: Gathered): MemberOutcome | undefined => {
    const task = decide(o).upkeep?.find(({ row }) => row === 'recordDefragmentation');
    const [step] = task?.steps ?? [];
    const fields = step as unknown as { readonly fields: { readonly status: EtcdDefragStatus } } | undefined;
    return fields?.fields.status.members?.find((each) => each.name === name(2));
  };
  const notVoting = (o: Gathered): Gathered =>
    changed(o, 2, (m) => ({ ...m, object: { ...m.object, status: { ...m.object.status, isVoter: false } } }));
  const reported = outcome(name(2), {
    outcome: 'Defragmented',
    reason: 'AfterSizeUnavailable',
    dbSizeBefore: 500 * MI,
  });

  test('stays out of the client Service until it answers reads, and nothing else is disrupted', () => {
    const plan = decide(busy(false, 500 * MI));
    expect([plan.rule, plan.steps, plan.requeueAfterMs, rowsOf(plan)]).toEqual([
      'defragment',
      [],
      1_000,
      ['defragment', 'recordDefragmentation'],
    ]);
    expect(plan.status.defragmentation?.member).toBe(name(2));
  });

  test('is recorded with both sizes once etcd has reported success', () => {
    expect(recorded(busy(true, 100 * MI, [reported, ...pending(3, 1)]))).toEqual({
      name: name(2),
      role: 'follower',
      outcome: 'Defragmented',
      dbSizeBefore: 500 * MI,
      dbSizeAfter: 100 * MI,
      reclaimedBytes: 400 * MI,
      finishedAt: iso(NOW),
    });
  });

  test('has finished when its database is smaller, although no response arrived: the operator was killed, or etcd took minutes', () => {
    expect(recorded(busy(true, 100 * MI))).toMatchObject({ outcome: 'Defragmented', reclaimedBytes: 400 * MI });
  });

  const given = (o: Gathered, defragResponse: DefragResponse): Gathered => ({ ...o, defragResponse });
  const full: DefragResponse = { is: 'failed', message: 'disk full' };

  test('has succeeded when etcd says so, however little it freed', () => {
    expect(recorded(given(busy(true, 500 * MI), { is: 'succeeded' }))).toMatchObject({
      outcome: 'Defragmented',
      reclaimedBytes: 0,
      finishedAt: iso(NOW),
    });
    expect(recorded(given(busy(true, 600 * MI), { is: 'succeeded' }))).toMatchObject({ reclaimedBytes: 0 });
  });

  test('has succeeded before its size is known, and the operator may be killed then', () => {
    const success = { outcome: 'Defragmented', reason: 'AfterSizeUnavailable', dbSizeBefore: 500 * MI };
    const now = recorded(given(busy(false, 500 * MI), { is: 'succeeded' }));
    expect([now, now?.finishedAt]).toEqual([expect.objectContaining(success), undefined]);
    expect(recorded(busy(false, 500 * MI, [reported, ...pending(3, 1)]))).toBeUndefined();
  });

  test('is not judged by its size while a response is awaited: etcd may not have started it yet', () => {
    expect(recorded(given(busy(true, 500 * MI), { is: 'awaited' }))).toBeUndefined();
    expect(recorded(given(busy(true, 100 * MI), { is: 'awaited' }))).toMatchObject({ outcome: 'Defragmented' });
  });

  test('whose database is as large as before is asked again, up to three times', () => {
    const unknown = /no response of etcd has arrived/;
    expect(recorded(busy(true, 500 * MI))).toMatchObject({ attempts: 1, message: expect.stringMatching(unknown) });
    expect(recorded(given(busy(true, 500 * MI), full))).toMatchObject({
      outcome: 'Pending',
      attempts: 1,
      message: 'disk full',
    });
    const last = busy(true, 500 * MI, pending(2, 3, 1), { attempt: 3 });
    expect(recorded(given(last, full))).toMatchObject({ outcome: 'Failed', reason: 'RPCError', attempts: 3 });
  });

  test('fails with the error of etcd when it does not serve again', () => {
    const overdue = { startedAt: at(60 * 60_000) };
    const o = busy(false, 500 * MI, pending(2, 3, 1), overdue);
    expect(recorded(given(o, full))).toMatchObject({ outcome: 'Failed', message: 'disk full' });
  });

  test('is recorded although it is missing from the EtcdDefrag, whose status was edited or restored', () => {
    expect(recorded(busy(true, 100 * MI, pending(3, 1)))).toMatchObject({ outcome: 'Defragmented' });
    expect(decide(busy(false, 500 * MI, pending(3, 1))).status.defragmentation?.member).toBe(name(2));
  });

  test.each<[string, Gathered]>([
    ['does not exist', { ...busy(false, 500 * MI, pending(3, 1)), members: asked([up], undefined).members }],
    ['is no voter, and serves', notVoting(busy(true, 500 * MI, pending(3, 1)))],
    [
      'is no voter, and its time limit has passed',
      notVoting(busy(false, 500 * MI, pending(3, 1), { startedAt: at(60 * 60_000) })),
    ],
  ])('is released when it is missing from the EtcdDefrag and %s', (_sentence, o) => {
    expect(decide(o).status.defragmentation).toBeUndefined();
  });

  test('and is being deleted, is neither skipped nor released before it has finished', () => {
    const leaving = (o: Gathered): Gathered =>
      changed(o, 2, (m) => ({
        ...m,
        object: { ...m.object, metadata: { ...m.object.metadata, deletionTimestamp: at(0) } },
      }));
    const o = leaving(busy(false, 500 * MI));
    expect([recorded(o), decide(o).status.defragmentation?.member]).toEqual([undefined, name(2)]);
    expect(recorded(leaving(busy(true, 100 * MI)))).toMatchObject({ outcome: 'Defragmented' });
    const stopped = changed(o, 2, (m) => ({ ...m, pod: { is: 'absent' } }));
    expect(recorded(stopped)).toMatchObject({ outcome: 'Skipped', reason: 'MemberGone' });
    const { defrag: _deleted, ...orphan } = o;
    expect(decide(orphan).status.defragmentation?.member).toBe(name(2));
  });

  test('fails after its time limit', () => {
    expect(recorded(busy(false, 500 * MI, pending(2, 3, 1), { startedAt: at(60 * 60_000) }))).toMatchObject({
      outcome: 'Failed',
      reason: 'RPCError',
    });
  });

  test('is released once its result is recorded, and the next attempt counts on', () => {
    const released = busy(true, 500 * MI, [outcome(name(2), { attempts: 1, message: 'x' }), ...pending(3, 1)]);
    const { status, latch } = decide(released);
    expect([status.defragmentation, latch?.defragmentation]).toMatchObject([{ attempt: 2 }, { attempt: 2 }]);
    const over = busy(true, 100 * MI, [done(name(2)), ...pending(3, 1)]);
    expect(decide(over).status.defragmentation).toBeUndefined();
  });

  test('is released when the EtcdDefrag was deleted, but not before it serves again', () => {
    const orphan = (answersReads: boolean): Gathered => {
      const { defrag: _deleted, ...o } = busy(answersReads, 500 * MI);
      return o;
    };
    expect(decide(orphan(false)).status.defragmentation?.member).toBe(name(2));
    expect(decide(orphan(false)).rule).toBe('defragment');
    expect(decide(orphan(true)).status.defragmentation).toBeUndefined();
  });

  describe('counts as busy, and not as lost', () => {
    const quiet = (o: Gathered): Gathered =>
      changed(o, 2, (m) => ({ ...m, self: undefined, pod: { ...m.pod, ready: false } as MemberView['pod'] }));
    const leaving = (o: Gathered): Gathered =>
      changed(o, 2, (m) => ({
        ...m,
        object: { ...m.object, metadata: { ...m.object.metadata, deletionTimestamp: at(0) } },
      }));
    const failed = (o: Gathered): Gathered => {
      const conditions = [condition('Ready', 'False', EVIDENCE.nodeLost)];
      return changed(o, 2, (m) => ({ ...m, object: { ...m.object, status: { ...m.object.status, conditions } } }));
    };
    const o = quiet(busy(false, 500 * MI));
    const removes = (each: Gathered): boolean => stepsOf(each).some((step) => step === `remove ${name(2)}`);

    test('when a user deletes it', () => {
      expect(removes(leaving(o))).toBe(false);
      const { defragmentation: _over, ...status } = o.cluster.status ?? {};
      expect(removes(leaving({ ...o, cluster: { ...o.cluster, status } }))).toBe(true);
    });
    test('but not with failure evidence, and not beyond its time limit', () => {
      expect(removes(leaving(failed(o)))).toBe(true);
      const overdue = quiet(busy(false, 500 * MI, pending(2, 3, 1), { startedAt: at(60 * 60_000) }));
      expect(removes(leaving(overdue))).toBe(true);
    });
  });

  test('keeps every other member from being removed', () => {
    const o = busy(false, 500 * MI);
    const leaving = changed(o, 3, (m) => ({
      ...m,
      object: { ...m.object, metadata: { ...m.object.metadata, deletionTimestamp: at(0) } },
    }));
    expect(stepsOf(leaving).filter((step) => step.startsWith('remove'))).toEqual([]);
    expect(stepsOf(leaving).filter((step) => step.startsWith('restoreTraffic'))).toEqual([]);
  });
});

describe('the NOSPACE alarm', () => {
  const alarms = [{ id: id(1), alarm: 'NOSPACE' }];
  const after = (members: readonly MemberOutcome[], sizes: Sizes = {}): Gathered =>
    asked(three, running(members), sizes, { alarms });
  const all = [1, 2, 3].map((n) => done(name(n)));
  const disarms = (o: Gathered): boolean => stepsOf(o).some((step) => step.startsWith('disarmNoSpace: disarm'));

  test('is disarmed when all members are done and every database has room, with an Event', () => {
    const small: Sizes = { 1: [100 * MI, 1], 2: [100 * MI, 1], 3: [100 * MI, 1] };
    const plan = decide(after(all, small));
    expect([disarms(after(all, small)), plan.events.map(({ reason }) => reason)]).toEqual([
      true,
      expect.arrayContaining(['AlarmDisarmed']),
    ]);
  });

  test.each<[string, Gathered]>([
    ['a member still waits', after([...all.slice(1), outcome(name(1))])],
    ['nothing was defragmented', after(all.map((each) => ({ ...each, outcome: 'Skipped' })))],
    ['a database is still as large as its quota', after(all, { 2: [8 * 1_024 * MI, 1] })],
  ])('stays while %s', (_sentence, o) => {
    expect(disarms(o)).toBe(false);
  });
});
