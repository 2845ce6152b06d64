/** Faults in how a cluster begins with a snapshot. */
import { faults, type Mutant } from './mutant.ts';

const cluster = faults('src/cluster/restore.ts', [
  [
    'a failure that is forgotten while it is tried again',
    'state?.terminated ?? lastState?.terminated',
    'state?.terminated',
  ],
  ['an old failure of a restore that has succeeded', '({ state }) => state?.terminated?.exitCode !== 0', '() => true'],
  ['words of a stranger as a reason', 'if (result && !result.ok) return', 'if (result) return'],
  [
    'a cluster that waits for ever for an agent without an image',
    ' && !isFormed(o) && o.images.operator === undefined ?',
    ' && isFormed(o) && o.images.operator === undefined ?',
  ],
  [
    'a restored cluster that is held back by an image that it needs no more',
    ' && !isFormed(o) && o.images',
    ' && o.images',
  ],
  [
    'a snapshot that counts as restored before etcd has answered',
    '  if (formed) return say',
    '  if (!formed) return say',
  ],
  ['a failure that nobody is told of', "if (view?.is === 'failed') return say", "if (view?.is === 'done') return say"],
]);

const beginning = [
  ...faults('src/cluster/build.ts', [
    ['a seed that begins with nothing instead of a snapshot', '...(restore && { restore })', ''],
  ]),
  ...faults('src/cluster/rules/bootstrap.ts', [
    [
      'a restored seed that is killed while it reads its data, and has to fetch it again',
      'reads ? DEAD_AFTER.maxMs : ',
      '',
    ],
    ['a snapshot on a lost node that is waited for as if it were read', ' && !hasNothing', ''],
    [
      'a seed on a lost node that nobody looks at again',
      '...(wakeAfter !== undefined && { wakeAfter })',
      '...(wakeAfter === undefined && { wakeAfter })',
    ],
    [
      'a failed restore that looks like a slow etcd',
      '  if (restoring !== undefined) return',
      '  if (restoring === undefined) return',
    ],
  ]),
  ...faults('src/cluster/asked.ts', [
    [
      'a cluster that is begun without an image to restore it with',
      '(forbiddenImage(o) ?? restoreImpossible(o))',
      'forbiddenImage(o)',
    ],
  ]),
];

const member = [
  ...faults('src/member/restore.ts', [
    [
      'a source that the agent could write to',
      'mountPath: MOUNTS.source, readOnly: true',
      'mountPath: MOUNTS.source, readOnly: false',
    ],
    ['revisions that come twice, because nobody said by how much to raise them', '?? DEFAULT_BUMP', '?? 0'],
    ['an encrypted snapshot whose key the agent does not look for', 'restore.encryption !== undefined', 'false'],
    [
      'an agent without the identity that its cloud knows',
      '...(identity !== undefined && { serviceAccountName: identity })',
      '',
    ],
  ]),
  ...faults('src/member/build.ts', [
    ['a restore over the data of a member that has joined', "    options.beginning === 'cluster' &&\n", ''],
  ]),
  ...faults('src/member/rules/running.ts', [
    ['a seed without its snapshot, where there is no image for agents', ' ?? cannotRestore(o)', ''],
    [
      'a database that asks for log-ins, refused although the cluster has them',
      'auth: o.cluster !== undefined && wantsAuth(o.cluster.spec)',
      'auth: false',
    ],
  ]),
  ...faults('src/member/build.ts', [
    [
      'an empty cluster in place of the one of a snapshot',
      "beginning === 'cluster' && member.spec.restore === undefined",
      "beginning === 'cluster'",
    ],
  ]),
  ...faults('src/member/restore.ts', [
    ['a member that serves and is restored again, because its node was', '    env: [begins],\n', ''],
  ]),
  ...faults('src/member/observed.ts', [
    [
      'a restored member that gets no Pod any more, where there is no image for agents',
      'restore !== undefined && !hasJoined(o) &&',
      'restore !== undefined &&',
    ],
  ]),
];

const agent = faults('src/agent/readable.ts', [
  [
    'data that 3.6 cannot read and is given',
    "ordinal('3.5') ? ordinal('3.6') : ordinal(version)",
    "ordinal('3.5') ? ordinal('3.6') : ordinal('9.0')",
  ],
  ['data that 3.5 serves and is stuck with', "? ordinal('3.6') :", "? ordinal('3.7') :"],
]);

export const restore: readonly Mutant[] = [...cluster, ...beginning, ...member, ...agent];
