/** Faults in what counts as proof that a member will not come back. */
import { faults, type Mutant } from './mutant.ts';

const evidence = faults('src/member/evidence.ts', [
  ['a replacement before the grace is over', 'evidence && evidence.leftMs <= 0 ? evidence : undefined', 'evidence'],
  ['a member that never joined and counts as lost', '  if (!hasJoined(o)) return undefined;\n', ''],
  ['an empty Pod in memory that comes back as a member', 'known && o.pod.object.metadata.uid !== recorded', 'false'],
  [
    'a cluster that is taken for lost, because it was begun in the second Pod of its seed',
    'recorded !== undefined && o.member.status?.memberID !== undefined',
    'recorded !== undefined',
  ],
  ['an ended Pod in memory that is made again, empty', 'isPodOver(o.pod.object)', 'false'],
  ['a lost volume that is waited for for ever', "o.volume.object.status?.phase === 'Lost'", 'false'],
  [
    'a member that answers and is given up with its node',
    "node.is === 'unknown' || o.etcd.is === 'answers'",
    "node.is === 'unknown'",
  ],
  [
    'a member whose volume is elsewhere and is given up with its node',
    '    return stuck ? now(EVIDENCE.nodeLost, `node ${node.name} is gone, and the data with it`) : undefined;',
    '    return now(EVIDENCE.nodeLost, `node ${node.name} is gone, and the data with it`);',
  ],
  [
    'a member that is given up, although its volume can be reached from other nodes',
    'node.outOfService && stuck',
    'node.outOfService',
  ],
  [
    'a node that is silent for a moment and counts as lost',
    'node.notReadySince + o.nodeLostAfterMs - o.now',
    'node.notReadySince - o.now',
  ],
  [
    'an end that counts as damage before it is seen three times',
    '(failedStartsOf(o)?.count ?? 0) < ENDS_THAT_PROVE',
    'false',
  ],
  [
    'a member that is cut off for a moment and is replaced for what went wrong when it joined',
    'if (standsForMs !== undefined && !(standsForMs > 0)) return undefined;',
    '',
  ],
  ['a damaged member that is started again and again', ' && !(standsForMs > 0)) return', ') return'],
  ['a withdrawal that nobody reconciles for', '...(standsForMs !== undefined && { standsForMs })', ''],
  [
    'a member that never joined and is judged by advice on joining',
    ' || !hasJoined(o)) return undefined;',
    ') return undefined;',
  ],
  ['data that is deleted, because a disk refused access', ' || finding.reason === STORAGE_ERROR ||', ' ||'],
  ['a few restarts that count as a loop', 'ends < ENDS_OF_A_LOOP || ', ''],
  ['restarts of months that count as a loop', ' || !recent ||', ' ||'],
  [
    'a volume that is deleted, because its disk refuses access',
    ' || storageError(o) !== undefined) return',
    ') return',
  ],
  [
    'a member that runs again and is replaced for its loop',
    " || container.state?.waiting?.reason !== 'CrashLoopBackOff'",
    '',
  ],
  ['a member that serves and is told to lack access', ' || container?.ready ||', ' ||'],
]);

const terminations = faults('src/member/terminations.ts', [
  ['an OOM kill that counts as damage', "exitCode < 126 && reason !== 'OOMKilled'", 'exitCode < 126'],
  ['a signal that counts as damage', "exitCode < 126 && reason !== 'OOMKilled'", "reason !== 'OOMKilled'"],
  [
    'a warning that counts as damage',
    '"(fatal|panic|dpanic)"/.test(line)) return undefined',
    '"/.test(line)) return undefined',
  ],
  ['ordinary lines that count as damage', 'logged.length === 0 && isCutTraceback(lines) ? lines : logged', 'lines'],
  ['a disk error that counts as damage, by the stack of all goroutines', '|\\b[fg]p=0x', ''],
  ['a run that served, and counts as failed', "container?.ready || o.etcd.is === 'answers'", "o.etcd.is === 'answers'"],
  ['a run that answered, and counts as failed', "container?.ready || o.etcd.is === 'answers'", 'container?.ready'],
  [
    'an end that is counted in every reconcile',
    ' && restarts === recorded.restarts) return recorded;',
    ' && false) return recorded;',
  ],
  ['a second end in the same second that is not counted', ' && restarts === recorded.restarts) return', ') return'],
  ['an end that nobody saw, in the middle of the row', ' ? restarts === recorded.restarts + 1 : ', ' ? true : '],
  ['a run that served unseen, in the middle of the row', ' : notReadySince <= ended + REPORTED_WITHIN_MS', ' : true'],
  [
    'a watch that is late and keeps a damaged member for ever',
    ' : notReadySince <= ended + REPORTED_WITHIN_MS',
    ' : false',
  ],
  ['ends of two Pods in a row', 'restarts > recorded.restarts &&', ''],
  ['ends of months in a row', 'startedAt - ended < LOOP_WINDOW_MS &&', ''],
  ['ends of different causes in a row', 'before?.reason === reason ? before.count + 1 : 1', '(before?.count ?? 0) + 1'],
]);

export const evidenceFaults: readonly Mutant[] = [...evidence, ...terminations];
