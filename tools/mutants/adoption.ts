/** Faults in who counts as a member, and in what counts as the loss of all. */
import { dropped, faults, type Mutant, moved } from './mutant.ts';

const order = faults('src/cluster/decide.ts', [
  ['members that stay without an owner', ...dropped('adoptMembers')],
  ['a member that is adopted by a cluster that is being deleted', ...moved('adoptMembers', 'beingDeleted')],
  ['a second, empty cluster in place of a lost one', ...dropped('allMembersLost')],
  ['volumes with damaged data that are deleted with their members', ...dropped('noReadableData')],
]);

const adopting = faults('src/cluster/rules/lifecycle.ts', [
  [
    'a member that is being deleted and is adopted',
    'isStaying(m) && controllerOf(m.object) === undefined',
    'controllerOf(m.object) === undefined',
  ],
  [
    'a member that another controller adopted first',
    "object, 'this version'), fields: { metadata",
    'object), fields: { metadata',
  ],
  ['references of others that are removed', '[...others, ...references]', 'references'],
  ['two references to one cluster', '.filter(({ uid }) => uid !== o.cluster.metadata.uid)', ''],
]);

const belonging = faults('src/api/ownership.ts', [
  ['a member that another cluster controls', 'if (owner) return owner.uid === cluster.uid;', 'if (owner) return true;'],
  ['a healthy cluster that counts as lost after a migration', 'if (owner) return owner.uid', 'return owner?.uid'],
  ['a member without the label of the cluster', 'metadata.labels?.[CLUSTER_LABEL] === name && ', ''],
  ['a member that names another cluster', ' && spec.clusterName === name', ''],
  ['a member of another namespace', 'metadata.namespace === namespace && ', ''],
  ['a member of a deleted cluster of the same name', ' && spec.clusterToken === token', ''],
  ['a member whose token is not the recorded one', 'status?.clusterToken ?? clusterToken', 'clusterToken'],
]);

const seeing = [
  ...faults('src/cluster/observe-members.ts', [
    ["members of somebody else's", '.filter((m) => isMemberOf(m, cluster))', ''],
  ]),
  ...faults('src/cluster/observe.ts', [
    ['a member that is adopted by a cluster that does not exist, and is garbage collected', '    unowned ||\n', ''],
    ['the same, before anything is recorded for the cluster', 'if (!cached.status && !unowned)', 'if (!cached.status)'],
    [
      'a seed without an owner that keeps its cluster from forming',
      'seed && isMemberOf(seed, cluster) ?',
      "seed?.kind !== 'EtcdMember' && seed ?",
    ],
    ['volumes that a person could still save and does not hear of', 'members.length === 0 &&', 'members.length < 0 &&'],
  ]),
  ...faults('src/cluster/observe-unheard.ts', [
    ['a voter that is removed as a stranger, because the cache is late', 'isStrange || heard.every', 'heard.every'],
    ['a loss that is concluded from a late cache', ' || heard.every(hasNoReadableData)', ''],
    ['the members of another cluster', 'isMemberOf(m, cluster) && ', ''],
    ['a member that counts twice', " && !names.includes(m.metadata.name ?? '')", ''],
  ]),
  ...faults('src/member/observe.ts', [
    [
      'a member without an owner that is released and not removed from etcd',
      'if (owner && owner.kind !== etcdClusters.kind)',
      'if (owner?.kind !== etcdClusters.kind)',
    ],
  ]),
];

const losing = [
  ...faults('src/cluster/observed.ts', [
    ['a member that serves and counts as lost', 'm.self === undefined && NO_READABLE', 'NO_READABLE'],
    [
      'a damaged volume that counts as lost',
      "hasNoReadableData(m) && NO_DATA.includes(evidence(m)?.reason ?? '')",
      'hasNoReadableData(m)',
    ],
  ]),
  ...faults('src/cluster/rules/loss.ts', [
    [
      'a cluster that is given up while one member has its data',
      '!o.members.every(hasNoReadableData)',
      '!o.members.some(hasNoReadableData)',
    ],
    [
      'a cluster without members that is bootstrapped again',
      'if (!isFormed(o) || !o.members',
      'if (!isFormed(o) || o.members.length === 0 || !o.members',
    ],
    ['a new cluster that is told to be lost', 'if (!isFormed(o) || !o.members', 'if (!o.members'],
    [
      'the advice to delete a cluster whose data can still be saved',
      'return o.members.every(hasNoData) ?',
      'return o.members.some(hasNoData) ?',
    ],
    ['a person who deletes the volumes that are left', 'left.length === 0', 'left.length >= 0'],
  ]),
];

export const adoption: readonly Mutant[] = [...order, ...adopting, ...belonging, ...seeing, ...losing];
