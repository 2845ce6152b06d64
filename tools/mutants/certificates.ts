/** Faults in what is made of certificates. */
import { faults, type Mutant } from './mutant.ts';

const examine = faults('src/pki/examine.ts', [
  ['a key that belongs to another certificate', 'leaf.checkPrivateKey(key) ? []', 'key ? []'],
  [
    'a certificate that nobody trusts',
    "...(path ? [] : [{ is: 'untrusted'",
    "...(path ?? leaf ? [] : [{ is: 'untrusted'",
  ],
  ['a wildcard that Go does not take', 'partialWildcards: false', 'partialWildcards: true'],
  ['a name in the subject that counts', "subject: 'never'", "subject: 'default'"],
  ['a peer that cannot be a client', "peer: ['server auth', 'client auth']", "peer: ['server auth']"],
  ['an expired certificate', 'if (now >= until)', 'if (now < 0)'],
  ['a certificate of tomorrow', 'if (now < from)', 'if (now < 0)'],
  ['an alarm about an authority that was renewed', 'leadsTo(leaf, others.filter(valid), roots.filter(valid)) ?? ', ''],
  [
    'an end that is said of the wrong text',
    'ages(between, { secret, key: CERT }, now)',
    'ages(between, { secret, key: CA }, now)',
  ],
  ['an operator that cannot talk to its members', '< LEAST_BITS) return', '< 0) return'],
  ['a key that etcd fails at', '    ...unknownKeys([leaf, ...others], { secret, key: CERT }),\n', ''],
  ['an authority at which etcd does not start', " || !kindOf(root).startsWith('rsa')", ''],
  ['a Secret that keeps all clusters waiting', 'if (tooMuch.length > 0) return', 'if (tooMuch.length < 0) return'],
  ['a Secret that is read however large it is', 'if (bytes > limit) return', 'if (bytes < 0) return'],
  ['a certificate that is read however large it is', 'if (largest <= MAX_CERTIFICATE) return [];', 'return [];'],
]);

const pem = faults('src/pki/pem.ts', [
  [
    'a circle of certificates that is gone around for ever',
    'if (++signatures > MOST_SIGNATURES) return undefined;',
    '',
  ],
  ['an operator that reads the same text all day', 'if (known) return known;', ''],
  ['memory that fills with what was read', 'if (characters <= MOST_CHARACTERS) break;', 'break;'],
  ['a signature that nobody checks', 'if (!verifies(last, issuer)) continue;', ''],
  ['a key of DSA that takes a second', " || (type === 'pkcs8' && !isQuick(key))", ''],
  ['an exponent that takes long', '<= MAX_EXPONENT && ', '>= 0n && '],
  ['a certificate that takes long to read', 'if (block.length > MAX_CERTIFICATE) return undefined;', ''],
]);

const papers = faults('src/credentials/papers.ts', [
  [
    "somebody else's Secret that is overwritten",
    "if (held.is === 'foreign') return",
    "if (held.is === 'absent') return",
  ],
  [
    'an authority with the key of another',
    'certificate && key && certificate.checkPrivateKey(key)',
    'certificate && key',
  ],
  ['a Pod that has started on certificates and is not counted', ' || around.mounted.running', ''],
]);

const issued = faults('src/credentials/issued.ts', [
  ['clients that do not know yet who has signed', 'if (signs && !early && ', 'if (signs && '],
  ['a tampered certificate that waits for clients', ' && vouched(side, chainIn(secret));', ';'],
  ['an expired certificate that waits for clients', 'elsewhere && !seen.findings.some(isGrave) && ', 'elsewhere && '],
  ['certificates that are not renewed', 'world.around.now >= renewAt', 'world.around.now < 0'],
  ['a damaged certificate that is left', '(wrong || (renewAt', '(stuck || (renewAt'],
  [
    'certificates that are signed all the time by an authority that ends',
    '(seen.notAfter ?? 0) < (endOf(certificate) ?? 0)',
    '(seen.notAfter ?? 0) <= (endOf(certificate) ?? 0)',
  ],
  [
    'an authority that signs for members that do not trust it',
    'certificate ? vouched(side, [certificate]) : !side.begun',
    'certificate !== undefined || !side.begun',
  ],
  [
    'certificates of the old authority that stay',
    'seen.findings.some(isGrave) || elsewhere',
    'seen.findings.some(isGrave)',
  ],
  [
    'applications that are not told of a new authority',
    "...(untold && foreign.length === 0 && { todo: 'publish' }),",
    '',
  ],
]);

const givenFaults = faults('src/credentials/given.ts', [
  ['an end that is told of what members do not show', 'endOf(leafIn(running)) ?? seen.notAfter', 'seen.notAfter'],
  [
    'a bad Secret that reaches members',
    'source !== undefined && !seen.findings.some(isGrave);',
    'source !== undefined;',
  ],
  ['trust that a bad Secret asks for', 'findings.some(isGrave) ? undefined : trustIn', 'trustIn'],
  ['a new authority that reaches running members', '!sameLeaf && vouched(side, chainIn(source))', '!sameLeaf'],
  [
    'certificates that clients cannot have learnt to trust',
    "if (!crosses || need.role === 'operator' || mayExchange(world, side))",
    "if (!crosses || need.role === 'operator' || side.begun)",
  ],
  [
    'clients that have no time because the old authority stays',
    '!sharesAuthority(told, shown, chainIn(source))',
    'sharesAuthority(told, shown, [])',
  ],
  ['a certificate that waits longer than clients need', '{ renewAt: at } : {}', '{} : {}'],
  ['a certificate that is looked at all the time', ' && at > world.around.now ?', ' ?'],
  ['a damaged copy that waits for clients', 'const crosses = vouched(side, shown) && ', 'const crosses = '],
  [
    'a lost copy that nobody is told of',
    'good && side.begun && !copy && todo === undefined',
    'good && !side.begun && !copy',
  ],
]);

