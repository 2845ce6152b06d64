/** What is done about a database that has reached its quota, with `spec.maintenance.autoRemedy` and without it. */
import { describe, expect, test } from 'vitest';
import { condition, NOW } from '../../../test/support/builders/builders.ts';
import { aDefrag, done, MI } from '../../../test/support/builders/defrags.ts';
import { down, type Is, id, name, stepsOf, up, world } from '../../../test/support/builders/members.ts';
import { remembering, rowsOf } from '../../../test/support/builders/plan.ts';
import type { EtcdDefrag, EtcdDefragStatus } from '../../api/etcd-defrag.ts';
import type { RemedyStatus } from '../../api/maintenance.ts';
import { findCondition } from '../../domain/conditions.ts';
import { iso } from '../../lib/time.ts';
import { decide } from './decide.ts';
import type { Gathered } from './observed.ts';

const at = (msAgo: number): string => iso(NOW - msAgo);
const QUOTA = 100 * MI;
const OPTIONS = { quotaBackendBytes: QUOTA };
const ON = { autoRemedy: { enabled: true } };
const alarms = [{ id: id(2), alarm: 'NOSPACE' }];
const REVISION = 5_000;
const UID = world([up]).cluster.metadata.uid ?? '';

interface Full {
  readonly remedy?: RemedyStatus;
  readonly autoRemedy?: { readonly enabled?: boolean; readonly keepRevisions?: number };
  readonly inUse?: number;
  readonly bytes?: number;
  readonly members?: readonly Is[];
  readonly alarms?: typeof alarms;
}

/** Three members whose databases have reached their quota, with the alarm of the second one. */
function full({
  remedy,
  autoRemedy,
  inUse = 20 * MI,
  bytes = QUOTA,
  members = [up, up, up],
  alarms: raised = alarms,
}: Full = {}): Gathered {
  const o = world(
    members.map((is) => ({ ...is, spec: { options: OPTIONS } })),
    {
      spec: { options: OPTIONS, maintenance: { autoRemedy: autoRemedy ?? ON.autoRemedy } },
      status: { ...(remedy && { remedy }) },
      alarms: raised,
    },
  );
  const sized = o.members.map((m) =>
    m.self ? { ...m, self: { ...m.self, databaseBytes: bytes, databaseBytesInUse: inUse } } : m,
  );
  return { ...o, members: sized, revision: REVISION, streams: [], remedyObservedMs: 60_000 };
}

/** Compacted long enough ago. */
const compacted: RemedyStatus = {
  startedAt: at(20_000),
  revision: 4_000,
  inUseBytes: 20 * MI,
  measuredAt: at(15_000),
};
const DEFRAG = `db-remedy-${(NOW - 20_000) / 1_000}`;
const defragmenting: RemedyStatus = { ...compacted, defrag: DEFRAG };
const ours = (status: EtcdDefragStatus): EtcdDefrag =>
  aDefrag({}, status, {
    name: DEFRAG,
    ownerReferences: [{ apiVersion: 'v', kind: 'EtcdCluster', name: 'db', uid: UID, controller: true }],
  });
const finished = (minutesAgo: number): EtcdDefragStatus => ({
  phase: 'Complete',
  completedAt: at(minutesAgo * 60_000),
  members: [1, 2, 3].map((n) => done(name(n))),
  conditions: [condition('DefragChecked', 'True', 'Complete', '3 of 3 members defragmented')],
});
const ownSteps = (o: Gathered): readonly string[] =>
  stepsOf(o).filter((step) => /remedyNoSpace|disarmNoSpace/.test(step));
const remedyAfter = (o: Gathered): RemedyStatus | undefined => decide(o).latch?.remedy;
const reasonsOf = (o: Gathered): readonly string[] =>
  decide(o).events.flatMap(({ type, reason }) => (/NoSpace/.test(reason) ? [`${type} ${reason}`] : []));

