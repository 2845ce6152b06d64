/** Faults in what is made of log-ins. */
import { faults, type Mutant } from './mutant.ts';

const rules = faults('src/cluster/rules/auth.ts', [
  ['a cluster that is begun without its password', 'return problem && { why: problem.message };', 'return undefined;'],
  [
    'others that join before the seed is guarded',
    'entriesOf(o)?.length === 1 ? enable(o)',
    'entriesOf(o)?.length === 0 ? enable(o)',
  ],
  ['log-ins that are never turned on', 'enable(o) ?? keepPassword(o)', 'keepPassword(o)'],
  ['a password that is never changed', 'enable(o) ?? keepPassword(o)', 'enable(o)'],
  ['log-ins that one who is down does not hear of', 'm !== undefined && isHealthy(o, m)', 'm !== undefined'],
  ['log-ins that are turned on again and again', "o.etcd.auth !== 'off' || !allHear(o)", '!allHear(o)'],
  ['log-ins without a password', "(o.password.problem && o.password.kept !== 'intended')", 'false'],
  [
    'what was begun is not finished without the Secret',
    "(o.password.problem && o.password.kept !== 'intended')",
    'o.password.problem',
  ],
  [
    'a password that etcd is told before it is kept',
    "      rootStep(o, 'intendPassword', keptSecret(o)),\n      rootStep(o, 'makeRoot', 'root'),",
    "      rootStep(o, 'makeRoot', 'root'),\n      rootStep(o, 'intendPassword', keptSecret(o)),",
  ],
  ['a password that nobody has tried', "      rootStep(o, 'provePassword', keptSecret(o)),\n", ''],
  ['a change by one who is not let in', "o.etcd.auth !== 'on' || !o.password", '!o.password'],
  [
    'a change that is not finished without the Secret',
    "kept === 'same' || (problem && kept !== 'intended')",
    "kept === 'same' || problem",
  ],
  ['a change to what cannot be used', "kept === 'same' || (problem && kept !== 'intended')", "kept === 'same'"],
  ['a password that is changed although it is right', "if (kept === 'nothing') return", "if (kept === 'same') return"],
]);

const said = faults('src/cluster/auth.ts', [
  ['a rejected password that nobody hears of', "if (login === 'rejected')", 'if (login === undefined && demanded)'],
  [
    'a log-in that is wanted, and only said where members are silent',
    "|| (o.etcd.is === 'answers' && o.etcd.auth === 'demanded')",
    '',
  ],
  [
    'a running cluster that is held up by its Secret',
    'isFormed(o) || o.members.length > 0 ? undefined : o.password?.problem',
    'o.password?.problem',
  ],
  [
    'an open cluster that counts as done while nobody asks',
    '!(isAuthOn(o) ?? o.cluster.status?.authEnabled)',
    'isAuthOn(o) === false',
  ],
  [
    'a record of log-ins that nobody has proven',
    "o.etcd.auth === 'on' ? { authEnabled: true }",
    "o.etcd.auth !== 'off' ? { authEnabled: true }",
  ],
  [
    'a Secret that is put right and looked at in five minutes',
    'isPasswordUnsettled(o.password) || lockedOut(o)',
    'lockedOut(o)',
  ],
  [
    'a lock that is looked at in five minutes',
    'isPasswordUnsettled(o.password) || lockedOut(o)',
    'isPasswordUnsettled(o.password)',
  ],
  ['log-ins that count as off because etcd is silent', '(on === undefined && isFormed(o) && !unread)', 'false'],
]);

const status = faults('src/cluster/status.ts', [
  ['an open cluster that counts as reconciled', ' && s.unsecured === undefined;', ';'],
  [
    'a lock before there is a cluster that nobody hears of',
    'if (!s.formed && s.locked) return no(s.locked.reason, s.locked.message);',
    '',
  ],
  [
    'a lock that is not degraded before there is a cluster',
    'if (!s.formed && s.locked) return yes(s.locked.reason, s.locked.message);',
    '',
  ],
  [
    'a lock that is told as members that are unhealthy',
    '  if (s.locked) return yes(s.locked.reason, s.locked.message);\n',
    '',
  ],
]);

