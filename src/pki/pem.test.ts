/** Parsing certificates and keys from the text of a tenant. */
import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { blockMs, HOSTILE_PEM, LONGEST_MS } from '../../test/support/builders/hostile.ts';
import { certificates, keys } from '../../test/support/builders/hostile-certificates.ts';
import { createCA, issue } from './issue.ts';
import { systemKeySource } from './key-source.ts';
import { blocksIn, certificatesIn, leadsTo, privateKeyIn } from './pem.ts';

const NOW = Date.parse('2026-01-01T12:00:00Z');
let cert: string;
/** Another for each test: the texts of earlier tests are cached. */
beforeEach(async () => {
  ({ cert } = await createCA('a', NOW, systemKeySource));
});

test('a text that was just parsed is not parsed again', () => {
  const [first] = certificatesIn(cert);
  expect(certificatesIn(cert)[0]).toBe(first);
  expect(certificatesIn(`${cert}x`)[0]).not.toBe(first);
});

test('a text that was parsed long ago is evicted from the cache', () => {
  const [first] = certificatesIn(cert);
  for (let i = 0; i < 3; i++) certificatesIn(`${cert}${String(i).repeat(512 * 1024)}`);
  expect(certificatesIn(cert)[0]).not.toBe(first);
});

const BEGIN = '-----BEGIN CERTIFICATE-----\n';
const END = '-----END CERTIFICATE-----\n';

describe('certificates in a text, as Go finds them', () => {
  test.each<[string, (pem: string) => string, number]>([
    ['one', (pem) => pem, 1],
    ['two', (pem) => pem + pem, 2],
    ['none', () => '', 0],
    ['words around them', (pem) => `# first\n${pem}# second\n${pem}# end`, 2],
    ['line ends of Windows', (pem) => pem.replaceAll('\n', '\r\n'), 1],
    ['a BEGIN before it', (pem) => `${BEGIN}${pem}`, 1],
    ['an END before it', (pem) => `${END}${pem}`, 1],
    ['a BEGIN and an END before it', (pem) => `${BEGIN}${END}${pem}`, 0],
    ['a BEGIN after it', (pem) => `${pem}${BEGIN}`, 1],
    ['one that was cut off', (pem) => pem.slice(0, -40), 0],
    ['a key before it', (pem) => `-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n${pem}`, 1],
    ['one that cannot be read, and one that can', (pem) => `${BEGIN}AAAA\n${END}${pem}`, 0],
  ])('%s', (_what, make, count) => {
    expect(certificatesIn(make(cert)).length).toBe(count);
  });
});

describe('a private key', () => {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
  const ed = generateKeyPairSync('ed25519').privateKey;
  const parameters = '-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n';
  const locked = rsa.export({ type: 'pkcs1', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' }).toString();
  test.each([
    ['of RSA', rsa.export({ type: 'pkcs8', format: 'pem' })],
    ['of RSA, as OpenSSL wrote it in the past', rsa.export({ type: 'pkcs1', format: 'pem' })],
    ['of ECDSA', ec.export({ type: 'pkcs8', format: 'pem' })],
    ['of ECDSA, after its parameters', `${parameters}${ec.export({ type: 'sec1', format: 'pem' }).toString()}`],
    ['of Ed25519', ed.export({ type: 'pkcs8', format: 'pem' })],
    [
      'of as much text as is read',
      ec
        .export({ type: 'pkcs8', format: 'pem' })
        .toString()
        .padEnd(64 * 1024, '#'),
    ],
    ['after a certificate', `${BEGIN}AAAA\n${END}${ec.export({ type: 'pkcs8', format: 'pem' }).toString()}`],
  ])('%s is parsed', (_what, text) => {
    const key = privateKeyIn(text.toString());
    expect(key?.equals(createPrivateKey(text))).toBe(true);
  });
  test.each([
    ['behind a passphrase', locked],
    ['of text that is no base64', '-----BEGIN PRIVATE KEY-----\nA!A\n-----END PRIVATE KEY-----\n'],
    ['of nothing', '-----BEGIN PRIVATE KEY-----\n\n-----END PRIVATE KEY-----\n'],
    ['that is no key', 'key'],
  ])('%s is not', (_what, text) => {
    expect(privateKeyIn(text)).toBeUndefined();
  });
});

describe('no parsing step takes long', () => {
  test.each(Object.entries(HOSTILE_PEM))('%s', (_what, text) => {
    expect(blockMs(() => [...blocksIn(text)])).toBeLessThan(LONGEST_MS);
    expect(blockMs(() => privateKeyIn(text))).toBeLessThan(LONGEST_MS);
  });
  test.each(Object.entries(certificates))('%s', (_what, make) => {
    const [one, other] = [make(), make()];
    expect(blockMs(() => certificatesIn(`${one}\n`))).toBeLessThan(LONGEST_MS);
    const [[leaf], [issuer]] = [certificatesIn(one), certificatesIn(other)];
    if (!leaf || !issuer) throw new Error('larger than the limit');
    const each = LONGEST_MS / 10; // a chain is compared link by link
    expect(blockMs(() => leadsTo(leaf, [], [issuer]), each)).toBeLessThan(each);
  });
  test.each(Object.entries(keys))('%s', (_what, make) => {
    const text = make();
    expect(blockMs(() => privateKeyIn(text))).toBeLessThan(LONGEST_MS);
  });
});

test('a certificate that is too large is not parsed', async () => {
  const by = await createCA('a', NOW, systemKeySource);
  const hosts = Array.from({ length: 2_000 }, (_, i) => `host-${i}.example.com`);
  const large = await issue(by, { name: 'x', hosts, usages: [], durationMs: 1e9 }, NOW, systemKeySource);
  expect(certificatesIn(large.cert)).toEqual([]);
});

test('a CA bundle that is larger than any of a member is not parsed', () => {
  expect(certificatesIn(cert.repeat(1000)).length).toBe(1000);
  expect(certificatesIn(cert.repeat(1001))).toEqual([]);
});
