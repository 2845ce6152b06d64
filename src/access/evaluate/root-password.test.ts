/** Evaluation of the root password Secrets. */
import { describe, expect, test } from 'vitest';
import { aCluster, CLUSTER_UID } from '../../../test/support/builders/builders.ts';
import type { Secret } from '../../gen/kube.ts';
import { passwordSecrets, rootPassword } from './root-password.ts';

const cluster = aCluster({ spec: { auth: { enabled: true, rootCredentialsSecretRef: { name: 'mine' } } } });
const base64 = (value: string | Buffer): string => Buffer.from(value).toString('base64');
const secret = (data: Readonly<Record<string, string | Buffer>>, owned = false): Secret => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: owned
    ? { ownerReferences: [{ apiVersion: 'x', kind: 'EtcdCluster', name: 'db', uid: CLUSTER_UID, controller: true }] }
    : {},
  data: Object.fromEntries(Object.entries(data).map(([key, value]) => [key, base64(value)])),
});
const evaluated = (given?: Secret, kept?: Secret) => {
  const found = rootPassword(
    cluster,
    new Map([
      ['mine', given],
      ['db-root-applied', kept],
    ]),
  );
  if (!found) throw new Error('auth is not enabled');
  return found;
};
const kept = (data: Readonly<Record<string, string>>): Secret => secret(data, true);
const given = (password: string | Buffer): Secret => secret({ password });

test('only the two Secrets are read, and none without auth', () => {
  expect(passwordSecrets(cluster)).toEqual(['mine', 'db-root-applied']);
  expect(passwordSecrets(aCluster({ spec: { auth: {} } }))).toEqual([]);
  expect(rootPassword(aCluster(), new Map())).toBeUndefined();
});

describe('the password of the user', () => {
  test.each<[string, Secret | undefined, string, string]>([
    ['nothing', undefined, 'AuthCredentialsMissing', 'Secret mine does not exist'],
    ['no such key', secret({ username: 'root' }), 'AuthCredentialsMissing', 'Secret mine has no key password'],
    ['an empty password', given(''), 'AuthCredentialsMissing', 'Secret mine has no key password'],
    [
      'more bytes than etcd accepts',
      given('é'.repeat(37)),
      'AuthCredentialsInvalid',
      'has 74 bytes, and etcd accepts at most 72',
    ],
    ['no text', given(Buffer.from([0x61, 0xff])), 'AuthCredentialsInvalid', 'is not UTF-8 text'],
  ])('%s is reported, and the stored password is still used', (_name, found, reason, words) => {
    const { view, passwords } = evaluated(found, kept({ password: 'old' }));
    expect(view).toMatchObject({ problem: { reason }, kept: 'same' });
    expect(view.problem?.message).toContain(words);
    expect(passwords.map(({ password }) => password)).toEqual(['old']);
  });

  test('is used byte for byte, with a trailing newline', () => {
    expect(evaluated(given('x'.repeat(71) + '\n')).given).toBe(`${'x'.repeat(71)}\n`);
  });
});

describe('the stored password', () => {
  test.each<[string, Secret | undefined, string, readonly string[]]>([
    ['nothing yet', undefined, 'nothing', ['new']],
    ['the given one', kept({ password: 'new' }), 'same', ['new']],
    ['another one', kept({ password: 'old' }), 'another', ['old', 'new']],
    ['a started change', kept({ password: 'old', next: 'new' }), 'intended', ['old', 'new']],
    [
      'a started change, and the user has changed it again',
      kept({ password: 'old', next: 'mid' }),
      'intended',
      ['old', 'mid', 'new'],
    ],
    ['a first password that is being set', kept({ next: 'mid' }), 'intended', ['mid', 'new']],
    ['a Secret that a user has emptied', kept({ password: '' }), 'nothing', ['new']],
  ])('%s', (_name, found, as, expected) => {
    const { view, passwords } = evaluated(given('new'), found);
    expect(view).toEqual({ kept: as });
    expect(passwords).toEqual(expected.map((password) => ({ user: 'root', password })));
  });

  test('a foreign Secret of that name is not used, and reported', () => {
    const { view, passwords } = evaluated(given('new'), secret({ password: 'theirs' }));
    expect(view).toMatchObject({ kept: 'nothing', problem: { reason: 'NameConflict' } });
    expect(view.problem?.message).toContain('Secret db-root-applied exists and belongs to no controller');
    expect(passwords.map(({ password }) => password)).toEqual(['new']);
  });
});

test('the view for decisions contains no password', () => {
  const { view } = evaluated(given('planted-new'), kept({ password: 'planted-old', next: 'planted-mid' }));
  expect(JSON.stringify(view)).not.toContain('planted');
});

test('a stored password that is too long is never sent to etcd', () => {
  const { view, passwords } = evaluated(given('new'), kept({ password: 'x'.repeat(73) }));
  expect(view.kept).toBe('nothing');
  expect(passwords.map(({ password }) => password)).toEqual(['new']);
});
