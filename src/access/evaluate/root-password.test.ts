/** What the Secrets of a cluster say about the password of root. */
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
const judged = (given?: Secret, kept?: Secret) => {
  const found = rootPassword(
    cluster,
    new Map([
      ['mine', given],
      ['db-root-applied', kept],
    ]),
  );
  if (!found) throw new Error('nobody is to log in');
  return found;
};
const kept = (data: Readonly<Record<string, string>>): Secret => secret(data, true);
const given = (password: string | Buffer): Secret => secret({ password });

test('only the two Secrets are read, and none where nobody is to log in', () => {
  expect(passwordSecrets(cluster)).toEqual(['mine', 'db-root-applied']);
  expect(passwordSecrets(aCluster({ spec: { auth: {} } }))).toEqual([]);
  expect(rootPassword(aCluster(), new Map())).toBeUndefined();
});

describe('what was given', () => {
  test.each<[string, Secret | undefined, string, string]>([
    ['nothing', undefined, 'AuthCredentialsMissing', 'Secret mine is not there'],
    ['no such key', secret({ username: 'root' }), 'AuthCredentialsMissing', 'Secret mine has no password'],
    ['an empty one', given(''), 'AuthCredentialsMissing', 'Secret mine has no password'],
    [
      'more than etcd takes',
      given('é'.repeat(37)),
      'AuthCredentialsInvalid',
      'has 74 bytes, and etcd takes at most 72',
    ],
    ['no text', given(Buffer.from([0x61, 0xff])), 'AuthCredentialsInvalid', 'is not UTF-8 text'],
  ])('%s is said, and the one that is kept goes on being used', (_name, found, reason, words) => {
    const { view, logins } = judged(found, kept({ password: 'old' }));
    expect(view).toMatchObject({ problem: { reason }, kept: 'same' });
    expect(view.problem?.message).toContain(words);
    expect(logins.map(({ password }) => password)).toEqual(['old']);
  });

  test('is taken byte for byte, with the line end that somebody has put there', () => {
    expect(judged(given('x'.repeat(71) + '\n')).given).toBe(`${'x'.repeat(71)}\n`);
  });
});

describe('what is kept', () => {
  test.each<[string, Secret | undefined, string, readonly string[]]>([
    ['nothing yet', undefined, 'nothing', ['new']],
    ['what was given', kept({ password: 'new' }), 'same', ['new']],
    ['another', kept({ password: 'old' }), 'another', ['old', 'new']],
    ['what was begun', kept({ password: 'old', next: 'new' }), 'intended', ['old', 'new']],
    [
      'what was begun before the user changed it again',
      kept({ password: 'old', next: 'mid' }),
      'intended',
      ['old', 'mid', 'new'],
    ],
    ['a first one that was begun', kept({ next: 'mid' }), 'intended', ['mid', 'new']],
    ['a Secret that somebody has emptied', kept({ password: '' }), 'nothing', ['new']],
  ])('%s', (_name, found, as, passwords) => {
    const { view, logins } = judged(given('new'), found);
    expect(view).toEqual({ kept: as });
    expect(logins).toEqual(passwords.map((password) => ({ user: 'root', password })));
  });

  test("somebody else's Secret of that name is not used, and said", () => {
    const { view, logins } = judged(given('new'), secret({ password: 'theirs' }));
    expect(view).toMatchObject({ kept: 'nothing', problem: { reason: 'NameConflict' } });
    expect(view.problem?.message).toContain('Secret db-root-applied exists and belongs to nobody');
    expect(logins.map(({ password }) => password)).toEqual(['new']);
  });
});

test('no password is part of what decisions are made from', () => {
  const { view } = judged(given('planted-new'), kept({ password: 'planted-old', next: 'planted-mid' }));
  expect(JSON.stringify(view)).not.toContain('planted');
});

test('what is kept and longer than any password is never sent to etcd', () => {
  const { view, logins } = judged(given('new'), kept({ password: 'x'.repeat(73) }));
  expect(view.kept).toBe('nothing');
  expect(logins.map(({ password }) => password)).toEqual(['new']);
});
