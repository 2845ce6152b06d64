/** Canaries in every place where a secret can stand: none of them may leave in a report. */
import { describe, expect, test } from 'vitest';
import { redactObject, redactText, secretForms } from './redact.ts';

const CANARY = 'canary-5d1f/ü"x';
const base64 = Buffer.from(CANARY).toString('base64');
const known = secretForms([`${CANARY}\n`, 'abc']);

describe('objects', () => {
  test.each<[where: string, object: object]>([
    ['the data of a Secret', { kind: 'Secret', metadata: { name: 's' }, data: { password: base64 } }],
    ['its stringData', { kind: 'Secret', stringData: { password: CANARY } }],
    ['a Secret in a list', { items: [{ kind: 'Secret', data: { k: base64 } }] }],
    ['an environment variable', { spec: { containers: [{ env: [{ name: 'P', value: CANARY }] }] } }],
    [
      'the last applied configuration',
      { metadata: { annotations: { 'kubectl.kubernetes.io/last-applied-configuration': CANARY } } },
    ],
    ['managed fields', { metadata: { managedFields: [{ fieldsV1: { [CANARY]: {} } }] } }],
  ])('%s', (_, object) => {
    const text = JSON.stringify(redactObject(object));
    expect(text).not.toContain('canary');
    expect(text).not.toContain(base64);
  });

  test('what a supporter needs stays: names, references, keys and sizes', () => {
    const secret = { kind: 'Secret', metadata: { name: 's' }, data: { 'tls.key': 'abcd' } };
    const env = [{ name: 'A', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }];
    expect(redactObject({ secret, env })).toEqual({
      secret: { ...secret, data: { 'tls.key': '[4 characters]' } },
      env,
    });
  });
});

describe('text', () => {
  test.each([
    ['a value of a Secret', `wrote ${CANARY} to disk`],
    ['the same as base64', `data: ${base64}`],
    ['the same in JSON', JSON.stringify({ message: CANARY })],
    ['a private key', `-----BEGIN EC PRIVATE KEY-----\ncanary\n-----END EC PRIVATE KEY-----`],
    ['a private key that is cut off', 'x -----BEGIN PRIVATE KEY-----\ncanary'],
    ['a bearer token', 'Authorization: Bearer canary-token-1'],
    ['a JSON Web Token', 'token eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJjYW5hcnkifQ.c2lnbmF0dXJl'],
    ['a password in a URL', 'dial https://root:canary@example.com/x'],
    ['a password in a command line', 'etcdctl --password=canary get /'],
    ['a password in JSON', '{"password":"canary","user":"root"}'],
    ['an access key', 'secret_access_key = canary'],
  ])('%s', (_, text) => {
    const clean = redactText(text, known);
    expect(clean).toContain('[redacted]');
    expect(clean).not.toMatch(/canary|eyJ/);
    expect(clean).not.toContain(base64);
  });

  test('values of less than four characters are not removed: they occur everywhere', () => {
    expect(redactText('abc of the alphabet', known)).toBe('abc of the alphabet');
  });
  test('other text stays as it is', () => {
    const text = 'member 8e9e05c52164694d has applied index 18230 at https://10.0.0.1:2379';
    expect(redactText(text, known)).toBe(text);
  });
});