const judge = faults('src/credentials/judge.ts', [
  [
    'an operator that cannot look after a cluster because its own Secret is gone',
    '    shownIn(world, server),\n  ];',
    '  ];',
  ],
  ['an operator that shows what a member does not take', ' && vouched(side, chainIn(secret));', ';'],
]);

const rules = faults('src/cluster/certificates.ts', [
  [
    'a cluster that is begun on a bad certificate',
    'isBegun(o) ? undefined : (unreadSecrets(o) ?? toldOf(graveOf(o)))',
    'isBegun(o) ? toldOf(graveOf(o)) : unreadSecrets(o)',
  ],
  [
    'a running cluster that is held up by a bad Secret',
    'isFormed(o) || o.members.length > 0;',
    'o.members.length < 0;',
  ],
  ['a wrong certificate that is called good', 'const bad = grave.length > 0 || ', 'const bad = '],
  ['a Secret that is put right and not looked at', 'if (isUnsettled(o.certificates) || ', 'if ('],
  [
    'a renewal that nobody wakes up for',
    'renewal === undefined ? undefined : Math.max(0, renewal - o.now)',
    'undefined',
  ],
]);

const trust = faults('src/cluster/rules/bootstrap.ts', [
  ['members whose trust nobody knows', '    ...trustNow(o),\n', ''],
]);

const shown = faults('src/credentials/shown.ts', [
  [
    'a handshake with every member in every pass',
    'known === expected ? known : await look(endpoint)',
    'await look(endpoint)',
  ],
  [
    'an old certificate that is taken for the new one',
    'now.filter(([, shown]) => shown !== expected)',
    'now.filter(([, shown]) => shown === undefined)',
  ],
  [
    'an old certificate that is taken for the new one because a look at it failed',
    'shown ?? before?.get(endpoint)',
    'shown',
  ],
  [
    'a member that nobody has looked at and that proves something',
    'seen.filter(([, shown]) => shown === undefined)',
    "seen.filter(([, shown]) => shown === '')",
  ],
]);

const growth = faults('src/cluster/rules/grow.ts', [
  ['a member that is added and has nothing to mount', '  if (!canMount(o)) return undefined;\n', ''],
]);

const order = faults('src/cluster/rules/certificates.ts', [
  [
    'members that are not repaired because a Secret cannot be written',
    'isFormed(o) && o.refusal !== undefined ? undefined : writeCertificates(o)',
    'writeCertificates(o)',
  ],
]);

const paperwork = faults('src/cluster/paperwork.ts', [
  ['a Secret that nobody has looked at', 'if (todoOf(judged, call.target) !== call.name)', "if (call.target === '')"],
  [
    'a Secret that is written again and again',
    'judge(cluster, then, around)), call.target) === call.name)',
    'judge(cluster, then, around)), call.target) === null)',
  ],
  ['trust that is taken from running members', 'KEY), ...trust };', 'KEY), [CA]: textOf(held.get(need.secret), CA) };'],
  ['trust that can be changed under members', "type: 'Opaque', immutable: true", "type: 'Opaque'"],
  ['a Secret that was never trust and is deleted', ' && held.object.immutable === true', ''],
  [
    "somebody else's Secret that is deleted",
    "held.is === 'ours' && held.object",
    "held.is !== 'absent' && (held as { object: Secret }).object",
  ],
  [
    'an authority that is lost with its successor',
    '[CERT]: textOf(current, NEXT_CERT)',
    '[CERT]: textOf(current, CERT)',
  ],
  ['a time that nobody notes', '[WRITTEN_AT_ANNOTATION]: iso(ports.now())', "[WRITTEN_AT_ANNOTATION]: ''"],
  ['a Secret of a cluster that was made anew', ' || cluster.metadata.uid !== call.cluster.uid', ''],
  [
    'the words of a library about a key',
    'throw new NotNow(`the authority in',
    'throw new Error(authority.key + `the authority in',
  ],
]);

const credentials = faults('src/credentials/credentials.ts', [
  ['what belonged to a predecessor', 'known?.uid === uid && ', ''],
  ['an edit with which nobody looks at Secrets', ' && known?.generation === generation', ''],
  ['Secrets that are read in every pass', '< known.until) return known;', '< 0) return known;'],
  ['a renewal that waits for the next look', 'Math.min(until, renewalOf(judged.view) ?? until)', 'until'],
]);

export const certificates: readonly Mutant[] = [
  ...examine,
  ...pem,
  ...papers,
  ...issued,
  ...givenFaults,
  ...judge,
  ...shown,
  ...trust,
  ...rules,
  ...growth,
  ...order,
  ...paperwork,
  ...credentials,
];
