import 'reflect-metadata';
import { generateKeyPairSync, type KeyObject, webcrypto, X509Certificate } from 'node:crypto';
import * as x509 from '@peculiar/x509';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { examine, type Requirements, soonFrom, type TlsSecret } from './examine.ts';
import { type Finding, isFatal, reasonOf, sentenceOf } from './findings.ts';
import { CA_LIFETIME_MS, createCA, issue, type KeyPair, type KeySource, type Leaf } from './issue.ts';
import { systemKeySource } from './key-source.ts';

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const NOW = Date.parse('2026-01-01T12:00:00Z');
const DAY = 24 * 60 * 60_000;
const BACKDATED_MS = 5 * 60_000;
const WILDCARDS = ['*.db.ns.svc', '*.db.ns.svc.cluster.local'];
const CLIENTS = ['db-client.ns.svc', 'localhost', '127.0.0.1'];
const BOTH = ['server auth', 'client auth'] as const;

const server: Requirements = { role: 'server', memberNames: ['*.db.ns.svc'], clientNames: CLIENTS, mutual: true };
const peer: Requirements = { role: 'peer', memberNames: WILDCARDS, clientNames: [], mutual: true };
const operator: Requirements = { role: 'operator', memberNames: [], clientNames: [], mutual: true };

let ca: KeyPair;
let other: KeyPair;
/** An intermediate CA. */
let middle: KeyPair;

const keyed = ({ privateKey }: { readonly privateKey: KeyObject }): KeySource => ({
  ...systemKeySource,
  key: () => Promise.resolve(privateKey),
});
const made = (leaf: Partial<Leaf> = {}, by = ca, now = NOW, random: KeySource = systemKeySource): Promise<KeyPair> =>
  issue(by, { name: 'x', hosts: [...WILDCARDS, ...CLIENTS], usages: BOTH, durationMs: 90 * DAY, ...leaf }, now, random);
const tlsSecret = ({ cert, key }: KeyPair, trust = ca.cert): TlsSecret => ({
  secret: 'mine',
  data: { 'tls.crt': cert, 'tls.key': key, 'ca.crt': trust },
});
const found = (p: TlsSecret | undefined, demands = server, now = NOW): readonly Finding[] =>
  examine(p, 'mine', demands, now).findings;

async function intermediateCA(
  by: KeyPair,
  issuer = new x509.X509Certificate(by.cert).subject,
  notAfter = NOW + 1000 * DAY,
  extensions: x509.Extension[] = [new x509.BasicConstraintsExtension(true, 0, true)],
): Promise<KeyPair> {
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
  const der = x509.PemConverter.decodeFirst(by.key);
  const certificate = await x509.X509CertificateGenerator.create({
    notBefore: new Date(NOW - 10 * DAY),
    notAfter: new Date(notAfter),
    serialNumber: '02',
    subject: 'CN=middle',
    issuer,
    publicKey: keys.publicKey,
    signingKey: await webcrypto.subtle.importKey('pkcs8', der, ALGORITHM, false, ['sign']),
    signingAlgorithm: ALGORITHM,
    extensions,
  });
  const key = await webcrypto.subtle.exportKey('pkcs8', keys.privateKey);
  return { cert: certificate.toString('pem'), key: x509.PemConverter.encode(key, 'PRIVATE KEY') };
}

beforeAll(async () => {
  ca = await createCA('root', NOW, systemKeySource);
  other = await createCA('root', NOW, systemKeySource); // the same name, another key
  middle = await intermediateCA(ca);
});

