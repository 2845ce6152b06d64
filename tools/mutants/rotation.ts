/** Faults in how an authority is exchanged under members that run. */
import { faults, type Mutant } from './mutant.ts';

const machine = faults('src/cluster/rotation.ts', [
  ['an exchange that is said to be over while the last Pod is away', '(some || isLastAway(o))', 'some'],
  ['a lost Pod that is said to be an exchange', 'o.certificates.kept.length > 0 && ', ''],
  ['two members that are started again at once', '  if (away.length > 0) return', '  if (away.length > 1) return'],
  ['a Pod that is going and counts as back', ' && m.pod.going !== true', ''],
  ['a member that is not ready and counts as back', ' && isReadyVoter(m)', ''],
  ['a member that is not healthy and counts as back', ' && isHealthy(o, m);', ';'],
  ['data in memory that is lost', 'votersOf(o).length < LEAST_IN_MEMORY', 'votersOf(o).length < 0'],
  [
    'members that start with the old authority once more',
    '(t.recorded === t.target || t.unexchanged.length > 0)',
    '(t.recorded === t.target || t.unexchanged.length >= 0)',
  ],
  [
    'members that never come to trust the new authority',
    '(t.recorded === t.target || t.unexchanged.length > 0)',
    't.recorded === t.target',
  ],
  [
    'members that trust the old authority for ever',
    '(t.recorded === t.target || t.unexchanged.length > 0)',
    't.unexchanged.length > 0',
  ],
  ['members that start for nothing', ' && t.target !== undefined && t.trusted && ', ' && '],
  [
    'trust that is narrowed before all members show it',
    "next?.step === 'narrow' && o.certificates.proven?.includes(part) === true",
    "next?.step === 'narrow'",
  ],
  [
    'members of an earlier operator that start for nothing',
    'mount.bundle ?? nameIn(o, part, o.cluster.status?.trust?.assumed?.[part])',
    'mount.bundle',
  ],
  ['a rotation that nobody is told of', 'steps.length === 0 ? undefined : `', 'steps.length >= 0 ? undefined : `'],
]);

const restart = faults('src/cluster/restart.ts', [
  ['the leader first', 'leads(a) - leads(b)', 'leads(b) - leads(a)'],
  [
    'a volume that is thrown away',
    "m.object.spec.storage.medium === 'Memory'",
    "m.object.spec.storage.medium !== 'Memory'",
  ],
  ['clients that find nobody, because it ends at once', '? ASIDE_MS : asideFor(o, m);', '? ASIDE_MS : ASIDE_MS;'],
  [
    'a single member that serves nobody for seconds',
    ' || votersOf(o).length === 1 ?',
    ' || votersOf(o).length === 0 ?',
  ],
  ['clients that have no time to go to others', 'if (aside < ASIDE_MS) return', 'if (aside < 0) return'],
  ['a leader that does not hand over', 'leaderOf(o) === entry.id && transferee', 'leaderOf(o) === "" && transferee'],
  ['a PVC that is being deleted, and goes with the Pod', "m.pvc === 'terminating'\n", 'm.pvc === undefined\n'],
]);

const rules = faults('src/cluster/rules/rotation.ts', [
  ['a member that clients never come back to', ' && m !== next);', " && m.pod.is === 'absent');"],
  ['a member that clients come back to before it starts again', ' && m !== next);', ');'],
  [
    'two ports that are narrowed one after the other',
    'isSettled(t) || mayNarrow(o, t)',
    'isSettled(t) || t.part !== "x"',
  ],
  [
    'trust of before that is never deleted',
    'return atStart && digest !== undefined ?',
    'return atStart && digest === "" ?',
  ],
  [
    'trust that comes back and is deleted',
    '.filter((secret) => !used.includes(secret));\n  const { kept',
    ';\n  const { kept',
  ],
  [
    'trust that a member has and that is deleted',
    'o.certificates.kept.filter((secret) => !used.includes(secret))',
    'o.certificates.kept',
  ],
  [
    'trust that is deleted while a member starts with it',
    'if (over.length === 0 || !running)',
    'if (over.length === 0)',
  ],
  ['a member that would find nothing to mount', 'isFormed(o) && canMount(o) ?', 'isFormed(o) ?'],
  ['a restart that does not ask', 'next && mayNotRestart(o, next) === undefined ? next', 'next ? next'],
  [
    'a member in memory whose Pod comes back empty',
    "isInMemory(next) ? { what: seen('EtcdMember', next.object) } : {}",
    '{}',
  ],
  [
    'members of an earlier operator of whom nothing is noted',
    'atStart && unsaid && known !== undefined ? [[part, known]] : []',
    '[]',
  ],
  [
    'a rotation that is carried out again and again',
    'value === undefined ? [] : [[part, value] as const]',
    'value === "" ? [[part, value] as const] : []',
  ],
  ['a first member with trust of before', 'trust[part] !== before?.[part]', 'before?.[part] === undefined'],
]);

