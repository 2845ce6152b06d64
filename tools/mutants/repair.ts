/** Faults in the replacement of lost members. */
import { faults, type Mutant } from './mutant.ts';

export const repair: readonly Mutant[] = faults('src/cluster/rules/repair.ts', [
  ['a replacement although the gate is closed', 'mayNotGo(o, entry) ?? mayReplace(o, m)', 'mayReplace(o, m)'],
  ['replacements without a pause or an end', 'mayNotGo(o, entry) ?? mayReplace(o, m)', 'mayNotGo(o, entry)'],
  [
    'a member that has come back and is replaced',
    ' || isHealthy(o, m)) return undefined;\n  if (isCorrupt',
    ') return undefined;\n  if (isCorrupt',
  ],
  ['a member that is replaced twice', '!isStaying(m) || entryOf(o, m) === undefined', 'entryOf(o, m) === undefined'],
  [
    'a replacement that is counted after it was made',
    '  latch: { repair: { count, last: iso(o.now), generation: o.cluster.metadata.generation ?? 0 } },\n',
    '',
  ],
  ['a count that never grows', 'count = Math.max(helpless(o, m) + 1, countedOnly(o))', 'count = 1'],
  [
    'a count that starts again when a deletion was refused',
    'Math.max(helpless(o, m) + 1, countedOnly(o))',
    'helpless(o, m) + 1',
  ],
  [
    'a member that is deleted on evidence that was withdrawn',
    "seen('EtcdMember', m.object, 'this version')",
    "seen('EtcdMember', m.object)",
  ],
  ['no end to replacements that do not help', 'if (count >= MOST_REPLACEMENTS)', 'if (count > MOST_REPLACEMENTS)'],
  ['a pause that never grows', 'FIRST_PAUSE_MS * 2 ** (count - 1)', 'FIRST_PAUSE_MS'],
  ['an old member that pays for the failures of another', '!isYoung(o, m) || ', ''],
  [
    'a count that an edit of the spec does not end',
    'repair.generation === o.cluster.metadata.generation ? repair.count : 0',
    'repair.count',
  ],
  [
    'a member that was there before the failures and pays for them',
    ' || createdAt(m) < Date.parse(repair.last) - 1_000',
    '',
  ],
  ['an alarm that is cleared while its member is there', ' && !entries.some((e) => e.id === id)', ''],
  ['an alarm about space that is cleared without making any', "alarm === 'CORRUPT' &&", ''],
  ['a call without anybody to ask', ' || healthyVoters(o).length === 0', ''],
  ['a person who is never asked for help', 'helpless(o, m) >= MOST_REPLACEMENTS);', 'false);'],
]);