describe('nothing is wrong with', () => {
  test.each<[string, () => Promise<TlsSecret>, Requirements]>([
    ['a certificate for every name', async () => tlsSecret(await made()), server],
    [
      'keys of RSA and on other curves',
      async () => {
        const kinds = [
          generateKeyPairSync('rsa', { modulusLength: 2048 }),
          generateKeyPairSync('ec', { namedCurve: 'secp384r1' }),
          generateKeyPairSync('ec', { namedCurve: 'secp521r1' }),
          generateKeyPairSync('ed25519'),
        ];
        const [first, ...rest] = await Promise.all(kinds.map((kind) => made({}, ca, NOW, keyed(kind))));
        const others = rest.map(({ cert }) => cert).join('');
        return tlsSecret(first as KeyPair, `${ca.cert}${others}`);
      },
      server,
    ],
    ['one for peers', async () => tlsSecret(await made({ hosts: WILDCARDS })), peer],
    ['a client that has no name', async () => tlsSecret(await made({ hosts: [], usages: ['client auth'] })), operator],
    ['one without a list of usages', async () => tlsSecret(await made({ usages: [] })), peer],
    ['several CAs in ca.crt', async () => tlsSecret(await made(), `${other.cert}${ca.cert}`), server],
    [
      'a chain with an intermediate CA',
      async () => {
        const leaf = await made({}, middle);
        return tlsSecret({ ...leaf, cert: `${leaf.cert}\n${middle.cert}` });
      },
      server,
    ],
    ['only the intermediate CA in ca.crt', async () => tlsSecret(await made({}, middle), middle.cert), server],
    [
      'a CA that was renewed with its key: one certificate expires at this moment, one is valid from now on, one later',
      async () => {
        const key = await systemKeySource.key();
        const at = (ms: number) => createCA('renewed', ms, { ...systemKeySource, key: () => Promise.resolve(key) });
        const now = await at(NOW + BACKDATED_MS);
        const bundle = [await at(NOW - CA_LIFETIME_MS), await at(NOW + DAY), now];
        return tlsSecret(await made({}, now), bundle.map(({ cert }) => cert).join(''));
      },
      server,
    ],
    [
      'a certificate that is valid from this moment on',
      async () => tlsSecret(await made({}, ca, NOW + BACKDATED_MS)),
      server,
    ],
    [
      'as much text as the operator reads',
      async () => tlsSecret(await made(), ca.cert.padEnd(320 * 1024, '#')),
      server,
    ],
    [
      'a CA after fifteen others of the same name',
      async () => {
        const others = await Promise.all(Array.from({ length: 15 }, () => createCA('root', NOW, systemKeySource)));
        return tlsSecret(middle, [...others, ca].map(({ cert }) => cert).join(''));
      },
      operator,
    ],
    [
      'a client certificate that may be used for anything',
      async () => {
        const anyUsage = new x509.ExtendedKeyUsageExtension(['2.5.29.37.0']);
        return tlsSecret(await intermediateCA(ca, undefined, undefined, [anyUsage]));
      },
      operator,
    ],
    [
      'an unused CA with a short key',
      async () => {
        const short = await made({}, ca, NOW, keyed(generateKeyPairSync('rsa', { modulusLength: 1024 })));
        return tlsSecret(await made(), `${short.cert}${ca.cert}`);
      },
      server,
    ],
    [
      'text around the certificate',
      async () => {
        const leaf = await made();
        return tlsSecret({ ...leaf, cert: `subject=x\n${leaf.cert}\n` });
      },
      server,
    ],
  ])('%s', async (_, make, demands) => {
    expect(found(await make(), demands)).toEqual([]);
  });
});