describe('with autoRemedy', () => {
  test('the history is compacted first, but for the latest revisions; the start is recorded before', () => {
    const o = full();
    expect([ownSteps(o), remedyAfter(o), reasonsOf(o)]).toEqual([
      ['remedyNoSpace: compact revision 4000'],
      { startedAt: at(0), inUseBytes: 20 * MI, measuredAt: at(0), revision: 4_000 },
      ['Normal RemedyingNoSpace', 'Warning NoSpace'],
    ]);
  });

  test.each<[string, Gathered, readonly string[]]>([
    [
      'as many revisions as keepRevisions says are kept',
      full({ autoRemedy: { enabled: true, keepRevisions: 4_990 } }),
      ['remedyNoSpace: compact revision 10'],
    ],
    [
      'a history that is kept whole is not compacted',
      full({ autoRemedy: { enabled: true, keepRevisions: 6_000 } }),
      [],
    ],
    [
      'while the space in use becomes smaller, etcd is still compacting',
      full({ remedy: { ...compacted, inUseBytes: 30 * MI } }),
      ['remedyNoSpace: compact revision 4000'],
    ],
    [
      'and for some seconds after that',
      full({ remedy: { ...compacted, measuredAt: at(9_000) } }),
      ['remedyNoSpace: compact revision 4000'],
    ],
    [
      'an operator that has just started asks etcd itself: the one before it may have been killed before',
      { ...full({ remedy: compacted }), remedyObservedMs: 9_000 },
      ['remedyNoSpace: compact revision 4000'],
    ],
    [
      'nothing is defragmented before the compaction was accepted',
      {
        ...full({ remedy: compacted }),
        ...remembering('etcd refuses', { in: 'upkeep', row: 'remedyNoSpace', call: 'compact' }),
      },
      ['remedyNoSpace: compact revision 4000'],
    ],
    [
      'an EtcdDefrag is created also when nothing seems to be free: etcd has not counted it yet',
      full({ remedy: { ...compacted, inUseBytes: 99 * MI }, inUse: 99 * MI }),
      [`remedyNoSpace: create ${DEFRAG}`],
    ],
    ['then an EtcdDefrag is created', full({ remedy: compacted }), [`remedyNoSpace: create ${DEFRAG}`]],
    ['which is created again if it is missing', full({ remedy: defragmenting }), [`remedyNoSpace: create ${DEFRAG}`]],
    ['and waited for', { ...full({ remedy: defragmenting }), remedyDefrag: ours({ phase: 'Running' }) }, []],
    [
      'nothing is done while a voter does not respond: it may be the one that is full',
      full({ members: [up, up, down] }),
      [],
    ],
    ['nothing is done without the alarm', full({ alarms: [] }), []],
    [
      'with room in every database, the alarm alone is disarmed: the quota was raised, or a user has defragmented',
      full({ bytes: 50 * MI }),
      [`disarmNoSpace: disarm ${id(2)}`],
    ],
    [
      'the alarm is disarmed as soon as every database has room, whatever else is planned',
      full({ bytes: 50 * MI, remedy: defragmenting }),
      [`disarmNoSpace: disarm ${id(2)}`, `remedyNoSpace: create ${DEFRAG}`],
    ],
  ])('%s', (_sentence, o, expected) => {
    expect(ownSteps(o).toSorted()).toEqual(expected.toSorted());
  });

  test('a smaller space in use is recorded, and waited for again', () => {
    expect(remedyAfter(full({ remedy: { ...compacted, inUseBytes: 30 * MI } }))).toEqual({
      ...compacted,
      inUseBytes: 20 * MI,
      measuredAt: at(0),
    });
  });

  test.each<[string, Gathered, RemedyStatus['result'], RegExp, string]>([
    [
      'the end of the alarm is the end, with what was done',
      { ...full({ remedy: defragmenting, alarms: [], bytes: 30 * MI }), remedyDefrag: ours(finished(0)) },
      'Remedied',
      /^compacted up to revision 4000, 1200.0 MiB freed in 3 members, etcd accepts writes again after 20 s$/,
      'Normal NoSpaceRemedied',
    ],
    [
      'also when a user has disarmed it and turned autoRemedy off',
      full({ remedy: compacted, alarms: [], autoRemedy: { enabled: false } }),
      'Remedied',
      /again after 20 s$/,
      'Normal NoSpaceRemedied',
    ],
    [
      'keys that fill the database after all that need a larger one, or must go',
      { ...full({ remedy: defragmenting, inUse: 95 * MI }), remedyDefrag: ours({ ...finished(0), phase: 'Running' }) },
      'NoRoom',
      /take 95.0 MiB of the quota of 100.0 MiB in .*, also after it was compacted and defragmented: delete keys, or raise options.quotaBackendBytes to 201326592 \(192Mi\)$/,
      'Warning NoSpaceNotRemedied',
    ],
    [
      'an alarm that is still set a minute after the defragmentation is a failure',
      { ...full({ remedy: defragmenting }), remedyDefrag: ours(finished(2)) },
      'Failed',
      /3 of 3 members defragmented/,
      'Warning NoSpaceNotRemedied',
    ],
    [
      'an EtcdDefrag of another owner is not used',
      { ...full({ remedy: defragmenting }), remedyDefrag: aDefrag({}, finished(2), { name: DEFRAG }) },
      'Failed',
      /belongs to another owner/,
      'Warning NoSpaceNotRemedied',
    ],
  ])('%s', (_sentence, o, result, message, event) => {
    const remedy = remedyAfter(o);
    expect(remedy).toMatchObject({ result, finishedAt: at(0), message: expect.stringMatching(message) });
    expect(reasonsOf(o)).toContain(event);
  });

  test('an alarm that the members which respond do not list has not ended while another one does not respond', () => {
    expect(remedyAfter(full({ remedy: compacted, alarms: [], members: [up, up, down] }))).toBeUndefined();
  });

  test.each<[string, RemedyStatus, number, boolean]>([
    ['after one that has helped, ten minutes later', { result: 'Remedied', finishedAt: at(10 * 60_000) }, 20, true],
    ['and not before', { result: 'Remedied', finishedAt: at(9 * 60_000) }, 20, false],
    ['after one that has failed, an hour later', { result: 'Failed', finishedAt: at(60 * 60_000) }, 20, true],
    ['and not before that', { result: 'Failed', finishedAt: at(59 * 60_000) }, 20, false],
    ['after one without room, a day later', { result: 'NoRoom', finishedAt: at(24 * 3_600_000) }, 95, true],
    ['and not before a day', { result: 'NoRoom', finishedAt: at(23 * 3_600_000) }, 95, false],
    ['or as soon as keys were deleted', { result: 'NoRoom', finishedAt: at(60_000) }, 20, true],
    ['with a clock that was set back, at once', { result: 'Failed', finishedAt: at(-60_000) }, 20, true],
  ])('the next attempt starts %s', (_sentence, remedy, inUse, starts) => {
    const o = full({ remedy: { ...compacted, ...remedy }, inUse: inUse * MI });
    expect(ownSteps(o).length > 0).toBe(starts);
    if (!starts) expect(rowsOf(decide(o))).toContain('remedyNoSpace');
  });
});