const side = faults('src/credentials/side.ts', [
  ['trust that is given up although the authorities are there', 'copied, target, ...others]', 'copied, target]'],
  ['leaves that are exchanged although a member does not take them', '[now, ...side.held].every', '[now].every'],
  [
    'leaves that are exchanged although those who start do not take them',
    '[now, ...side.held].every',
    '[...side.held].every',
  ],
  [
    'trust that nobody can read and that vouches',
    'trust !== undefined && vouchesFor(trust, chain)',
    'trust === undefined || vouchesFor(trust, chain)',
  ],
  ['a member that starts just now with trust of before', '(!side.atStart || world.around.mounted.complete) && ', ''],
  ['clients that have had no time', ' && world.around.now >= at;', ';'],
  [
    'applications that were not told',
    '!== given(side)?.digest))\n    return undefined;',
    '=== null))\n    return undefined;',
  ],
  [
    'trust that is taken from whatever has the name',
    'read && trustName(name, part, read.digest) === bundle ? read : undefined',
    'read',
  ],
]);

const authority = faults('src/credentials/authority.ts', [
  [
    'an authority that cannot sign, and is waited for',
    'certificate: signing(pairIn(secret)),',
    'certificate: pairIn(secret),',
  ],
  [
    'a lost authority that is replaced unasked',
    'const due = isCommanded(world, part) || ',
    'const due = !certificate || isCommanded(world, part) || ',
  ],
  ['a command that is carried out twice', 'const ready = !isCommanded(world, part) && ', 'const ready = '],
  [
    'an authority that signs before it is trusted',
    'vouched(side, [next]) && mayExchange(world, side)',
    'mayExchange(world, side)',
  ],
  [
    'an authority that signs before applications know it',
    'vouched(side, [next]) && mayExchange(world, side)',
    'vouched(side, [next])',
  ],
  ['one rotation in the middle of another', '...(due && settled && {', '...(due && {'],
  ['an authority that is exchanged all the time', 'Math.max(from + life / 2, Math.min(', 'Math.max(from, Math.min('],
  ['an authority that is never exchanged by itself', ' || world.around.now >= dueAt(authority)', ''],
]);

const judge = faults('src/credentials/judge.ts', [
  ['trust that is narrowed while a certificate waits', 'const over = written && ', 'const over = '],
  [
    'trust that is narrowed to something that vouches for nothing that is shown',
    'unexchanged(world, side).length === 0 && mayExchange',
    'mayExchange',
  ],
  [
    'trust that is narrowed before clients have certificates',
    '.length === 0 && mayExchange(world, side)',
    '.length === 0',
  ],
  ['trust that is taken from members when another one comes', 'trustIn(recorded.text, to.text)', 'to'],
  ['trust that is recorded before its Secret is there', '...(next && ready && {', '...(next && {'],
]);

const tls = faults('src/member/tls.ts', [
  ['a leaf that reaches members by itself', '[{ part, leaf: mount, ', '[{ part, leaf: stated, '],
]);
const observe = faults('src/member/observe.ts', [
  ['a Pod with trust of before, because the cache is late', ' || member.spec.tls !== undefined', ''],
]);
const gate = faults('src/cluster/gate.ts', []);

export const rotation: readonly Mutant[] = [
  ...machine,
  ...restart,
  ...rules,
  ...side,
  ...authority,
  ...judge,
  ...tls,
  ...observe,
  ...gate,
];
