/** Faults in what follows when every voter refuses a membership change. */
import { dropped, faults, type Mutant } from './mutant.ts';

const facts = faults('src/cluster/refused.ts', [
  ['restarts for the five seconds after a growth', 'o.now - o.refusedSince >= REFUSED_MS', 'o.now >= o.refusedSince'],
  ['restarts for a change that is not wanted any more', 'if (!wanted) return undefined;', ''],
  ['a restart of the only member', 'votersOf(o).length > 1 && ', ''],
  ['a restart while a voter is not healthy', ' && votersOf(o).every((entry) => isWell(o, entry));', ';'],
  ['a restart while a Pod is not ready', ' || !m.pod.ready) return false;', ') return false;'],
  ['a restart while another Pod is being deleted', ' || m.pod.going === true', ''],
  ['the leader before a follower', 'return leaderLast(o, voters).', 'return voters.'],
  ['a voter that stays, restarted instead of the one that goes', 'leaves(b) - leaves(a)', 'leaves(a) - leaves(b)'],
  ['data in memory that is lost', 'if (isInMemory(m)) return `', 'if (false) return `'],
  ['a restart although Secrets cannot be read', 'if (unreadSecrets(o) !== undefined)', 'if (false)'],
  ['a PVC that nobody has seen', "if (m.pvc !== 'present') return", "if (m.pvc === 'terminating') return"],
  [
    'a Pod whose image is not allowed any more',
    'repository !== undefined && !isAllowed',
    'repository === "" && !isAllowed',
  ],
  ['a Pod that finds no certificate', 'if (!canMount(o)) return', 'if (false) return'],
  ['a Pod of a spec that is blocked', 'return blocked(o) ?? (entry', 'return (entry'],
  ['a restart that does not ask the disruption check', 'entry ? mayNotPause(o, entry) :', 'entry ? undefined :'],
  [
    'a recorded restart that is carried out hours later',
    ' && isFresh(o, each) && isPending(each)',
    ' && isPending(each)',
  ],
  ['a recorded restart of another change', 'before === change && isFresh', 'isFresh'],
  ['a second restart of the same Pod by record', '!isPending(each) && (before', '(before'],
  ['restarts for one change without end', '(before === change || o.now', '(o.now'],
  ['restarts with every change', ' || o.now - Date.parse(each.at) < COUNTED_MS', ''],
]);

const rule = faults('src/cluster/rules/refused.ts', [
  ['a restart that nobody has recorded', 'if (next.recorded) return answer;', 'return answer;'],
  ['a record with every step', 'if (next.recorded) return answer;\n', ''],
  ['earlier restarts that are forgotten', '[...restarts, record]', '[record]'],
  ['a restart that is blocked', 'found?.blockedBy !== undefined || next.m.pod.is', 'next.m.pod.is'],
]);

const order = faults('src/cluster/decide.ts', [['a cluster that can never grow again', ...dropped('restartRefusing')]]);

const telling = faults('src/cluster/status.ts', [
  [
    'a person who is not asked for help with a refused change',
    '  if (s.refused?.hopeless) return no(REFUSED, s.refused.message);\n',
    '',
  ],
  ['a refused change that nobody is told of', '  if (s.refused) return yes(REFUSED, s.refused.message);\n', ''],
]);

const others = [
  ...faults('src/cluster/gate.ts', [
    [
      'a restart that waits for ever, because all are being deleted',
      'return comesBack || others.some',
      'return others.some',
    ],
  ]),
];

export const refused: readonly Mutant[] = [
  ...facts,
  ...rule,
  ...order,
  ...telling,
  ...others,
  ...faults('src/cluster/call.ts', [
    [
      'a voter that did not answer and counts as one that refused',
      'failures.every((kind) => kind',
      'failures.some((kind) => kind',
    ],
  ]),
  ...faults('src/cluster/observe-members.ts', [
    [
      'a PVC that is being deleted, and counts as there',
      "undefined ? 'present' : 'terminating'",
      "'' ? 'present' : 'present'",
    ],
  ]),
  ...faults('src/cluster/observe.ts', [
    ['a refusal of another kind that restarts members', 'refusal?.kind?.startsWith(UNHEALTHY_CLUSTER)', 'refusal'],
    ['a refusal of long ago that restarts members', ' && now - refusal.at < REFUSED_AGAIN_MS', ''],
  ]),
];
