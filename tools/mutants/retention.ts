/** Faults in what is removed from a store of snapshots, and in what never may be. */
import { faults, type Mutant } from './mutant.ts';

const retention = faults('src/lib/retention.ts', [
  ['the only one that can be restored, removed', "...(entry.restorable === true ? ['restored by a drill'] : []),", ''],
  ['the last good one that is removed', "...(newestGood.includes(entry) ? ['newest good'] : []),", ''],
  [
    'a wrong clock that has all others removed',
    'const past = newestFirst.filter(isPast);',
    'const past = newestFirst;',
  ],
  ['what is from the future and is removed', "...(isPast(entry) ? [] : ['from the future']),", ''],
  [
    'damaged ones that take the place of good ones',
    'kept(past.filter(isGood), policy, now), kept(past',
    'kept(past, policy, now), kept(past',
  ],
  [
    'the only thing that is left, removed because it is damaged',
    "...(!entry.good && place < latestPlace ? ['nothing newer is good'] : []),",
    '',
  ],
  ['an empty policy that keeps nothing', "return () => ['no policy'];", 'return () => [];'],
  ['weeks that begin on Thursdays', '(time / DAY_MS + MONDAY_OFFSET_DAYS) / 7', '(time / DAY_MS) / 7'],
  [
    'the oldest of each day instead of the newest',
    'if (!newest.has(period)) newest.set(period, entry);',
    'newest.set(period, entry);',
  ],
  ['the newest that goes first when a removal is interrupted', '.reverse(),', ','],
  ['an order that depends on the store', '|| (a.key < b.key ? 1 : -1)', ''],
]);

const prune = faults('src/agent/prune.ts', [
  [
    'backups of another cluster, removed',
    'manifest?.cluster.uid !== cluster.uid || manifest.schedule',
    'manifest?.schedule',
  ],
  ['backups of another schedule, removed', '|| manifest.schedule?.uid !== schedule.uid) continue;', ') continue;'],
  [
    'an object that was put in place of ours, removed',
    'there.uid !== undefined && there.uid !== manifest.snapshot.uid',
    'there.uid === manifest.snapshot.uid',
  ],
  ['half an object that counts as a backup', 'const good = size === manifest.object.sizeBytes;', 'const good = true;'],
  [
    'the snapshot that a drill restored, not found by its name',
    '(restored.name === name || restored.uid === uid)',
    'restored.uid === uid',
  ],
  [
    'the snapshot that a drill restored, not found by its uid',
    '(restored.name === name || restored.uid === uid)',
    'restored.name === name',
  ],
  ['objects in other folders', ' || key !== `${folder}${baseName(key)}`', ''],
  [
    'an object whose manifest went first',
    '  await store.delete(key);\n  await store.delete(`${key}${MANIFEST}`);',
    '  await store.delete(`${key}${MANIFEST}`);\n  await store.delete(key);',
  ],
  ['an age that is not understood, and taken for none', 'if (maxAge !== undefined && age === undefined)', 'if (false)'],
]);

const etcdutl = faults('src/agent/etcdutl.ts', [
  ['a damaged database that counts as a tool that failed', 'if (isDamaged(output))', 'if (false)'],
  ['a snapshot called damaged for want of memory', ' &&\n  !/cannot allocate memory|out of memory/.test(output)', ''],
]);

const jobs = faults('src/snapshot-schedule/build.ts', [
  ['a prune Job that does not know which snapshot was restored', '...restoredOf(schedule),', ''],
]);

export const storedSnapshots: readonly Mutant[] = [...retention, ...prune, ...etcdutl, ...jobs];
