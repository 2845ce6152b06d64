/** Faults in what cert-manager is asked for, and in what is made of its answers. */
import { faults, type Mutant } from './mutant.ts';

const asked = faults('src/cluster/issuance.ts', [
  ['a name that the issuer refuses for its length', 'commonName: name.slice(0, MAX_COMMON_NAME)', 'commonName: name'],
  [
    'names of the user that are taken away',
    'want.every((each) => is.includes(each))',
    'want.length === is.length && want.every((each) => is.includes(each))',
  ],
  [
    'names of the user that are lost with a correction',
    '[...new Set([...(is[key] as unknown[]), ...value])]',
    '[...value]',
  ],
  [
    'a Certificate of an earlier operator that is never watched',
    'lacking(is.metadata.labels, wanted.metadata.labels)',
    'lacking(wanted.metadata.labels, wanted.metadata.labels)',
  ],
  [
    'a user who is told to create what cert-manager issues',
    'if (certificate === undefined) return [finding];',
    'if (certificate !== undefined || !certificate) return [finding];',
  ],
  ['a running cluster of which too much is claimed', 'return isFormed(o)\n    ? []', 'return !isFormed(o)\n    ? []'],
  ['readiness for what was asked before', '(metadata.generation ?? 0) ? said : undefined;', '0 ? said : undefined;'],
  ['a renewal that fails in silence', 'trouble === undefined || underWay ? []', 'trouble ?? !underWay ? []'],
  [
    'a renewal that is called failed when it begins',
    'trouble === undefined || underWay ? []',
    'trouble === undefined ? []',
  ],
  ['words without an end', 'troubleOf(held, now)?.slice(0, MOST_TEXT)', 'troubleOf(held, now)'],
  ['a Certificate that nobody looks at', 'if (!said && isOlder(metadata, NOTICED_MS, now))', 'if (now < 0)'],
  ['an issuer that has failed', "failed.reason === 'Failed'", "failed.reason === 'failed'"],
  ['a request that was denied', "['Denied', 'InvalidRequest']", "['InvalidRequest']"],
  ['an issuer that is missing', "if (ready?.status === 'False') return `", "if (ready?.status === 'Unknown') return `"],
  ['an approval that is overdue at once', 'return approved || !isOlder(', 'return approved || isOlder('],
]);

const rules = faults('src/cluster/rules/issuance.ts', [
  [
    'members that are not repaired because cert-manager is away',
    'isFormed(o) ? undefined : correctRequests(o)',
    'correctRequests(o)',
  ],
  [
    "somebody else's Secret that cert-manager is told to write over",
    '!taken.includes(wanted.spec.secretName)',
    'wanted.spec.secretName !== ""',
  ],
  ['a Certificate that stays as somebody has changed it', "return holding.is === 'ours' && fields", 'return undefined'],
]);

const said = faults('src/cluster/certificates.ts', [
  [
    'a cluster that is begun before its certificates are there',
    'isBegun(o) ? undefined : toldOf(findingsOf(o).filter(isPending))',
    'isBegun(o) ? toldOf(findingsOf(o).filter(isPending)) : undefined',
  ],
  ['what is awaited and called valid', ' || (!isFormed(o) && all.some(isPending));', ';'],
  ['a renewal that fails and is not looked at again', ' || issuanceFindings(o).length > 0) return', ') return'],
]);

const looked = faults('src/cluster/issuing.ts', [
  ['a name that counts as free because the cache is not filled', 'if (!ports.certificates.synced)', 'if (false)'],
  ['a cert-manager that is not there and asked', 'if (ports.certificates.missing)', 'if (false)'],
  [
    'a Certificate of somebody else that is not seen',
    'cached ? ({ ok: true, object: cached } as const) : await tryGet(client, certificates, ref, signal)',
    '{ ok: true as const, object: cached, why: undefined as never as string }',
  ],
  ['a cluster that is left alone for want of words', 'await ask.catch(() => undefined)', 'await ask'],
  ['an issuer that nobody asks', "held.is !== 'ours' || isIssued(held.object)", "held.is !== 'ours' || held.is"],
]);

const strangers = faults('src/credentials/strangers.ts', [
  [
    "somebody else's Secret that members are started on",
    'owners.has(name) ? undefined : secret',
    'owners.has("") ? undefined : secret',
  ],
  [
    'a Secret of another Certificate',
    'if (issuedFor === need.requested.certificate) return [];',
    'if (issuedFor !== undefined) return [];',
  ],
]);

const woken = faults('src/cluster/controller.ts', [
  [
    'a cert-manager that comes and wakes nobody',
    'if (asksCertManager(cluster)) enqueue(keyOf(cluster));',
    'if (!cluster) enqueue(keyOf(cluster));',
  ],
  [
    'a renewed certificate that waits for minutes',
    'if (store === ports.certificates) ports.credentials.forget(key);',
    '',
  ],
]);

const store = faults('src/kube/store.ts', [
  ['a cluster that waits for ever for a kind that has gone', 'shard.missing || isAtLeast', 'isAtLeast'],
  ['a cache that ends at the deletion of what it never had', ' && (before || after)', ''],
]);

export const issuance: readonly Mutant[] = [...asked, ...rules, ...said, ...looked, ...strangers, ...woken, ...store];
