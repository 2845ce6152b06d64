/** Faults in the disruption check, and in what is seen of members. */
import { faults, type Mutant } from './mutant.ts';

const gate = faults('src/cluster/gate.ts', [
  ['half of an even number that counts as a quorum', 'Math.floor(voters / 2) + 1', 'Math.ceil(voters / 2)'],
  ['a member without a leader that counts as healthy', ' || self.leader === undefined', ''],
  ['a member with corrupt data that counts as healthy', " || self.alarms.includes('CORRUPT')", ''],
  ['a member that is far behind and counts as healthy', 'newest(o) - self.applied <= MAX_LAG', 'true'],
  ['a leader on the word of one, although others follow another', 'told.size === 1', 'told.size >= 1'],
  [
    'a removal while there is no leader to agree on',
    "  if (leaderOf(o) === undefined) return 'the members do not agree on a leader';\n",
    '',
  ],
  ['a learner that cannot go, because a voter is down', '  if (victim.isLearner) return undefined;\n', ''],
  [
    'the removal of a voter that the quorum needs',
    'others.filter((entry) => !healthySelf(o, entry))',
    'others.slice(0, 0)',
  ],
  ['a voter that counts itself among those that are left', 'entry.id !== victim.id', 'entry.id !== ""'],
  ['two lost members that wait for each other for ever', 'if (sick.length > 0 && !helps)', 'if (sick.length > 0)'],
  [
    'a lost member that is removed where the others are no quorum',
    ' && others.length - sick.length >= quorumOf(others.length)',
    '',
  ],
  [
    'a member that is only down and goes while others are',
    '(evidence(m) !== undefined || isCorrupt(o, m) || !isStaying(m)) && !isHealthy(o, m)',
    '!isHealthy(o, m)',
  ],
  [
    'a member that has come back and goes while others are down',
    '(evidence(m) !== undefined || isCorrupt(o, m) || !isStaying(m)) && !isHealthy(o, m)',
    'evidence(m) !== undefined || isCorrupt(o, m)',
  ],
  ['a corrupt member that stays while another is down', ' || isCorrupt(o, m) || !isStaying(m)', ' || !isStaying(m)'],
  ['the one that is right, replaced by two that were not asked', '  if (agreed === undefined) return false;\n', ''],
  ['a member that is not asked and counts as corrupt', 'isInconsistent(m) && ', ''],
  [
    'a good copy that is replaced, because a corrupt peer keeps it from starting',
    '.every((other) => other.id === own ||',
    '.some((other) => other.id === own ||',
  ],
  [
    'a voter that counts twice, because it responds at the address of another',
    'id === undefined || id === m.self?.id ? m.self : undefined',
    'm.self',
  ],
  [
    'one of two that is replaced, and nobody knows which is right',
    'votes(hash) >= quorumOf(hashes.length)',
    'votes(hash) >= quorumOf(hashes.length) - 1',
  ],
  [
    'a learner that is believed about the data',
    'const hashes = votersOf(o).map(',
    'const hashes = (entriesOf(o) ?? []).map(',
  ],
  ['a member that differs from a quorum and counts as healthy', 'return !isCorrupt(o, m) && newest', 'return newest'],
  ['learners that count as a quorum', 'filter((e) => !e.isLearner)', 'filter(() => true)'],
  [
    'the data that goes with the last of members that are all deleted',
    'others.some((entry) => stays(o, entry))',
    'true',
  ],
]);

const members = faults('src/cluster/observe-members.ts', [
  ["a Pod of somebody else's that is asked as a member", ' || controllerOf(pod)?.uid !== member.metadata.uid', ''],
  ['an address that an ended Pod has given back', '&& !isPodOver(pod) && { ip: podIP }', '&& { ip: podIP }'],
  ['etcd 3.5 that is given several learners', 'stated === undefined ? 1', 'stated === undefined ? 8'],
]);

export const gateFaults: readonly Mutant[] = [...gate, ...members];
