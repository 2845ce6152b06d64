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
    'return standsForMs > 0 ? { ...finding, standsForMs } : undefined;',
    'return { ...finding, standsForMs };',
  ],
  [
    'a damaged member that is started again and again',
    'return standsForMs > 0 ? { ...finding, standsForMs } : undefined;',
    'return undefined;',
  ],
  ['a withdrawal that nobody reconciles for', '{ ...finding, standsForMs } : undefined', 'finding : undefined'],
  [
    'a member that never joined and is judged by advice on joining',
    ' || !hasJoined(o)) return undefined;',
    ') return undefined;',
  ],
  [
    'data that is deleted, because a disk refused access',
    '[STORAGE_ERROR, DATA_INCONSISTENT];',
    '[DATA_INCONSISTENT];',
  ],
  ['the good copy that is deleted for a corrupt one', '[STORAGE_ERROR, DATA_INCONSISTENT];', '[STORAGE_ERROR];'],
  ['a few restarts that count as a loop', 'ends < ENDS_OF_A_LOOP || ', ''],
  ['restarts of months that count as a loop', ' || !recent ||', ' ||'],
  ['a volume that is deleted, because its disk refuses access', ' || dataTrouble(o) !== undefined) return', ') return'],
  [
    'a member that runs again and is replaced for its loop',
    " || container.state?.waiting?.reason !== 'CrashLoopBackOff'",
    '',
  ],
  ['a member that serves and is told to lack access', '!finding || container.ready ||', '!finding ||'],
]);

const terminations = faults('src/member/terminations.ts', [
  ['an OOM kill that counts as damage', "reason === 'OOMKilled' || ", ''],
  ['a signal that counts as damage', ' || exitCode >= 126) return', ') return'],
  ['a liveness probe that counts as a crash', ' || exitCode < 1 ||', ' ||'],
  [
    'a SIGTERM during a start that counts as a crash',
    'return exitCode === 1 || endingLines',
    'return exitCode > 0 || endingLines',
  ],
  [
    'a warning that counts as damage',
    '"(fatal|panic|dpanic)"/.test(line)) return undefined',
    '"/.test(line)) return undefined',
  ],
  [
    'ordinary lines that count as damage',
    " || lines.some((line) => line.startsWith('{'))) return logged",
    ') return logged',
  ],
  ['a disk error that counts as damage, by the stack of all goroutines', 'lines.some(isOfRuntime) ?', 'false ?'],
  ['disk errors that add up to a crash loop', ' || reason === STORAGE_ERROR) return', ') return'],
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
  ['ends of different causes in a row', 'before?.reason === reason ? before', 'before ? before'],
]);

export const evidenceFaults: readonly Mutant[] = [...evidence, ...terminations];
