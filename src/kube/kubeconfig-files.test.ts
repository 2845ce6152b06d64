import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { tlsOptions } from './connections.ts';
import { identityHeaders } from './identity.ts';
import { kubeconfigFiles, readKubeconfigs } from './kubeconfig-files.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kubeconfig-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const write = (name: string, content: object): string => {
  const path = join(folder, name);
  writeFileSync(path, stringify(content));
  return path;
};
const config = (cluster: object, user: object, more: object = {}) => ({
  'current-context': 'c',
  contexts: [{ name: 'c', context: { cluster: 'k', user: 'u' } }],
  clusters: [{ name: 'k', cluster: { server: 'https://api:6443/', ...cluster } }],
  users: [{ name: 'u', user }],
  ...more,
});

describe('several kubeconfig files', () => {
  test('are those in KUBECONFIG, or ~/.kube/config', () => {
    expect(kubeconfigFiles({ KUBECONFIG: ['/a', '', '/b'].join(delimiter) }, '/home/me')).toEqual(['/a', '/b']);
    expect(kubeconfigFiles({}, '/home/me')).toEqual(['/home/me/.kube/config']);
  });

  test('are merged: the first definition wins, and a missing file is skipped', async () => {
    const one = write('one', { 'current-context': 'c', users: [{ name: 'u', user: { token: 'first' } }] });
    const two = write('two', config({}, { token: 'second' }, { 'current-context': 'other' }));
    expect(await readKubeconfigs([one, join(folder, 'missing'), two])).toMatchObject({
      server: 'https://api:6443',
      token: 'first',
    });
  });

  test('a context can be chosen', async () => {
    const path = write('config', config({}, {}, { 'current-context': 'nothing' }));
    expect(await readKubeconfigs([path], 'c')).toMatchObject({ server: 'https://api:6443' });
  });

  test('have paths that are relative to each of them', async () => {
    writeFileSync(join(folder, 'token'), 'T');
    const one = write('one', { users: [{ name: 'u', user: { tokenFile: 'token' } }] });
    expect(await readKubeconfigs([one, write('two', config({}, {}))])).toMatchObject({ token: 'T' });
  });
});

describe('settings that only users have', () => {
  test('a user may act as another one', async () => {
    const path = write('config', config({}, { token: 't', as: 'jane', 'as-groups': ['dev'] }));
    const identity = await readKubeconfigs([path]);
    expect(identityHeaders(identity)).toEqual({
      authorization: 'Bearer t',
      'impersonate-user': 'jane',
      'impersonate-group': ['dev'],
    });
  });

  test('a user may accept any certificate of the API server', async () => {
    const path = write('config', config({ 'insecure-skip-tls-verify': true }, {}));
    expect(tlsOptions(await readKubeconfigs([path]))).toEqual({ rejectUnauthorized: false });
    const verified = write('verified', config({}, {}));
    expect(tlsOptions(await readKubeconfigs([verified]))).toEqual({});
  });
});