describe('the findings', () => {
  test.each<[string, () => Promise<TlsSecret | undefined>, Requirements, Partial<Finding>]>([
    ['no Secret', () => Promise.resolve(undefined), server, { is: 'secretMissing' }],
    ['no key', async () => tlsSecret({ ...(await made()), key: '' }), server, { is: 'keyMissing', key: 'tls.key' }],
    ['no CA', async () => tlsSecret(await made(), ' \n'), server, { is: 'keyMissing', key: 'ca.crt' }],
    ['no PEM', async () => tlsSecret({ ...(await made()), cert: 'hello' }), server, { is: 'notPem', key: 'tls.crt' }],
    ['a CA that is no PEM', async () => tlsSecret(await made(), 'hello'), server, { is: 'notPem', key: 'ca.crt' }],
    [
      'a damaged certificate',
      async () => tlsSecret({ ...(await made()), cert: (await made()).cert.replace(/\n.{20}/, '\nAAAA') }),
      server,
      { is: 'notPem', key: 'tls.crt' },
    ],
    [
      'a key behind a passphrase',
      async () => {
        const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
        const key = privateKey.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' });
        return tlsSecret({ ...(await made()), key: String(key) });
      },
      server,
      { is: 'notPem', key: 'tls.key' },
    ],
    [
      'too many CAs',
      async () => tlsSecret(await made(), ca.cert.repeat(201)),
      server,
      { is: 'tooMany', key: 'ca.crt' },
    ],
    [
      'too many intermediates',
      async () => tlsSecret({ ...(await made()), cert: (await made()).cert.repeat(201) }),
      server,
      { is: 'tooMany', key: 'tls.crt' },
    ],
    [
      'more text than the operator reads',
      async () => tlsSecret(await made(), `${ca.cert}${'#'.repeat(320 * 1024)}`),
      server,
      { is: 'tooLarge', key: 'ca.crt', what: 'all', limit: 320 * 1024 },
    ],
    [
      'a key of more text than the operator reads',
      async () => {
        const pair = await made();
        return tlsSecret({ ...pair, key: `${pair.key}${'#'.repeat(64 * 1024)}` });
      },
      server,
      { is: 'tooLarge', key: 'tls.key', what: 'all', limit: 64 * 1024 },
    ],
    [
      'a certificate that is larger than the operator reads',
      async () => tlsSecret(await made({ hosts: Array.from({ length: 2_000 }, (_, i) => `host-${i}.example.com`) })),
      server,
      { is: 'tooLarge', key: 'tls.crt', what: 'certificate', limit: 32 * 1024 },
    ],
    [
      'a curve that Go does not support, with which etcd would fail in the next handshake',
      async () => tlsSecret(await made({}, ca, NOW, keyed(generateKeyPairSync('ec', { namedCurve: 'secp256k1' })))),
      server,
      { is: 'keyUnknown', key: 'tls.crt', kind: 'ec secp256k1' },
    ],
    [
      'a key that is too short for OpenSSL, and so for the operator',
      async () => tlsSecret(await made({}, ca, NOW, keyed(generateKeyPairSync('rsa', { modulusLength: 1024 })))),
      server,
      { is: 'keyUnknown', key: 'tls.crt', kind: 'rsa of 1024 bits' },
    ],
    [
      'a type of key that Go does not support',
      async () => tlsSecret(await made({}, ca, NOW, keyed(generateKeyPairSync('rsa-pss', { modulusLength: 2048 })))),
      server,
      { is: 'keyUnknown', key: 'tls.crt', kind: 'rsa-pss' },
    ],
    [
      'a CA with which etcd would fail at its next start',
      async () => {
        const odd = await createCA('odd', NOW, keyed(generateKeyPairSync('ec', { namedCurve: 'secp256k1' })));
        return tlsSecret(await made(), `${ca.cert}${odd.cert}`);
      },
      server,
      { is: 'keyUnknown', key: 'ca.crt', kind: 'ec secp256k1' },
    ],
    [
      'a CA in use whose key is too short',
      async () => {
        const short = await made({}, ca, NOW, keyed(generateKeyPairSync('rsa', { modulusLength: 1024 })));
        return tlsSecret(short, short.cert);
      },
      server,
      { is: 'keyUnknown', key: 'ca.crt', kind: 'rsa of 1024 bits' },
    ],
    [
      'a malformed key',
      async () => {
        const der = Buffer.from(x509.PemConverter.decodeFirst(other.cert));
        const key = new X509Certificate(other.cert).publicKey.export({ type: 'spki', format: 'der' });
        der.fill(0xff, der.indexOf(key) + key.length - 8, der.indexOf(key) + key.length);
        return tlsSecret(await made(), `${ca.cert}${x509.PemConverter.encode(der, 'CERTIFICATE')}`);
      },
      server,
      { is: 'keyUnknown', key: 'ca.crt', kind: 'unknown' },
    ],
    ['the key of another', async () => tlsSecret({ ...(await made()), key: other.key }), server, { is: 'keyMismatch' }],
    ['another CA of the same name', async () => tlsSecret(await made(), other.cert), server, { is: 'untrusted' }],
    ['one that says so itself', () => Promise.resolve(tlsSecret(middle, other.cert)), server, { is: 'untrusted' }],
    [
      'an issuer that is no CA',
      async () => {
        const notCA = await intermediateCA(ca, undefined, undefined, []);
        return tlsSecret(await intermediateCA(notCA), notCA.cert);
      },
      server,
      { is: 'untrusted' },
    ],
    ['a chain that lacks its middle', async () => tlsSecret(await made({}, middle)), server, { is: 'untrusted' }],
    [
      'names of the present members only',
      async () => tlsSecret(await made({ hosts: ['db-abcde.db.ns.svc', ...CLIENTS] })),
      server,
      { is: 'memberNameMissing', names: ['*.db.ns.svc'] },
    ],
    [
      'a wildcard of a parent domain, which covers one label only',
      async () => tlsSecret(await made({ hosts: ['*.ns.svc', '*.svc', 'localhost', '127.0.0.1'] })),
      server,
      { is: 'memberNameMissing', names: ['*.db.ns.svc'] },
    ],
    [
      'a partial wildcard, which Go does not accept',
      async () => tlsSecret(await made({ hosts: ['zz*.db.ns.svc', ...CLIENTS] })),
      server,
      { is: 'memberNameMissing', names: ['*.db.ns.svc'] },
    ],
    [
      'peers without the name of their reverse look-up',
      async () => tlsSecret(await made({ hosts: ['*.db.ns.svc'] })),
      peer,
      { is: 'memberNameMissing', names: ['*.db.ns.svc.cluster.local'] },
    ],
    [
      'no name for clients',
      async () => tlsSecret(await made({ hosts: WILDCARDS })),
      server,
      { is: 'clientNameMissing', names: CLIENTS },
    ],
    [
      'a name in the subject, which clients ignore',
      async () => tlsSecret(await made({ name: 'db-client.ns.svc', hosts: [] })),
      server,
      { is: 'clientNameMissing', names: CLIENTS },
    ],
    [
      'a server that is a client only',
      async () => tlsSecret(await made({ usages: ['client auth'] })),
      server,
      { is: 'usageMissing', usage: 'server auth' },
    ],
    [
      'a peer that is a server only',
      async () => tlsSecret(await made({ usages: ['server auth'] })),
      peer,
      { is: 'usageMissing', usage: 'client auth' },
    ],
    [
      'a client that is a server only',
      async () => tlsSecret(await made({ usages: ['server auth'] })),
      operator,
      { is: 'usageMissing', usage: 'client auth' },
    ],
    [
      'a server that the gateway cannot use',
      async () => tlsSecret(await made({ usages: ['server auth'] })),
      server,
      { is: 'gatewayUsageMissing' },
    ],
    [
      'a certificate that expires at this moment',
      async () => tlsSecret(await made({}, ca, NOW - 90 * DAY)),
      server,
      { is: 'expired', key: 'tls.crt' },
    ],
    [
      'a certificate of tomorrow',
      async () => tlsSecret(await made({}, ca, NOW + DAY)),
      server,
      { is: 'notYetValid', key: 'tls.crt', at: '2026-01-02T11:55:00Z' },
    ],
    [
      'one whose last fifth begins at this moment',
      async () => tlsSecret(await made({}, ca, NOW - 72 * DAY + BACKDATED_MS / 5)),
      server,
      { is: 'expiresSoon' },
    ],
    [
      'an expired CA',
      async () => {
        const old = await createCA('old', NOW - 3700 * DAY, systemKeySource);
        return tlsSecret(await made({}, old), old.cert);
      },
      server,
      { is: 'expired', key: 'ca.crt' },
    ],
  ])('%s', async (_, make, demands, expected) => {
    const findings = found(await make(), demands);
    expect(findings).toContainEqual(expect.objectContaining({ secret: 'mine', ...expected }));
    for (const finding of findings) {
      expect(sentenceOf(finding)).toContain('Secret mine');
      expect(sentenceOf(finding)).not.toContain('PRIVATE KEY');
      expect(reasonOf(finding)).toMatch(/^[A-Z][A-Za-z]+$/);
    }
  });
});

