/** Faults in the member controller. */
import { dropped, faults, type Mutant, moved } from './mutant.ts';

const order = faults('src/member/decide.ts', [
  ['a Pod for a member that goes', ...dropped('release')],
  ['a Pod for a member whose cluster goes', ...dropped('clusterGoing')],
  ["somebody else's volume that is used", ...dropped('nameTaken')],
  ['an empty data directory under the name of a member that had joined', ...dropped('stopOnDataLoss')],
  ['a volume that is made again, empty, before the loss is told', ...moved('makeVolumeAndPod', 'stopOnDataLoss')],
  ['a member that is gone before etcd knows', ...dropped('addFinalizer')],
  ['a Pod that could join nothing', ...dropped('waitForJoinList')],
  ['a volume that is to stay and goes with its owner', ...dropped('tieVolume')],
  ['a Pod for a member that sleeps', ...moved('makeVolumeAndPod', 'park')],
  ['a Pod in plain text for a member with TLS', ...dropped('cannotRun')],
  ['an ended Pod that is taken away and not made again', ...moved('removeEndedPod', 'cannotRun')],
  ['an ended Pod that stays for ever', ...dropped('removeEndedPod')],
  ['a Pod that is turned away for its list, again and again', ...dropped('remakeJoiningPod')],
  ['a voter that clients cannot reach', ...dropped('markPod')],
]);

const leaving = faults('src/member/rules/leaving.ts', [
  ['a volume that is deleted although it is to be kept', '  if (!retains(o) ||', '  if (retains(o) ||'],
  ['a volume that goes with its owner although it is to be kept', '    ownerReferences: null,\n', ''],
  [
    'the volume of a deleted cluster that goes after a week',
    "isClusterGoing(o) ? 'cluster-deleted' : 'member-removed'",
    "'member-removed'",
  ],
  [
    'a volume that goes, because nobody knows since when it is kept',
    '    annotations: { [QUARANTINED_AT_ANNOTATION]: new Date(o.now).toISOString() },\n',
    '',
  ],
  [
    'a kept volume without labels, which nobody sees and nobody waits for',
    '      ...memberLabels(o.member.spec.clusterName, names(o).name), // who has lost them is not seen, and kept for ever\n',
    '',
  ],
  [
    'a volume that goes before its member, whose cluster forms in this moment',
    "return [{ do: 'patch', to: what, fields: { metadata: { ownerReferences: ownedBy(o.member) } } }];",
    "return [{ do: 'delete', what }];",
  ],
  ['a volume that changed hands and is changed', "o.volume.object, 'this version')", 'o.volume.object)'],
  ['a volume that is kept after the member was let go', '    ...keepVolume(o),\n', ''],
  [
    'a finalizer that is taken off an object that has changed',
    "seen('EtcdMember', o.member, 'this version'),\n      fields",
    "seen('EtcdMember', o.member),\n      fields",
  ],
  ["somebody else's finalizer that is taken off", '.filter((f) => f !== MEMBER_FINALIZER)', '.filter(() => false)'],
  [
    'a quorum that is lost with the Pod of a member that goes',
    '      if (known && hasToBeSeenTo(o)) return undefined;\n',
    '',
  ],
  ['a Pod that runs on in a parked cluster, because its member is to go', '  if (isDormant(o)) return true;\n', ''],
  [
    'a Pod without its data for a member that goes',
    "hasJoined(o) && o.volume.is === 'ours' && lacksPod",
    'hasJoined(o) && lacksPod',
  ],
  [
    'the last copy of the data that goes with its member',
    'if (!isLastCopy(o)) return letGo',
    'if (o.now > 0) return letGo',
  ],
  ['a member without data that is kept for ever', ' && reason !== EVIDENCE.dataLost', ''],
  [
    'a seed that never served and is kept for ever',
    'return isClusterFormed(o) && hasJoined(o) && reason',
    'return reason',
  ],
  [
    'a volume of a seed that never joined, in the way of the next',
    '  if (!isClusterFormed(o) && o.cluster !== undefined)',
    '  if (!isClusterFormed(o) && o.cluster === undefined)',
  ],
  [
    'a volume with data that is deleted although it is to be kept',
    '  if (!isClusterFormed(o) && o.cluster !== undefined)',
    '  if (o.cluster !== undefined)',
  ],
  [
    'a member that is let go, because nobody could be asked',
    '      return {\n        why: `waiting for the other members',
    "      return letGo(o, '') ?? {\n        why: `waiting for the other members",
  ],
  [
    'a deleted cluster that waits for its own etcd',
    "  if (isClusterGoing(o)) return letGo(o, 'the cluster is deleted as a whole');\n",
    '',
  ],
]);

