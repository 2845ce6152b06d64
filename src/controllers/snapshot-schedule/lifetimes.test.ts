/**
 * Whole lives of a schedule with retention, drills, scrubs and copies, in a bucket that decays and that others write to: the last
 * good copy is never deleted, and what is damaged is reported.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Backups, type Pruned, type Real } from '../../../test/support/builders/backups.ts';
import { damagedIn, type EtcdSnapshotScheduleSpec } from '../../api/etcd-snapshot-schedule.ts';
import { MANIFEST } from '../../domain/agent-task.ts';
import { endOf } from '../../domain/job.ts';
import { resolveSource } from '../../domain/restore-source.ts';
import { parseDuration } from '../../lib/duration.ts';
import { retain } from '../../lib/retention.ts';

const HOUR = 3_600_000;
/** Each is some fifty actions; RUNS=500 finds rarer ones. */
const RUNS = Number(process.env['RUNS'] ?? 30);

type Action =
  | { readonly do: 'hours'; readonly hours: number }
  | { readonly do: 'finish'; readonly diesBefore: number }
  | { readonly do: 'copy'; readonly newest: boolean }
  | { readonly do: 'next'; readonly snapshot: Backups['next']['snapshot'] }
  | { readonly do: 'noSpace' }
  | { readonly do: 'harm'; readonly how: (typeof HARM)[number]; readonly of: number }
  | { readonly do: 'forge'; readonly of: number; readonly hoursAgo: number };
const HARM = ['flip', 'truncate', 'delete the object', 'delete the manifest', 'delete both'] as const;

const actions: fc.Arbitrary<readonly Action[]> = fc.array(
  fc.oneof(
    { weight: 8, arbitrary: fc.record({ do: fc.constant('hours' as const), hours: fc.constantFrom(1, 1, 2, 3, 5) }) },
    {
      weight: 8,
      arbitrary: fc.record({ do: fc.constant('finish' as const), diesBefore: fc.constantFrom(99, 99, 99, 0, 1, 2) }),
    },
    { weight: 3, arbitrary: fc.record({ do: fc.constant('copy' as const), newest: fc.boolean() }) },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constant('next' as const),
        snapshot: fc.constantFrom('rotten' as const, 'killed' as const, 'failed' as const),
      }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('noSpace' as const) }) },
    {
      weight: 2,
      arbitrary: fc.record({ do: fc.constant('harm' as const), how: fc.constantFrom(...HARM), of: fc.nat(8) }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ do: fc.constant('forge' as const), of: fc.nat(8), hoursAgo: fc.constantFrom(0, 1, 4) }),
    },
  ),
  { minLength: 10, maxLength: 50 },
);
const retention = fc.record(
  { keepLast: fc.nat(4), maxAge: fc.constantFrom('1h', '5h', '48h'), daily: fc.nat(4) },
  { requiredKeys: [] },
);
const copyTo = retention.map((kept) => ({
  destination: { pvc: { claimName: 'second', subPath: 'copies' } },
  retention: kept,
}));
const specs: fc.Arbitrary<Partial<EtcdSnapshotScheduleSpec>> = fc.record(
  {
    retention,
    drill: fc.record({ every: fc.constantFrom(1, 3) }),
    scrub: fc.constantFrom('Daily' as const, 'Weekly' as const),
    successfulSnapshotsHistoryLimit: fc.constantFrom(0, 1, 3, 10),
    copyTo,
  },
  { requiredKeys: ['retention', 'scrub'] },
);

/** As it was stored. */
const isWholeIn = (objects: ReadonlyMap<string, unknown>, key: string, { object, manifest }: Real): boolean =>
  object.equals(bytesOf(objects, key)) && manifest.equals(bytesOf(objects, `${key}${MANIFEST}`));
const bytesOf = (objects: ReadonlyMap<string, unknown>, key: string): Buffer =>
  (objects.get(key) as { readonly bytes: Buffer } | undefined)?.bytes ?? Buffer.alloc(0);

function harm(world: Backups, how: (typeof HARM)[number], of: number): void {
  const real = [...world.real.values()].filter(({ key }) => world.first.objects.has(key)).at(-1 - of);
  const held = real && world.first.objects.get(real.key);
  if (!real || !held) return;
  if (how === 'flip')
    world.first.objects.set(real.key, { ...held, bytes: Buffer.from(held.bytes.map((byte) => byte ^ 1)) });
  if (how === 'truncate') world.first.objects.set(real.key, { ...held, bytes: held.bytes.subarray(1) });
  if (how === 'delete the object' || how === 'delete both') world.first.objects.delete(real.key);
  if (how === 'delete the manifest' || how === 'delete both') world.first.objects.delete(`${real.key}${MANIFEST}`);
}

/** Another client puts a pair there that is named after a minute without a snapshot, and says that it was taken just now. */
function forge(world: Backups, of: number, hoursAgo: number): void {
  const model = [...world.real.values()].at(-1 - of);
  if (!model) return;
  const slot = new Date(world.now - hoursAgo * HOUR - 7 * 60_000);
  const name = `hourly-${slot.toISOString().replace(/\D/g, '').slice(0, 12)}`;
  const key = model.key.replace(model.name, name);
  const text = model.manifest
    .toString()
    .replaceAll(model.name, name)
    .replace(/"takenAt": "[^"]*"/, `"takenAt": "${new Date(world.now).toISOString()}"`);
  world.first.objects.set(key, { bytes: model.object, uid: model.uid, upload: 'forged' });
  world.first.objects.set(`${key}${MANIFEST}`, { bytes: Buffer.from(text), uid: model.uid, upload: 'forged' });
}