test('the finding about an expired intermediate CA names its key', async () => {
  const over = await intermediateCA(ca, undefined, NOW - DAY);
  const leaf = await made({}, over); // expires with it
  const findings = found(tlsSecret({ ...leaf, cert: `${leaf.cert}${over.cert}` }));
  const where = findings.map((f) => `${f.is} ${'key' in f ? f.key : ''}`);
  expect(where).toEqual(['expired tls.crt', 'expired tls.crt']);
});

test('only for a server, the finding about a missing usage is also one about the gateway', async () => {
  const both = tlsSecret(await made({ usages: ['server auth'] }));
  expect(found(both, peer)).toEqual([{ is: 'usageMissing', secret: 'mine', usage: 'client auth' }]);
  expect(found(both, server)).toEqual([{ is: 'gatewayUsageMissing', secret: 'mine' }]);
});

test.each<[Finding, string]>([
  [
    { is: 'tooLarge', secret: 's', key: 'ca.crt', what: 'all', bytes: 9, limit: 8 },
    'ca.crt of Secret s has 9 bytes, more than the 8 that the operator reads: keep only what is needed',
  ],
  [
    { is: 'tooLarge', secret: 's', key: 'tls.crt', what: 'certificate', bytes: 9, limit: 8 },
    'a certificate in tls.crt of Secret s has 9 bytes of PEM, more than the 8 that the operator reads: issue it with fewer names',
  ],
  [{ is: 'memberNameMissing', secret: 's', names: ['*.a'] }, 'present and future members: issue it with that name'],
  [{ is: 'memberNameMissing', secret: 's', names: ['*.a', '*.b'] }, 'lacks *.a, *.b, the host names of present'],
  [{ is: 'memberNameMissing', secret: 's', names: ['*.a', '*.b'] }, 'issue it with those names'],
])('a user reads what to do about %o', (finding, expected) => {
  expect(sentenceOf(finding)).toContain(expected);
});

