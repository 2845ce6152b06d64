/**
 * For any nights: snapshots that can be restored or not, drills that succeed, fail or do not reach the store, and another
 * client that puts forged snapshots into the bucket.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  aRun,
  aSchedule,
  aWork,
  BEGAN,
  INCONCLUSIVE,
  pruneTaskOf,
  RESTORED,
  STORED,
  scheduleWorld,
  settled,
} from '../../../test/support/builders/schedules.ts';
import type { Manifest } from '../../agent/format/manifest.ts';
import { doubtAbout } from '../../agent/tasks/stored-history.ts';
import { ABOUT_ANNOTATION, scheduledSnapshotName } from '../../api/names.ts';
import { FAILURES } from '../../domain/agent-result.ts';
import type { PruneTask } from '../../domain/agent-task.ts';
import { identity } from '../../domain/ownership.ts';
import type { Job } from '../../gen/kube.ts';
import { retain, type Stored } from '../../lib/retention.ts';
import { decide } from './decide.ts';
import type { Observed } from './observed.ts';

/** The result of the Job, as its Pod reports it. */
class Bucket {
  stored: readonly Stored[] = [];
  proven: string | undefined;
  isHeld = false;
  drill(about: string, failure: string | undefined): unknown {
    if (failure === undefined) this.proven = about;
    if (!INCONCLUSIVE.includes(failure ?? '')) this.isHeld = failure !== undefined;
    return failure === undefined ? RESTORED : { ok: false, reason: failure, message: '' };
  }
  prune(task: PruneTask): unknown {
    const { restored, retention, now } = task;
    expect(this.isHeld).toBe(false);
    const history = this.stored.map((entry) => ({
      ...entry,
      good: doubtAbout({ task }, manifestOf(entry.key)) === undefined,
      restorable: entry.key === restored?.name,
    }));
    const { keep, remove } = retain(history, { keepLast: retention.keepLast }, now);
    this.stored = keep.map(({ entry }) => entry);
    return { ok: true, task: 'prune', kept: keep.length, removed: remove.length };
  }
}

const isReal = (name: string): boolean => name.endsWith('00');

/** What is in a manifest of the bucket; the other client does not know the uid and the digest of a real one. */
function manifestOf(name: string): Manifest {
  const [uid, sha256] = isReal(name) ? [RUN_UID, 'a'.repeat(64)] : ['forged', 'b'.repeat(64)];
  return { snapshot: { name, uid }, object: { key: `${name}.db`, sha256 } } as Manifest;
}

const RUN_UID = identity(aRun('01:00:00', STORED)).uid;
const WITH_DIGEST = { ...STORED, artifact: { uri: 's3://b/x', checksum: `sha256:${'a'.repeat(64)}` } };

interface Night {
  readonly failure: string | undefined;
  /** Minutes of the past hour for which there are forged snapshots. */
  readonly forged: readonly number[];
}

/** Stores one snapshot and the forged ones, then reconciles until nothing is left to do. */
function night(before: Observed, hour: number, { failure, forged }: Night, bucket: Bucket): Observed {
  const time = `${String(hour).padStart(2, '0')}:00:00`;
  const run = aRun(time, WITH_DIGEST);
  for (const minute of forged) {
    const takenAt = Date.parse(`2026-03-01T${time}Z`) - (60 - minute) * 60_000;
    const key = scheduledSnapshotName('hourly', takenAt);
    if (!bucket.stored.some((entry) => entry.key === key))
      bucket.stored = [...bucket.stored, { key, takenAt, good: true }];
  }
  const now = Date.parse(`2026-03-01T${time}Z`) + 1_000;
  bucket.stored = [...bucket.stored, { key: identity(run).name, takenAt: now - 1_000, good: true }];
  let world: Observed = { ...before, now, runs: [...before.runs, run] };
  for (let reconciles = 0; reconciles < 20; reconciles++) {
    const { rule, steps } = decide(world);
    if (rule === 'waitForNext') return world;
    world = settled(world);
    for (const step of steps) {
      if (step.do === 'delete')
        world = { ...world, runs: world.runs.filter((each) => identity(each).name !== step.what.name) };
      if (step.do !== 'create') continue;
      const job = step.object as Job;
      const about = job.metadata.annotations?.[ABOUT_ANNOTATION] ?? '';
      const isDrill = job.metadata.name?.startsWith('hourly-drill-') === true;
      const result = isDrill ? bucket.drill(about, failure) : bucket.prune(pruneTaskOf(job));
      const type = (result as { readonly ok: boolean }).ok ? 'Complete' : 'Failed';
      world = { ...world, jobs: [...world.jobs, aWork(job.metadata.name ?? '', { type }, result, about)] };
    }
  }
  throw new Error('there is no end to it');
}

const newestReal = (entries: readonly Stored[], count: number): readonly string[] =>
  entries
    .map(({ key }) => key)
    .filter(isReal)
    .sort()
    .slice(-count);

test('retention never removes the newest snapshot that a drill restored, nor anything while none can be restored, nor a real one for forged ones', () => {
  const failure = fc.option(fc.constantFrom(...FAILURES), { nil: undefined, freq: 2 });
  const forged = fc.uniqueArray(fc.integer({ min: 1, max: 59 }), { maxLength: 4 });
  const nights = fc.array(fc.record({ failure, forged }), { minLength: 1, maxLength: 9 });
  fc.assert(
    fc.property(nights, fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 4 }), (all, keepLast, every) => {
      const bucket = new Bucket();
      const object = aSchedule({ retention: { keepLast }, drill: { every }, suspend: true });
      let world = scheduleWorld('00:30:00', { object });
      const taken: Stored[] = [];
      for (const [i, each] of all.entries()) {
        const stored = bucket.stored.length;
        world = night(world, i + 1, each, bucket);
        taken.push({
          key: scheduledSnapshotName('hourly', Date.parse(BEGAN) + (i + 1) * 3_600_000),
          takenAt: 0,
          good: true,
        });
        expect(newestReal(bucket.stored, keepLast)).toEqual(newestReal(taken, keepLast));
        if (bucket.proven !== undefined) expect(bucket.stored.map(({ key }) => key)).toContain(bucket.proven);
        if (bucket.isHeld) expect(bucket.stored).toHaveLength(stored + 1 + each.forged.length);
      }
    }),
    { numRuns: 60 },
  );
});
