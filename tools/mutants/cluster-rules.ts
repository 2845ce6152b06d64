/** Faults in the rules of the cluster. */
import { faults, type Mutant } from './mutant.ts';

const bootstrap = faults('src/cluster/rules/bootstrap.ts', [
  [
    'a second seed beside one that the earlier operator made',
    "o.seed.is !== 'absent' || seedView(o)",
    "o.seed.is !== 'absent'",
  ],
  ['a cluster that is begun again after it had formed', 'if (isFormed(o) || o.seed.is', 'if (o.seed.is'],
  [
    'another token after a crash, and with it another etcd cluster',
    'status.clusterToken ?? clusterToken(namespace, name, uid)',
    'clusterToken(namespace, name, uid)',
  ],
  [
    'a name that is given out twice, because the first was not counted',
    'Math.max(status.membersNamed ?? 0, SEED)',
    '0',
  ],
  ['a seed without a token that is recorded', '    latch,\n', ''],
  ['the id of a seed that is going, and its data with it', '!isStaying(seed) || o.etcd.is !==', 'o.etcd.is !=='],
  ["somebody else's cluster that is taken for ours", ' || !isEntryOf(only, seed.object)', ''],
  ['a seed with company that is taken for a new cluster', '!only || others.length > 0 ||', '!only ||'],
  ['a cluster that forms without its id being recorded', '    latch: { clusterID: o.etcd.clusterID },\n', ''],
  ['a seed that never votes', 'fields: { status: { isVoter: true } }', 'fields: { status: { isVoter: false } }'],
  [
    'a running seed that is deleted although it answers',
    " || o.etcd.is === 'answers') return undefined;\n  if (unapplied",
    ') return undefined;\n  if (unapplied',
  ],
  ['a seed that is made again while the earlier one is going', '!isStaying(seed) || o.etcd.is ===', 'o.etcd.is ==='],
  ['a slow seed that is killed in its first seconds', 'firstMs: 60_000, maxMs: 15 * 60_000', 'firstMs: 0, maxMs: 0'],
  [
    'a seed that dies in its first start and is waited for for ever',
    'return rebuildDeadSeed(o, seed);',
    'return undefined;',
  ],
  [
    'a seed that is made again and again without a pause',
    'DEAD_AFTER.firstMs * 2 ** repairsOf(o)',
    'DEAD_AFTER.firstMs',
  ],
]);

const budget = faults('src/cluster/rules/budget.ts', [
  [
    'drains that take what a growing cluster is to have',
    'quorumOf(Math.max(voters(o), desired(o)))',
    'quorumOf(voters(o))',
  ],
  [
    'drains that take the quorum of a shrinking cluster',
    'quorumOf(Math.max(voters(o), desired(o)))',
    'quorumOf(desired(o))',
  ],
  ['a budget that counts parked members', '=== true && !isDormant(m)', '=== true'],
]);