test('without mTLS, the gateway needs no client certificate either', async () => {
  expect(found(tlsSecret(await made({ usages: ['server auth'] })), { ...server, mutual: false })).toEqual([]);
});

test('the CA may be in another Secret, which the finding then names', async () => {
  const { data, secret } = tlsSecret(await made());
  const { 'ca.crt': _, ...mine } = data;
  const demands = (trust: string): Requirements => ({
    ...operator,
    trust: { secret: 'theirs', data: { 'ca.crt': trust } },
  });
  expect(found({ secret, data: mine }, demands(ca.cert))).toEqual([]);
  const [untrusted] = found({ secret, data: mine }, demands(other.cert));
  expect(untrusted).toEqual({ is: 'untrusted', secret: 'mine', issuer: 'CN=root', trust: 'theirs' });
  expect(found({ secret, data: mine }, demands(''))).toEqual([{ is: 'keyMissing', secret: 'theirs', key: 'ca.crt' }]);
});

test('warnings do not block the bootstrap', () => {
  const fatal = (is: Finding['is']): boolean => isFatal({ is, secret: 's' } as Finding);
  expect((['clientNameMissing', 'gatewayUsageMissing', 'expiresSoon'] as const).map(fatal)).toEqual([
    false,
    false,
    false,
  ]);
  expect((['expired', 'untrusted', 'memberNameMissing', 'secretMissing'] as const).map(fatal)).toEqual([
    true,
    true,
    true,
    true,
  ]);
});

test('certificates that all claim to have issued each other do not block the operator', async () => {
  const key = await systemKeySource.key();
  const same = { ...systemKeySource, key: () => Promise.resolve(key) };
  const made90 = (random: KeySource) => Promise.all(Array.from({ length: 90 }, () => createCA('circle', NOW, random)));
  const [circle, liars] = [await made90(same), await made90(systemKeySource)];
  const leaf = await made({}, circle[0]);
  const tangled = { ...leaf, cert: [leaf, ...liars, ...circle].map(({ cert }) => cert).join('\n') };
  const verify = vi.spyOn(X509Certificate.prototype, 'verify');
  expect(found(tlsSecret(tangled)).map(({ is }) => is)).toEqual(['untrusted']);
  expect(verify.mock.calls.length).toBeLessThan(40);
  verify.mockRestore();
});

test('the CA bundle of a browser is accepted: 200 certificates, with a line about each', async () => {
  const bundle = Array.from({ length: 200 }, (_, i) => `# CA ${i}, ${'='.repeat(800)}\n${ca.cert}`).join('');
  expect(bundle.length).toBeGreaterThan(250 * 1024);
  expect(found(tlsSecret(await made(), bundle))).toEqual([]);
});

test('an issuer without a name is reported, and does not end the reconcile', async () => {
  const [untrusted] = found(tlsSecret(await intermediateCA(ca, '')), operator);
  expect(untrusted).toMatchObject({ is: 'untrusted', issuer: 'an unnamed issuer' });
});

test('a certificate of exactly the largest size is accepted', async () => {
  const hosts = Array.from({ length: 700 }, (_, i) => `host-${i}.example.com`);
  const leaf = await made({ hosts, usages: ['client auth'] });
  const missing = 32 * 1024 - leaf.cert.trim().length;
  const lines = leaf.cert.trim().split('\n');
  const spaces = (i: number): number => Math.max(0, Math.min(100, missing - (i - 1) * 100));
  const padded = lines.map((line, i) => (i === 0 || i === lines.length - 1 ? line : `${line}${' '.repeat(spaces(i))}`));
  expect(padded.join('\n').length).toBe(32 * 1024);
  expect(found(tlsSecret({ ...leaf, cert: padded.join('\n') }), operator)).toEqual([]);
});

test('the name of an issuer is cut before it is too long for a condition', async () => {
  const findings = found(tlsSecret(await intermediateCA(ca, `CN=${'x'.repeat(20_000)}`)));
  const [untrusted] = findings.filter(({ is }) => is === 'untrusted');
  expect(untrusted && sentenceOf(untrusted).length).toBeLessThan(500);
});

test('a certificate expires soon in the last fifth of its lifetime, and at most a month before its end', () => {
  expect(soonFrom(0, 10 * DAY)).toBe(8 * DAY);
  expect(soonFrom(0, 3650 * DAY)).toBe(3620 * DAY);
});