const deeds = faults('src/cluster/root-password.ts', [
  ['what was begun is forgotten when the user changes it again', 'if (kept.next !== undefined) return;', ''],
  [
    'a root that was made without a password',
    "done(await work.tell((auth, ask) => auth.deleteUser(ask, ROOT)), ['userUnknown']);",
    '',
  ],
  [
    'a first root that cannot be made, because there was none',
    "auth.deleteUser(ask, ROOT)), ['userUnknown']);",
    'auth.deleteUser(ask, ROOT)));',
  ],
  [
    'a password that counts although etcd refuses it',
    'done(await work.tell((auth, ask) => auth.authenticate(ask, { user: ROOT, password })));',
    '',
  ],
  [
    'a change that is proven with the wrong password',
    'const password = kept.next ?? given;',
    'const password = given;',
  ],
  ['a password that stays intended for ever', '{ [PASSWORD]: password, [NEXT]: null }', '{ [PASSWORD]: password }'],
  ['a password in the clear', 'if (!way.tls) throw', 'if (false) throw'],
  [
    'the Secret of a cluster that was made anew',
    'cluster.metadata.uid !== call.cluster.uid',
    'cluster.metadata.uid === undefined',
  ],
]);

const password = faults('src/credentials/password.ts', [
  ["somebody else's Secret that is used", "held.is === 'ours' ? held.object : undefined", 'secrets.get(name)'],
  ['a half-made change that nobody sees', "if (next !== undefined) return 'intended';", ''],
  ['a change that nobody sees', 'given === undefined || given === password', 'password !== undefined'],
  ['a deleted Secret that counts as a change', 'given === undefined || given === password', 'given === password'],
  ['a password that was sent and not proven', '[password, next, given].filter', '[password, given].filter'],
  ['a lost copy with the right password in the Secret', '[password, next, given].filter', '[password, next].filter'],
  ['a password that etcd cannot keep', 'bytes.length > MOST_BYTES', 'bytes.length > 2 * MOST_BYTES'],
  ['an empty password', 'if (bytes.length === 0) return missing', 'if (bytes.length < 0) return missing'],
  ['a password that is not text', 'if (!isText(bytes)) return invalid', 'if (bytes.length < 0) return invalid'],
]);

const observe = [
  ...faults('src/cluster/observe-auth.ts', [
    [
      'log-ins that are on because anybody says so',
      'if (!root.ok) return WANTS_LOGIN',
      'if (!root.ok && !wanted) return WANTS_LOGIN',
    ],
    [
      'log-ins that nobody asks about, because members can be seen',
      '.cert === undefined) return undefined;',
      '.cert !== undefined) return undefined;',
    ],
    ['a question for every cluster that nobody needs', '  if (!wanted) return undefined;\n', ''],
  ]),
  ...faults('src/cluster/observe.ts', [
    [
      'a rejected password that each member is asked about',
      "if (kind === 'authFailed') return",
      "if (kind === 'authNotEnabled') return",
    ],
    ['a log-in that is wanted and taken for silence', "kind === 'authRequired' ||", ''],
    [
      'a log-in that is wanted, and forgotten when the next is silent',
      " || (view.is === 'silent' && view.login !== undefined)",
      '',
    ],
    [
      'a Secret that is put right and not looked at',
      "if (list.is === 'silent' && list.login === 'rejected') ports.credentials.forget(key);",
      '',
    ],
  ]),
];

const client = [
  ...faults('src/etcd/login.ts', [
    ['one dead member that keeps all from logging in', 'const key = `${cluster} ${endpoint}`;', 'const key = cluster;'],
    [
      'a token that was refused and is shown again',
      'known && (refused === undefined || refused.token !== known.token)',
      'known',
    ],
    ['a second password that is never tried', "if (answer.error.kind !== 'authFailed') break;", 'break;'],
  ]),
  ...faults('src/etcd/call.ts', [
    [
      'a certificate that is taken for a log-in',
      "['authRequired', 'permissionDenied', 'userUnknown']",
      "['authRequired']",
    ],
  ]),
  ...faults('src/etcd/errors.ts', [
    ['a refused removal that counts as done', "  [/user (name )?not found/, 'userUnknown'],\n", ''],
  ]),
];

export const auth: readonly Mutant[] = [...rules, ...said, ...status, ...deeds, ...password, ...observe, ...client];
