/** Faults in the cluster controller around its rules: the order, what is asked and what is said. */
import { dropped, faults, type Mutant, moved } from './mutant.ts';

const order = faults('src/cluster/decide.ts', [
  ['objects that are made for a cluster that goes', ...dropped('beingDeleted')],
  ['less than what was asked for', ...dropped('heldBack')],
  ["somebody else's objects that are built upon", ...dropped('nameTaken')],
  ['labels that were taken back and stay', ...moved('adoptTarget', 'relabel')],
  ['members that are made from an outdated target', ...moved('bootstrap', 'adoptTarget')],
  ['Services that are made beside a loss that a person has to look at', ...moved('repairServices', 'allMembersLost')],
  ['a cluster that is begun although nothing is to run', ...moved('bootstrap', 'neverBegun')],
  ['members without names in DNS while they start', ...moved('waitForSeed', 'repairServices')],
  ['votes that are recorded on the word of another cluster', ...dropped('anotherCluster')],
  ['a quorum without protection', ...dropped('repairBudget')],
  ['a Service that was refused once and is never made', ...dropped('correctServices')],
  ['a quorum without protection, because that was refused once', ...dropped('correctBudget')],
  ['members that are taken out of a cluster that is to be parked', ...moved('shrink', 'park')],
  ['growth while members sleep', ...moved('addLearner', 'wake')],
  ['a cluster that cannot write, and waits for its members', ...dropped('clearAlarm')],
  ['a second removal before the first is finished', ...moved('shrink', 'removeLeaving')],
  ['a member that leaves and stays in etcd', ...dropped('removeLeaving')],
  ['a member that etcd does not know any more, and that stays', ...dropped('forget')],
  ['a vote that nobody has, and that counts', ...dropped('removeStranger')],
  ['growth while a lost member waits for its place', ...moved('addLearner', 'replaceLost')],
  ['a learner that is promoted only to be taken out', ...moved('promote', 'shrink')],
  ['a member from an outdated spec', ...dropped('rebuildJoining')],
  ['a member that starts with an outdated list', ...moved('startNext', 'refreshJoinList')],
  ['a promotion before the next is added, and five seconds of refusals', ...moved('promote', 'addLearner')],
  ['volumes of members that went, kept for ever', ...dropped('expireVolumes')],
]);

const facts = faults('src/cluster/observed.ts', [
  ['a lost member that waits for a policy', '&& o.refusal?.startsWith(SERVER_REFUSES) === true', '&& o.now < 0'],
  ['a Service that waits for etcd', 'o.refusal?.startsWith(SERVER_REFUSES) === true', 'o.refusal !== undefined'],
  [
    'a list that is believed although another cluster says it',
    ' && o.etcd.clusterID === o.cluster.status?.clusterID ?',
    ' ?',
  ],
  ['a member that is taken for another of the same name', '  if (id !== undefined) return entry.id === id;\n', ''],
  [
    'a member that never started and is not found on the list',
    'entry.name === member.metadata.name || entry.peerURLs.includes(addedPeerURL(member))',
    'entry.name === name',
  ],
  [
    'a member on its way out that counts as ready',
    'm.object.status?.isVoter === true && isStaying(m)',
    'm.object.status?.isVoter === true',
  ],
  ['a learner that died and is promoted, because it once took part', ' && m.pod.restarted !== true;', ';'],
  ['a member that takes part without a process', 'm.pod.runningSince !== undefined && ', ''],
  ['a member that takes part before it has told its name', "(entryOf(o, m)?.name ?? '') !== ''", 'true'],
  ['a member that is told to be ready without a Pod', " && m.pod.is === 'present' && m.pod.ready", ''],
  [
    'a member that any trouble is evidence against',
    'ready && known.includes(ready.reason) ?',
    "ready?.status === 'False' ?",
  ],
  [
    'an EtcdMember of somebody else that is used as the seed',
    "...(isFormed(o) ? [] : held('EtcdMember', seedName(o.cluster), o.seed)),",
    '',
  ],
]);

const asking = faults('src/cluster/observe.ts', [
  [
    'a cluster that is gone and is made again, because the cache is late',
    '  if (!suspicious) return cached;\n',
    '  return cached;\n',
  ],
  ['a question in every pass of a parked cluster', ' && cluster.status.observed?.replicas !== 0', ''],
  [
    'a cluster of the same name that is taken for the one that is gone',
    'return fresh?.metadata.uid === uid ? fresh : undefined;',
    'return fresh;',
  ],
  ["a list without the quorum's word", 'linearizable: true', 'linearizable: false'],
  ['a member of another cluster that is believed about itself', ' || hexId(answer.value.clusterId) !== ours', ''],
  [
    'a member that is down and counts as healthy, because another has its address',
    'recorded !== undefined && recorded !== id',
    'recorded === ""',
  ],
  ['one silent member that makes all of them silent', '      continue;\n', '      return view;\n'],
  [
    'a member without a leader that follows member 0',
    's.leader === 0n ? undefined : hexId(s.leader)',
    'hexId(s.leader)',
  ],
  ['an alarm of another that is held against a member', '(id === hexId(s.memberId) ? [alarm] : [])', '[alarm]'],
  [
    'hashes of different revisions that are compared',
    's.revision < least ? s.revision : least',
    's.revision > least ? s.revision : least',
  ],
  ['a cluster without a version that is taken for one with', "answer.error.kind === 'busy'", 'false'],
  ['volumes that are deleted a week after their cluster', "=== 'member-removed' && ", ' !== undefined && '],
  ['a volume that somebody uses again, and that is deleted', ' && controllerOf(claim) === undefined', ''],
]);