const grow = faults('src/cluster/rules/grow.ts', [
  ['one that is lost and waits for one that is half made', '!listed && (isFull(o)', 'o.now < 0 && (isFull(o)'],
  [
    'a name that is used again after a crash between etcd and the record',
    'Math.max(o.cluster.status?.membersNamed ?? 0, ...(entriesOf(o) ?? []).map((e) => numberOf(o, nameIn(e)) ?? 0))',
    'o.cluster.status?.membersNamed ?? 0',
  ],
  [
    'the name of the member before it',
    'memberName(cluster, uid, lastNumber(o) + 1)',
    'memberName(cluster, uid, lastNumber(o))',
  ],
  ['a counter that is not recorded with the member', '    latch: { membersNamed: lastNumber(o) },\n', ''],
  ['a second object for a learner that has started', "entry.isLearner && entry.name === '' &&", 'entry.isLearner &&'],
  ['a member for an address that is not ours', ' && numberOf(o, nameIn(entry)) !== undefined', ''],
  ['more members than are wanted', 'entries.length >= mostMembers(o)', 'entries.length > mostMembers(o)'],
  ['a learner beyond what etcd takes', ' || isFull(o) || joining(o).length > 0', ' || joining(o).length > 0'],
  ['a learner that is added while another one looks for it in DNS', ' || joining(o).length > 0) return', ') return'],
  [
    'growth while a member is on its way out',
    '  if (o.members.some(isLeaving) && !needsHeir(o)) return undefined;\n',
    '',
  ],
  [
    'members that were all deleted, and that nobody takes over from',
    'needsHeir(o) ? votersOf(o).length + 1 : desired(o)',
    'desired(o)',
  ],
  [
    'a newcomer too many when the only voter is to go',
    'votersOf(o).length > 0 && votersOf(o).every(',
    'votersOf(o).some(',
  ],
  [
    'a member of 3.5 that joins too early, and ends',
    "if (o.etcd.is === 'answers' && o.etcd.unversioned === true)",
    'if (o.now < 0)',
  ],
  ['growth while a voter is down', '  if (healthyVoters(o).length < votersOf(o).length) return undefined;\n', ''],
  [
    'a refused addition that keeps learners from being promoted',
    'if (o.refusal !== undefined && learnersOf(o).length > 0)',
    'if (o.refusal === "never")',
  ],
  ['a promotion that makes the next member wait', ' || (more && joining(o).some((m) => !isStuck(o, m)))', ''],
  [
    'a member without a node that holds up all others',
    'joining(o).some((m) => !isStuck(o, m))',
    'joining(o).length > 0',
  ],
  ['a learner that is promoted on its way out', 'm && isStaying(m) && (m.self', 'm && (m.self'],
  ['the learner with the least data that is promoted first', 'b.applied - a.applied', 'a.applied - b.applied'],
  ['a learner that is promoted before it answers', 'isStaying(m) && (m.self || takesPart(o, m)) ?', 'isStaying(m) ?'],
  ['a learner that takes part and is waited for until it answers', '(m.self || takesPart(o, m)) ?', 'm.self ?'],
  ['a member that is not added until the one before it answers', ' && !takesPart(o, m) && entryOf', ' && entryOf'],
  ['a member that starts with an outdated list', ' && m.object.spec.initialCluster !== joinList(entries)', ' && false'],
  [
    'a started member whose Pod is made again for its list',
    "entryOf(o, m)?.name === '' && m.object.spec",
    'm.object.spec',
  ],
  [
    'a member that has started and is made anew for an edit',
    "!entry || entry.name !== '' || isUpdated",
    '!entry || isUpdated',
  ],
  ['a joining member that is made anew for nothing', ' || isUpdated(m, wanted(o)) ||', ' ||'],
  ['a half-made member of the earlier operator that is never added', '  if (!listed)\n', '  if (false)\n'],
  [
    'etcd with room for one learner that is given two',
    "pod?.is === 'present' ? pod.maxLearners : 1",
    'pod?.is === "present" ? 8 : 8',
  ],
]);

const shrink = faults('src/cluster/rules/shrink.ts', [
  ['one that is half made and taken for one that etcd has forgotten', ' && !isPending(m)', ''],
  [
    'a member that is taken out although the gate is closed',
    '  if (mayNotGo(o, entry) !== undefined) return undefined;\n',
    '',
  ],
  ['a leader that goes without handing over', 'if (leaderOf(o) === entry.id && heir &&', 'if (false && heir &&'],
  ['a leader that is to go, cannot be asked to hand over, and stays for ever', ' && memberOf(o, entry)?.self)', ')'],
  ['a leader that hands over to itself', 'healthyVoters(o).find(({ id }) => id !== entry.id)', 'healthyVoters(o)[0]'],
  ['a member that stays and is taken out of etcd', 'isStaying(m) ? undefined : entryOf(o, m)', 'entryOf(o, m)'],
  [
    'an awaited member that is taken out before it was made',
    '    if (isAwaited(o, entry) && entries.length <= mostMembers(o)) continue;\n',
    '',
  ],
  [
    'an awaited member that nobody wants any more',
    'isAwaited(o, entry) && entries.length <= mostMembers(o)',
    'isAwaited(o, entry)',
  ],
  ["a voter of somebody else's that is removed", '!entry.peerURLs.some((url) => url.includes(domain))', 'false'],
  [
    'a learner at a strange address that stays for ever',
    'if (!entry.isLearner && !entry.peerURLs',
    'if (!entry.peerURLs',
  ],
  [
    'members that are deleted, because an emptied one does not list them',
    ' || left.length < quorumOf(voted.length)',
    '',
  ],
  [
    'half of the voters that are enough to forget one',
    'left.length < quorumOf(voted.length)',
    'left.length < quorumOf(voted.length) - 1',
  ],
  ['a member that answers and is forgotten', 'gone.self !== undefined || ', ''],
  ['a learner that was taken off the list and is kept for ever', 'if (hasJoined(gone) && (answers', 'if ((answers'],
  ['a voter that answers under a new id and is deleted', ' || gone.answersAs !== undefined', ''],
  ['a voter that answers under a new id and is removed', 'answersAs === entry.id', 'answersAs === ""'],
  ['a healthy member that goes before one that is down', '    isHealthy(o, m) ? 1 : 0,\n', ''],
  ['a voter that goes before a learner', '    entryOf(o, m)?.isLearner === false ? 1 : 0,\n', ''],
  ['a leader that goes although others could', '    entryOf(o, m)?.id === leader ? 1 : 0,\n', ''],
  ['the oldest member that goes first', '-createdAt(m)', 'createdAt(m)'],
  ['a cluster that shrinks below what is wanted', 'staying.length <= desired(o)', 'staying.length < desired(o)'],
  [
    'members on their way out that count as too many',
    'const staying = o.members.filter(isStaying);',
    'const staying = o.members;',
  ],
  ['a deletion that is decided although the gate is closed', 'return closed === undefined\n', 'return closed !== ""\n'],
]);