describe('without autoRemedy', () => {
  const off = { autoRemedy: { enabled: false, keepRevisions: 1 } };
  test('etcd is asked for nothing', () => {
    expect([ownSteps(full(off)), ownSteps(full({ ...off, bytes: 50 * MI }))]).toEqual([[], []]);
  });
});

describe('the condition says', () => {
  const off = { autoRemedy: {} };
  test.each<[string, Gathered, RegExp]>([
    [
      'the exact commands',
      full(off),
      /kubectl etcd compact db -n ns && kubectl etcd defrag db -n ns && kubectl etcd alarm disarm db -n ns \. .*kubectl patch etcdcluster db -n ns --type=merge -p '\{"spec":\{"maintenance":\{"autoRemedy":\{"enabled":true\}\}\}\}'$/,
    ],
    [
      'that only the alarm is left',
      full({ ...off, bytes: 50 * MI }),
      /only the alarm is left: kubectl etcd alarm disarm db -n ns$/,
    ],
    ['that the operator compacts', full({ remedy: compacted }), /The operator compacts the history$/],
    ['that it defragments', full({ remedy: defragmenting }), new RegExp(`EtcdDefrag ${DEFRAG}$`)],
    [
      'why it could not help',
      full({
        remedy: { ...compacted, result: 'NoRoom', message: 'delete keys', finishedAt: at(1_000) },
        inUse: 95 * MI,
      }),
      /\(NOSPACE\)\. delete keys$/,
    ],
  ])('%s', (_sentence, o, message) => {
    const degraded = findCondition(decide(o).status.conditions, 'Degraded');
    expect([degraded?.status, degraded?.reason]).toEqual(['True', 'NoSpace']);
    expect(degraded?.message).toMatch(message);
  });
});
