/** For any nights: snapshots that can be restored or not, drills that succeed, fail or do not reach the store. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  aRun,
  aSchedule,
  aWork,
  INCONCLUSIVE,
  pruneTaskOf,
  RESTORED,
  STORED,
  scheduleWorld,
  settled,
} from '../../../test/support/builders/schedules.ts';
import { ABOUT_ANNOTATION } from '../../api/names.ts';
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
  prune({ restored, retention, now }: PruneTask): unknown {
    expect(this.isHeld).toBe(false);
    const history = this.stored.map((entry) => ({ ...entry, restorable: entry.key === restored?.name }));
    const { keep, remove } = retain(history, { keepLast: retention.keepLast }, now);
    this.stored = keep.map(({ entry }) => entry);
    return { ok: true, task: 'prune', kept: keep.length, removed: remove.length };
  }
}

/** Stores one snapshot, then reconciles until nothing is left to do. */
function night(before: Observed, hour: number, failure: string | undefined, bucket: Bucket): Observed {
  const time = `${String(hour).padStart(2, '0')}:00:00`;
  const run = aRun(time, STORED);
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

test('retention never removes the newest snapshot that a drill restored, nor anything while none can be restored', () => {
  const outcomes = fc.option(fc.constantFrom(...FAILURES), { nil: undefined, freq: 2 });
  const nights = fc.array(outcomes, { minLength: 1, maxLength: 9 });
  fc.assert(
    fc.property(nights, fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 4 }), (all, keepLast, every) => {
      const bucket = new Bucket();
      const object = aSchedule({ retention: { keepLast }, drill: { every }, suspend: true });
      let world = scheduleWorld('00:30:00', { object });
      for (const [i, failure] of all.entries()) {
        const stored = bucket.stored.length;
        world = night(world, i + 1, failure, bucket);
        if (bucket.proven !== undefined) expect(bucket.stored.map(({ key }) => key)).toContain(bucket.proven);
        if (bucket.isHeld) expect(bucket.stored).toHaveLength(stored + 1);
      }
    }),
    { numRuns: 100 },
  );
});