const acting = [
  ...faults('src/cluster/changes.ts', [
    [
      'a follower that is asked to hand over',
      'Number(b.id === leader) - Number(a.id === leader)',
      'Number(a.id === leader) - Number(b.id === leader)',
    ],
    [
      'a hand-over that is asked of a follower, because something is wrong with the leader',
      'leading(o) : speakers(o)',
      'speakers(o).slice(0, 1) : speakers(o)',
    ],
    [
      'a change at a cluster that was not the one that was asked',
      "clusterID: o.cluster.status?.clusterID ?? ''",
      "clusterID: '0'",
    ],
  ]),
  ...faults('src/lib/endpoint.ts', [['an IPv6 address that nobody can reach', "ip.includes(':') ?", 'ip === "" ?']]),
  ...faults('src/cluster/call.ts', [
    ['a voter that is empty and counts', '{ learner: true }', '{ learner: false }'],
    ['a change that is made twice', 'repeatable: false', 'repeatable: true'],
    ["a change at somebody else's etcd", ', clusterId: idOf(call.clusterID) }', ' }'],
    ['a lost answer to an addition that stops everything', "['peerURLExists', ", '['],
    ['an addition that is repeated within a second, and stops everything', ", 'alreadyExists']", ']'],
    ['a member that is gone already, and is removed for ever', "['notFound']", '[]'],
    ['a member that votes already, and is promoted for ever', "['notLearner']", '[]'],
    ['a refusal that is taken for success', 'if (answer.ok || DONE', 'if (!answer.ok || DONE'],
    ['an alarm about space that goes instead', "alarm: 'corrupt' }", "alarm: 'noSpace' }"],
  ]),
  ...faults('src/cluster/build.ts', [
    ['drains that take everybody once the quorum is lost', "'IfHealthyBudget'", "'AlwaysAllow'"],
    [
      'clients that are sent to learners',
      '    selector: { [CLUSTER_LABEL]: name, [ROLE_LABEL]: ROLE_VOTER },\n    ports',
      '    selector: { [CLUSTER_LABEL]: name },\n    ports',
    ],
    [
      'members that do not find each other while they start',
      '    publishNotReadyAddresses: true,\n    selector',
      '    selector',
    ],
    ['a member that is gone before etcd knows', '      finalizers: [MEMBER_FINALIZER],\n', ''],
    [
      'a second seed',
      '): EtcdMember => member(cluster, name, target, cluster.status?.clusterToken',
      "): EtcdMember => seedMember(cluster, name, target, cluster.status?.clusterToken ?? '') ?? member(cluster, name, target, cluster.status?.clusterToken",
    ],
    ['a list in another order in every pass', '    .sort()\n', '    .reverse()\n'],
  ]),
];

const telling = [
  ...faults('src/cluster/status.ts', [
    ['a cluster that cannot write, and is said to be well', "alarm === 'NOSPACE' ? [id] : []", '[]'],
    [
      'a cluster that is told to be available without a quorum',
      's.reached && s.serving >= quorumOf(s.voters)',
      's.reached',
    ],
    ['a cluster that is told to be available while no client is let through', 's.reached && s.serving', 's.serving'],
    [
      'a loss before the cluster ever served that is told as a beginning',
      'if (s.beginning) return no',
      'if (!s.served) return no',
    ],
    ['a target that is told to be reached with a member too many', 'o.members.length === desired(o) &&\n', ''],
    ['a target that is told to be reached while a learner joins', '  voterCount(o) === desired(o) &&\n', ''],
    [
      'a target that is told to be reached although etcd counts a stranger',
      ' &&\n  (entriesOf(o)?.length ?? desired(o)) === desired(o);',
      ';',
    ],
    ['a deadline that nobody hears of', 'o.now >= Date.parse(deadline)', 'false'],
    [
      'a deleted member that never served and is told as a beginning',
      'isStaying(m) && evidence(m) === undefined)',
      'evidence(m) === undefined)',
    ],
    [
      'a lost quorum that is told as a beginning',
      "said?.status === 'True' || said?.reason === 'QuorumLost'",
      "said?.status === 'True'",
    ],
    ['a person who is not asked for help', "  if (s.exhausted) return yes('ReplacementsExhausted', s.why);\n", ''],
  ]),
  ...faults('src/cluster/members-status.ts', [
    ['a learner that is told to be a part of the quorum', '  entryOf(o, m)?.isLearner === false &&\n', ''],
    [
      'a member that is never ready and is told to be a part of the quorum',
      ' &&\n  (m.pod.ready || o.now - Math.max(m.pod.runningSince ?? 0, votesSince(o, m)) < PROBED_WITHIN_MS);',
      ';',
    ],
    [
      'a quorum that is told to be lost, because the object of a new voter does not say so yet',
      'm.pod.ready || o.now',
      'o.now',
    ],
    [
      'a quorum that is told to be lost, because a new voter took its time to catch up',
      'Math.max(m.pod.runningSince ?? 0, votesSince(o, m))',
      '(m.pod.runningSince ?? 0)',
    ],
    [
      'a quorum that is told to be lost, because a new voter was not probed yet',
      '[quorumOf(voters), servingVoters(o)]',
      '[quorumOf(voters), o.members.filter(isReadyVoter).length]',
    ],
    ['a leader of an old term that is told', 'b.term - a.term', 'a.term - b.term'],
    [
      'learners that are told to be a quorum',
      'entriesOf(o) ? votersOf(o).length',
      'entriesOf(o) ? (entriesOf(o) ?? []).length',
    ],
  ]),
];

export const cluster: readonly Mutant[] = [...order, ...facts, ...asking, ...acting, ...telling];