async function act(world: Backups, action: Action): Promise<void> {
  if (action.do === 'hours') await world.hours(action.hours);
  if (action.do === 'finish') await world.finish(action.diesBefore);
  if (action.do === 'copy') await world.copy(action.newest);
  if (action.do === 'next') world.next.snapshot = action.snapshot;
  if (action.do === 'noSpace') world.next.drill = 'NoSpace';
  if (action.do === 'harm') harm(world, action.how, action.of);
  if (action.do === 'forge') forge(world, action.of, action.hoursAgo);
  await world.reconcile();
}

/**
 * What one retention Job has removed, and must not: all that its rules keep of the snapshots that look whole, and what a drill
 * proved. A changed byte is unknown until a scrub or a drill has read it.
 */
function missing({ real }: Backups, { task, ofCopies, before, after }: Pruned, isForged: boolean): readonly string[] {
  const keyOf = (each: Real): string => (ofCopies ? each.copyKey : each.key);
  const looksWhole = [...real.values()].filter(
    (each) =>
      bytesOf(before, keyOf(each)).length === each.object.length &&
      each.manifest.equals(bytesOf(before, `${keyOf(each)}${MANIFEST}`)),
  );
  const isDamaged = (each: Real): boolean => task.damaged?.some(({ name }) => name === each.name) === true;
  const isRecorded = ({ name }: Real): boolean => task.recorded?.some((each) => each.name === name) === true;
  const { maxAge, ...counts } = task.retention;
  const policy = { ...counts, maxAge: maxAge === undefined ? undefined : parseDuration(maxAge) };
  const judged = looksWhole.map((each) => ({ key: each.name, takenAt: each.slot, good: !isDamaged(each) }));
  const kept = retain(judged, policy, task.now).keep.map(({ entry }) => entry.key);
  const isKept = (each: Real): boolean =>
    // Forged ones of old minutes can take the place of those that are not recorded any more.
    (kept.includes(each.name) && (!isForged || isRecorded(each))) || each.name === task.restored?.name;
  return looksWhole.filter((each) => isKept(each) && !after.has(keyOf(each))).map(({ name }) => name);
}

const live = (
  isEncrypted: boolean,
  runs: number,
  check: (world: Backups, isForged: boolean) => Promise<void> | void,
): Promise<void> =>
  fc.assert(
    fc.asyncProperty(specs, actions, async (spec, script) => {
      const world = new Backups(spec, isEncrypted);
      await world.reconcile();
      for (const action of script) await act(world, action);
      expect(world.broken).toEqual([]);
      await check(world, !isEncrypted && script.some((each) => each.do === 'forge'));
    }),
    { numRuns: runs },
  );

/** Until each snapshot was read, or was found lost. */
async function scrubAll(world: Backups): Promise<void> {
  const { first, status } = world;
  const { drill: _drill, ...spec } = world.spec;
  world.spec = { ...spec, suspend: true };
  const left = [...first.objects.keys()].filter((key) => key.endsWith(MANIFEST)).length + 1;
  for (let i = 0, scrubs = status.lastScrub?.time; i < left; scrubs = world.status.lastScrub?.time) {
    await world.finish();
    await world.reconcile();
    if (world.jobs.some(({ job }) => !endOf(job))) continue;
    if (world.status.lastScrub?.time !== scrubs) i++;
    world.now = Math.max(world.now, Date.parse(world.status.nextScrubTime ?? '') - HOUR);
    await world.hours(1);
    if (!world.status.lastSuccessful) return;
  }
}

describe.each([
  ['encrypted', true],
  ['plain', false],
] as const)('snapshots of an hourly schedule, %s, whatever happens to its bucket', (_name, isEncrypted) => {
  test('retention leaves what its rules keep of the whole snapshots, the newest of them, and what a drill proved', async () => {
    await live(isEncrypted, RUNS, (world, isForged) => {
      for (const pruned of world.pruned) expect(missing(world, pruned, isForged)).toEqual([]);
    });
  }, 240_000);

  test('scrubs report all that is damaged or lost, and nothing else; a restore by name chooses none of it', async () => {
    await live(isEncrypted, RUNS / 2, async (world) => {
      await scrubAll(world);
      const damaged = damagedIn(world.status).map(({ name }) => name);
      const { objects } = world.first;
      for (const each of world.real.values()) {
        const isThere = objects.has(`${each.key}${MANIFEST}`);
        const isSame = each.manifest.equals(bytesOf(objects, `${each.key}${MANIFEST}`));
        if (isThere && isSame)
          expect([each.name, damaged.includes(each.name)]).toEqual([each.name, !isWholeIn(objects, each.key, each)]);
      }
      const object = world.observed.object;
      const chosen = resolveSource(
        { latest: { scheduleRef: { name: 'hourly' } } },
        {
          schedule: () => object,
          snapshot: (name) => world.runs.find(({ metadata }) => metadata.name === name),
          snapshotsOf: () => world.runs,
        },
      );
      if (!chosen || !('chosen' in chosen)) return;
      const real = world.real.get(chosen.chosen.snapshot ?? '');
      expect(real && (world.first.objects.has(real.key) || chosen.chosen.source?.copy !== undefined)).toBe(true);
    });
  }, 240_000);
});