const facts = [
  ...faults('src/member/observed.ts', [
    [
      'a voter that is restarted, or loses its volume, because its id was never recorded',
      ': status?.isVoter === true)',
      ': false)',
    ],
    ['a seed that counts as joined before there is a cluster', '? isClusterFormed(o) :', '? true :'],
    ['a seed whose id was never recorded, and that begins anew', '? isClusterFormed(o) :', '? false :'],
    [
      'a member that is released as if its cluster lived',
      'o.cluster === undefined || o.cluster.metadata',
      'o.cluster?.metadata',
    ],
    ["somebody else's Pod that is used", "o.pod.is === 'foreign' ?", "o.pod.is === 'absent' ?"],
  ]),
  ...faults('src/member/observed.ts', [
    ['a member that is let go while etcd lists its id', 'm.id === status?.memberID || ', ''],
    ['a member that is let go while etcd lists its name', 'm.name === metadata.name || ', ''],
    ['a member that is let go before it started, while etcd lists its address', ' || m.peerURLs.includes(url)', ''],
  ]),
  ...faults('src/member/observe.ts', [
    [
      'a Pod or a volume that counts as gone, because the cache is late',
      'store.get(refKey(ref)) ?? (await ports.client.get(resource, ref, signal))',
      'store.get(refKey(ref))',
    ],
    [
      'a member with the id of another, because that one has its address',
      'if (other && member.status?.memberID === undefined)',
      'if (other && ports.now() < 0)',
    ],
    ['a mismatch of ids that is not reported', 'if (other && member.status?.memberID === undefined)', 'if (other)'],
    ['a second, empty cluster, because the cache has no id yet', ' || (idMatters && matters)', ''],
    [
      'a member that is let go on the word of one that was made the whole cluster',
      '    if (isListed(member, list)) break;\n',
      '    break;\n',
    ],
    [
      'the only copy of the data that goes, because the cache has no id yet',
      "held.is === 'absent' || going, signal",
      "held.is === 'absent', signal",
    ],
    [
      'a cluster of the same name that is taken for the owner',
      'return cluster && isMemberOf(member, cluster) ? cluster : undefined;',
      'return cluster;',
    ],
    ['a member that is let go on the word of one that lost the quorum', 'linearizable: true', 'linearizable: false'],
    ['a member that asks itself whether it is gone', 'm.metadata.uid !== member.metadata.uid && ', ''],
    [
      'a member that is let go on the word of another cluster',
      ' && cluster !== undefined && isMemberOf(m, cluster)',
      '',
    ],
    [
      'a member that is given up with the node of its first day',
      ' || claim.spec?.volumeName === undefined || (await isOnNode(ports, claim, name, signal));',
      ' || true;',
    ],
    [
      'a member that waits for ever for the node that its PVC was given to',
      'well || claim.spec?.volumeName === undefined || ',
      'well || ',
    ],
    ['a volume on any node that counts as lost with one', 'terms.length > 0 && terms.every', 'terms.every'],
    ['a volume on two nodes that counts as lost with one', ' && !isElsewhere(e)', ''],
    ['a volume in a zone that counts as lost with a node', ' && !SHARED.test(e.key)', ''],
    [
      'one silent peer that keeps a member for ever',
      '      continue;\n    }\n    const { clusterId',
      '      return { is: "silent", why };\n    }\n    const { clusterId',
    ],
    [
      'a member that is let go with its volume while etcd counts it, because the address of a peer is another cluster now',
      'ours !== undefined && hexId(clusterId) !== ours',
      'false',
    ],
  ]),
  ...faults('src/member/build.ts', [
    [
      'a seed that begins a cluster at every start',
      "etcdBegins(member, beginning) ? `$(${STATE_VARIABLE})` : 'existing'",
      "'new'",
    ],
    [
      'an emptied voter that is let in again and has forgotten what it agreed to',
      "beginning === 'member' ? `$(${LIST})` : listOfOne(member)",
      "beginning === 'member' ? `$(${LIST})` : member.spec.initialCluster",
    ],
    [
      'last words that nobody hears',
      "  terminationMessagePolicy: 'FallbackToLogsOnError', // etcd's last words say whether its data is of any use\n",
      '',
    ],
    [
      'members that are restarted, because others are gone',
      'livenessProbe: { tcpSocket: { port: PEER_PORT },',
      'livenessProbe: { httpGet: { path: "/health", port: METRICS_PORT },',
    ],
    ['flags of etcd from the names of Services', '      enableServiceLinks: false,', ''],
  ]),
  ...faults('src/member/status.ts', [
    [
      'an id of another cluster that is recorded',
      ' || o.etcd.clusterID !== o.cluster?.status?.clusterID) return {};',
      ') return {};',
    ],
    ['an id that changes', 'o.member.status?.memberID ?? o.etcd.memberID', 'o.etcd.memberID'],
    ['a Pod in memory that is recorded before its loss is told', '    provenLoss(o) === undefined && {', '    {'],
    [
      'a parked member in memory that is told to have lost its data',
      '...(isParked(o) ? unparked : before)',
      '...before',
    ],
    [
      'a stranger that is told to be ready',
      'facts.memberID !== undefined && facts.memberID !== o.etcd.memberID',
      'false',
    ],
    [
      'a Pod that is named long after it is gone',
      'if (before.podUID !== undefined && after.podUID === undefined)',
      'if (false)',
    ],
    [
      'an end of etcd that is recorded too late to be in a row with the next',
      'if (before.failedStarts?.finishedAt !== after.failedStarts?.finishedAt)',
      'if (false)',
    ],
    ['a vote that is told late', 'before.isVoter !== after.isVoter || ', ''],
  ]),
];

export const member: readonly Mutant[] = [...order, ...leaving, ...facts];