const others: readonly Mutant[] = [
  ...faults('src/cluster/rules/lifecycle.ts', [
    [
      'objects that are made for a cluster that is being deleted',
      'o.cluster.metadata.deletionTimestamp === undefined\n',
      'o.cluster.metadata.name !== ""\n',
    ],
    [
      "a running cluster that stops for somebody else's Service",
      'isFormed(o) || conflicts(o).length === 0',
      'conflicts(o).length === 0',
    ],
    [
      'a running cluster that stops, because an edit asks for what is not built',
      'return isFormed(o) || why === undefined',
      'return why === undefined',
    ],
    [
      'an edit that is taken up although it asks for what is not built',
      ' || blocked(o) !== undefined || sameJson',
      ' || sameJson',
    ],
    [
      'volumes that are deleted, because members never heard that they are kept',
      'm.object.spec.deletionPolicy !== policy',
      'false',
    ],
  ]),
  ...faults('src/cluster/rules/park.ts', [
    [
      'a cluster that is begun only to be parked',
      'if (isFormed(o) || desired(o) > 0) return undefined;',
      'return undefined;',
    ],
    ['members that are deleted instead of parked', 'if (isFormed(o) || desired(o) > 0)', 'if (desired(o) > 0)'],
    ['a running cluster that is parked', 'if (!isFormed(o) || desired(o) > 0)', 'if (!isFormed(o))'],
    [
      'a quorum that sleeps, because one on its way out is not woken',
      'o.members.filter(isDormant)',
      'o.members.filter((m) => isStaying(m) && isDormant(m))',
    ],
    [
      'a parked cluster whose waiting members are changed in every pass',
      'o.members.filter((m) => !isDormant(m))',
      'o.members',
    ],
    [
      'a Pod that runs on, because its member is to go from a parked cluster',
      'o.members.filter((m) => !isDormant(m))',
      'o.members.filter((m) => isStaying(m) && !isDormant(m))',
    ],
    [
      'a quorum that sleeps, because only some are woken',
      'steps: asleep.map((m) => turn(m, false))',
      'steps: asleep.slice(0, 1).map((m) => turn(m, false))',
    ],
  ]),
  ...faults('src/cluster/rules/running.ts', [
    ['changes on the word of another cluster', 'o.etcd.clusterID === ours', 'o.etcd.clusterID !== ours'],
    [
      'a voter that is forgotten to have voted, so that an emptied list is believed',
      '(!entry && isStaying(m)) || ',
      '',
    ],
    ['learners that clients are sent to', 'entry?.isLearner === false;', 'entry !== undefined;'],
    ['volumes that are deleted before their week is over', 'leftMs(o, c) <= 0', 'true'],
    [
      'a volume of yesterday that is deleted, because its claim is old',
      'claim.metadata.annotations?.[QUARANTINED_AT_ANNOTATION] ?? claim',
      'claim',
    ],
    [
      'a volume that is deleted although somebody has taken it up',
      "seen('PersistentVolumeClaim', c, 'this version')",
      "seen('PersistentVolumeClaim', c)",
    ],
    [
      'a cluster that is told to be steady while a member is sick',
      "isReadyVoter(m) && (o.etcd.is !== 'answers' || isHealthy(o, m))",
      'true',
    ],
  ]),
];

export const clusterRules: readonly Mutant[] = [...bootstrap, ...budget, ...grow, ...shrink, ...others];
