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
]);

const pem = faults('src/pki/pem.ts', [
  [
    'a circle of certificates that is gone around for ever',
    'if (++signatures > MOST_SIGNATURES) return undefined;',
    '',
  ],
  ['a signature that nobody checks', 'if (!last.verify(issuer.publicKey)) continue;', ''],
]);

const judge = faults('src/credentials/judge.ts', [
  [
    "somebody else's Secret that is overwritten",
    "if (held.is === 'foreign') return",
    "if (held.is === 'absent') return",
  ],
  [
    'a lost authority that is replaced under running members',
    "if (isFormed(world.cluster)) return { secret: name, findings: [{ is: 'authorityLost'",
    "if (secret && isFormed(world.cluster)) return { secret: name, findings: [{ is: 'authorityLost'",
  ],
  [
    'an authority with the key of another',
    'certificate && key && certificate.checkPrivateKey(key)',
    'certificate && key',
  ],
  [
    'an exchanged authority that signs for running members',
    'exchanged && isFormed(world.cluster) ? [',
    'exchanged && !isFormed(world.cluster) ? [',
  ],
  [
    'a lost Secret that comes back with another authority',
    'if (isFormed(world.cluster) && !trusted(source)) {',
    'if (!isFormed(world.cluster) && !trusted(source)) {',
  ],
  ['whom members trust, as somebody has put it', 'running && trusted(running) ? running', 'running ? running'],
  ['certificates that are not renewed', 'world.around.now >= renewAt', 'world.around.now < 0'],
  ['a damaged certificate that is left', '(wrong || (renewAt', '(stuck || (renewAt'],
  [
    'certificates that are signed all the time by an authority that ends',
    '(seen.notAfter ?? 0) < (endOf(leafIn(signer)) ?? 0)',
    '(seen.notAfter ?? 0) <= (endOf(leafIn(signer)) ?? 0)',
  ],
  ['an end that is told of what members do not show', 'endOf(leafIn(running)) ?? seen.notAfter', 'seen.notAfter'],
  [
    'a bad Secret that reaches members',
    'if (!good || foreign.length > 0 || !source)',
    'if (foreign.length > 0 || !source)',
  ],
  ['a new authority that reaches running members', '...(!sameLeaf && vouched && {', '...(!sameLeaf && {'],
  ['a change of authority that nobody is told of', 'sameTrust && vouched ? []', 'vouched ? []'],
  [
    'a connection that is lost with the Secret of a running cluster',
    'const copy = isFormed(world.cluster) ? ours',
    'const copy = !isFormed(world.cluster) ? ours',
  ],
  [
    'an operator that cannot look after a cluster because its own Secret is gone',
    'own.usable ? world.secrets.get(own.need.secret) : ours',
    'own ? world.secrets.get(own.need.secret) : ours',
  ],
]);

const rules = faults('src/cluster/certificates.ts', [
  [
    'a cluster that is begun on a bad certificate',
    '(isBegun(o) ? undefined : toldOf(graveOf(o)))',
    '(isBegun(o) ? toldOf(graveOf(o)) : undefined)',
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
  ['members whose trust nobody knows', ', ...trustNow(o) }', ' }'],
]);

const shown = faults('src/credentials/shown.ts', [
  [
    'a handshake with every member in every pass',
    'known === expected ? known : await look(endpoint)',
    'await look(endpoint)',
  ],
  [
    'an old certificate that is taken for the new one',
    '.filter(([, shown]) => shown !== expected)',
    '.filter(([, shown]) => shown === undefined)',
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
  ['a Secret that nobody has looked at', 'if (todo(held) !== call.name) throw', 'if (call.target === "") throw'],
  [
    'a Secret that is written again and again',
    '[call.target, after]])) !== undefined)',
    '[call.target, after]])) === null)',
  ],
  [
    'trust that is taken from running members',
    "call.name === 'copyLeaf' ? [CERT, KEY] : [CERT, KEY, CA]",
    '[CERT, KEY, CA]',
  ],
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
  ...judge,
  ...shown,
  ...trust,
  ...rules,
  ...growth,
  ...order,
  ...paperwork,
  ...credentials,
];
