/** What the operator does about the data of a running cluster, without being asked each time. */
import type { Accepted } from './meta.ts';
import { optionalFlag, optionalInt64, optionalObject, optionalText, optionalTime } from './optional.ts';

/** In an emergency: watches that were interrupted for longer start again from a list. */
export const DEFAULT_KEPT_REVISIONS = 1_000;

export const maintenance = optionalObject('Maintenance that the operator does by itself.', {
  autoRemedy: optionalObject(
    'When a database has reached its quota and etcd accepts no writes (the NOSPACE alarm): the operator compacts the history, defragments the members one after the other, and disarms the alarm once every database has room. Absent: it reports the alarm, and what to do.',
    {
      enabled: optionalFlag('Absent: false.'),
      keepRevisions: optionalInt64(
        `How many of the latest revisions are kept when the history is compacted. Absent: ${DEFAULT_KEPT_REVISIONS}.`,
        { minimum: 0 },
      ),
    },
  ),
});

export const remedyStatus = optionalObject(
  'What the operator did about the last NOSPACE alarm, where spec.maintenance.autoRemedy asks for it.',
  {
    startedAt: optionalTime('When it started.'),
    revision: optionalInt64('The history is compacted up to this revision. Absent: there was none to compact.'),
    inUseBytes: optionalInt64('The smallest size since then of the keys and their history, in the largest database.'),
    measuredAt: optionalTime('When that was measured first: the compaction has ended some seconds after it.'),
    defrag: optionalText('The EtcdDefrag that gives the space back.'),
    finishedAt: optionalTime('When it ended. Absent: it goes on.'),
    result: optionalText('Remedied: etcd accepts writes again. NoRoom: the keys themselves fill the database. Failed.'),
    message: optionalText('What was done, or what a user has to do.'),
  },
);
export type RemedyStatus = NonNullable<Accepted<typeof remedyStatus>>;
