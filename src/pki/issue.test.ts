import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { expect, test } from 'vitest';
import { CA_LIFETIME_MS, createCA, issue, type Leaf } from './issue.ts';
import { systemKeySource } from './key-source.ts';

const NOW = Date.parse('2026-01-01T12:00:00Z');
const HOUR = 60 * 60_000;
const leaf: Leaf = {
  name: 'db-server',
  hosts: ['*.db.ns.svc', 'localhost', '127.0.0.1'],
  usages: ['server auth', 'client auth'],
  durationMs: 48 * HOUR,
};
const read = ({ cert }: { readonly cert: string }): X509Certificate => new X509Certificate(cert);

test('a certificate has the requested names, usages and duration', async () => {
  const ca = await createCA('db-client-ca', NOW, systemKeySource);
  const issued = await issue(ca, leaf, NOW, systemKeySource);
  const certificate = read(issued);
  expect(certificate.verify(read(ca).publicKey) && certificate.checkIssued(read(ca))).toBe(true);
  expect(certificate).toMatchObject({ ca: false, subject: 'CN=db-server', issuer: 'CN=db-client-ca' });
  expect(certificate.subjectAltName).toBe('DNS:*.db.ns.svc, DNS:localhost, IP Address:127.0.0.1');
  expect(certificate.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1', '1.3.6.1.5.5.7.3.2']);
  expect(certificate.validFromDate.getTime()).toBe(NOW - 5 * 60_000);
  expect(certificate.validToDate.getTime()).toBe(NOW + 48 * HOUR);
});

test('no certificate is valid longer than its CA', async () => {
  const ca = await createCA('ca', NOW - CA_LIFETIME_MS + HOUR, systemKeySource);
  expect(read(await issue(ca, leaf, NOW, systemKeySource)).validToDate.getTime()).toBe(NOW + HOUR);
});

test('the time and the random source are arguments, and a serial number is never short or negative', async () => {
  const key = await systemKeySource.key();
  const withByte = (byte: number) => ({
    ...systemKeySource,
    key: () => Promise.resolve(key),
    serial: () => new Uint8Array(16).fill(byte),
  });
  const ca = await createCA('ca', NOW, withByte(0xff));
  expect(read(ca).serialNumber).toBe(`7F${'FF'.repeat(15)}`);
  const zero = await issue(ca, leaf, NOW, withByte(0));
  expect(read(zero).serialNumber).toBe(`40${'00'.repeat(15)}`);
  expect((await issue(ca, leaf, NOW, withByte(0))).key).toBe(zero.key);
});

test('two CAs with the same name are distinguished by their keys', async () => {
  const [one, two] = [await createCA('ca', NOW, systemKeySource), await createCA('ca', NOW, systemKeySource)];
  expect(read(await issue(one, leaf, NOW, systemKeySource)).checkIssued(read(two))).toBe(false);
});

test('names are cut to the limit of X.520, and those of one cluster still differ', async () => {
  const name = 'n'.repeat(56);
  const ca = await createCA(`${name}-client-ca`, NOW, systemKeySource);
  const certificate = read(await issue(ca, { ...leaf, name: `${name}-operator-client` }, NOW, systemKeySource));
  expect(certificate.subject).toBe(`CN=${'n'.repeat(48)}-operator-client`);
  expect(certificate.checkIssued(read(ca)) && certificate.verify(read(ca).publicKey)).toBe(true);
});

test('only a CA that the operator created can sign', async () => {
  const ca = await createCA('ca', NOW, systemKeySource);
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const rsa = { ...ca, key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() };
  await expect(issue(rsa, leaf, NOW, systemKeySource)).rejects.toThrow('was not created by the operator');
  await expect(issue({ ...ca, key: 'x' }, leaf, NOW, systemKeySource)).rejects.toThrow();
});
