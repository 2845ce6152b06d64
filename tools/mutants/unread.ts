/** Faults in what is done while the API server cannot give out a Secret, a Service, a PodDisruptionBudget or a Certificate. */
import { faults, type Mutant } from './mutant.ts';

const reads = [
  ...faults('src/kube/try-get.ts', [
    ['a Secret in a condition', 'code === 0 ? `no answer (${reason})` : ', ''],
    ['a message that fills the status', 'said.slice(0, MAX_MESSAGE)', 'said'],
    [
      'a reconcile that waits for 15 s',
      'await client.get(resource, ref, limit.signal)',
      'await client.get(resource, ref)',
    ],
    ['a timeout that is reported as something else', 'limit.passed ?', 'signal?.aborted ?'],
  ]),
  ...faults('src/credentials/read-secrets.ts', [
    [
      'an unread bundle that counts as missing',
      "if ('unread' in others) return others;",
      "if ('unread' in others) return { secrets: first, judged, pieces };",
    ],
  ]),
  ...faults('src/credentials/credentials.ts', [
    ['a failure that nobody hears of', 'return unread ? { ...view, unread } : view;', 'return view;'],
    ['reads at full speed while they fail', 'now < (failing?.unread.retryAt ?? 0)', 'now < 0'],
    ['a pause that an edit does not end', ' && failing?.generation === generation', ''],
    ['a pause that a predecessor began', 'failing?.uid === uid && ', ''],
    ['reads every second for hours', '2 ** Math.min(failures - 1, 30)', '1'],
    ['a pause of hours', 'Math.min(RETRY.maxMs, RETRY.firstMs', 'Math.max(RETRY.firstMs, RETRY.firstMs'],
    ['a failure that is told as over before a read succeeds', 'same && !failing && now', 'same && now'],
    ['a pause that is as long as the last one after a success', '    this.#failing.delete(key);\n', ''],
    ['the keys of a predecessor', 'known?.uid === uid ? {', 'known ? {'],
    ['members that are out of reach after a write', '{ ...known, until: 0 }', '{ ...known, until: 0, uid: undefined }'],
    [
      'a root password that cannot be read, and is not said',
      '.some((name) => names.includes(name))',
      '.some(() => false)',
    ],
  ]),
  ...faults('src/cluster/observe-objects.ts', [
    [
      "a Service of somebody else's that is made again in every pass",
      'cached ? holding(cached, uid) : lookUp(ports, services, ref, uid, signal)',
      'holding(cached, uid)',
    ],
    [
      "a budget of somebody else's that is made again in every pass",
      'look ? lookUp(ports, podDisruptionBudgets, ref, uid, signal) : holding(cached, uid)',
      'holding(cached, uid)',
    ],
    ['a Service that is made because it cannot be read', "{ is: 'unknown', why: read.why }", "{ is: 'absent' }"],
  ]),
  ...faults('src/snapshot/observe.ts', [
    [
      'a Secret that counts as missing because it cannot be read',
      ': unreadable(need, read.why)',
      ': lackOf(need, undefined)',
    ],
  ]),
];

const unreadGuard = 'if (unreadSecrets(o) !== undefined) return undefined;';
const rules = [
  ...faults('src/cluster/rules/certificates.ts', [
    ['a CA that is made a second time because the first cannot be read', `  ${unreadGuard}\n`, ''],
  ]),
  ...faults('src/cluster/rules/issuance.ts', [
    ['a Secret of another owner that cert-manager writes over', ' || unreadSecrets(o) !== undefined', ''],
  ]),
  ...faults('src/cluster/rules/rotation.ts', [
    ['a CA bundle that is recorded from an earlier read', `${unreadGuard} // the CA may`, '// the CA may'],
    ['a member that is restarted and finds no Secret', `${unreadGuard} // whether`, '// whether'],
    [
      'a CA bundle of a seed that is recorded from an earlier read',
      `${unreadGuard}\n  const { trust }`,
      'const { trust }',
    ],
    ['a CA bundle that is deleted on an earlier read', `${unreadGuard}\n  const used`, 'const used'],
  ]),
  ...faults('src/cluster/rules/auth.ts', [
    ['auth that is enabled with a password of an earlier read', `${unreadGuard} // the password`, '// the password'],
    ['a password that is changed to one of an earlier read', `${unreadGuard}\n  if (o.etcd.is`, 'if (o.etcd.is'],
  ]),
  ...faults('src/cluster/rules/bootstrap.ts', [
    [
      'a cluster that is begun on Secrets that nobody has read',
      '[unreadSecrets(o) ?? [], unreadObjects(o)]',
      '[unreadObjects(o)]',
    ],
    [
      'a cluster that is begun beside a Service of another owner',
      '[unreadSecrets(o) ?? [], unreadObjects(o)]',
      '[unreadSecrets(o) ?? []]',
    ],
    ['a seed that is made again because its certificates cannot be read', `${unreadGuard} // a seed`, '// a seed'],
  ]),
];

const said = [
  ...faults('src/cluster/certificates.ts', [
    [
      'a Service that is read again after five minutes',
      'unreadObjects(o).length > 0 ? READ_AGAIN_MS : undefined',
      'undefined',
    ],
    [
      'certificates that count as good although nobody has read them',
      'if (unread !== undefined) return [{ type,',
      'if (unread === "") return [{ type,',
    ],
    ['a cluster that is polled while nothing is read', 'if (unread) return Math.max(0, unread.retryAt - o.now);', ''],
    ['a cluster that is never looked at again', 'Math.max(0, unread.retryAt - o.now)', 'Number.POSITIVE_INFINITY'],
    [
      'a bootstrap that does not wait for its Secrets',
      '(unreadSecrets(o) ?? toldOf(graveOf(o)))',
      'toldOf(graveOf(o))',
    ],
  ]),
  ...faults('src/cluster/auth.ts', [
    [
      'a password that counts as rejected although nobody has read it',
      'blind || (login !== undefined && o.certificates.unread?.password === true)',
      'blind',
    ],
    ['members that count as sick because a Secret cannot be read', '(blind || (login', '(o.now < 0 || (login'],
    [
      'a cluster that is polled for a password that is not read',
      '!o.certificates.unread && (isPasswordUnsettled',
      '(isPasswordUnsettled',
    ],
    ['auth that is told as before although nobody knows', "on === undefined && unread ? 'Unknown' : ", ''],
    ['an open cluster that counts as done', '(!password && !unread)', '!password'],
    [
      'a password change that is told and does not happen',
      '!password || unread || password.kept',
      '!password || password.kept',
    ],
    [
      'a password that is told as good although nobody has read it',
      'lockedOut(o) ?? unread ?? unsecured(o)',
      'lockedOut(o) ?? unsecured(o)',
    ],
  ]),
  ...faults('src/cluster/status.ts', [
    [
      'a cluster that counts as reconciled although nobody knows',
      '  if (s.unread) return no(s.unread.reason, s.unread.message);\n',
      '',
    ],
    [
      'a new cluster whose certificates count as bad',
      '  if (unreadSecrets(o) !== undefined) return { reason: SECRET_UNREADABLE, message: certificates };\n',
      '',
    ],
  ]),
  ...faults('src/cluster/issuance.ts', [
    [
      'a cluster that is begun without the Certificate that cannot be read',
      "if (holding.is === 'unknown' && !isFormed(o))",
      'if (o.now < 0)',
    ],
    [
      'a running cluster whose Certificate counts as pending',
      "holding.is === 'unknown' && !isFormed(o)",
      "holding.is === 'unknown'",
    ],
  ]),
];

export const unread: readonly Mutant[] = [...reads, ...rules, ...said];
