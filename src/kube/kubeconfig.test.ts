import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { identityFromKubeconfig, identityFromPod, readKubeconfig } from './kubeconfig.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kubeconfig-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const write = (name: string, content: unknown): string => {
  const path = join(folder, name);
  writeFileSync(path, typeof content === 'string' ? content : stringify(content), { mode: 0o700 });
  return path;
};
const base64 = (text: string): string => Buffer.from(text).toString('base64');
const config = (cluster: object, user: object, more: object = {}) => ({
  'current-context': 'c',
  contexts: [{ name: 'c', context: { cluster: 'k', user: 'u', namespace: 'here' } }],
  clusters: [{ name: 'k', cluster: { server: 'https://api:6443/', ...cluster } }],
  users: [{ name: 'u', user }],
  ...more,
});

describe('a kubeconfig with', () => {
  test.each<[string, object, object, object]>([
    ['nothing but a server', {}, {}, {}],
    [
      'inline data',
      { 'certificate-authority-data': base64('CA') },
      { 'client-certificate-data': base64('C'), 'client-key-data': base64('K') },
      { ca: 'CA', cert: 'C', key: 'K' },
    ],
    [
      'files next to it',
      { 'certificate-authority': 'ca.crt' },
      { 'client-certificate': 'c.crt', 'client-key': 'c.key' },
      { ca: 'in ca.crt', cert: 'in c.crt', key: 'in c.key' },
    ],
    ['a token', {}, { token: 'T' }, { token: 'T' }],
    [
      'a tokenFile, which can be rotated, and a token: the file wins',
      {},
      { token: 'T', tokenFile: 'token' },
      { token: 'in token' },
    ],
    ['another name in the certificate', { 'tls-server-name': 'kubernetes' }, {}, { serverName: 'kubernetes' }],
  ])('%s', async (_what, cluster, user, identity) => {
    for (const name of ['ca.crt', 'c.crt', 'c.key']) write(name, `in ${name}`);
    write('token', 'in token\n');
    const read = await readKubeconfig(write('config', config(cluster, user)));
    expect(read).toEqual({ server: 'https://api:6443', namespace: 'here', ...identity });
  });

  test.each<[string, object, object, string]>([
    ['skipping verification', { 'insecure-skip-tls-verify': true }, {}, 'give the certificate-authority instead'],
    ['a proxy', { 'proxy-url': 'http://p' }, {}, 'without a proxy'],
    ['impersonation', {}, { as: 'root' }, 'credentials of that user'],
    ['a password', {}, { username: 'u', password: 'p' }, 'use a token'],
    ['an auth-provider', {}, { 'auth-provider': { name: 'gcp' } }, 'use an exec plugin'],
  ])(
    '%s is refused: to ignore it would use another identity or an unverified server',
    async (_what, cluster, user, sentence) => {
      await expect(readKubeconfig(write('config', config(cluster, user)))).rejects.toThrow(sentence);
    },
  );

  test.each<[string, unknown, string]>([
    ['no context', {}, 'has no context called ""'],
    ['an unknown context', { 'current-context': 'x' }, 'has no context called "x"'],
    [
      'no server',
      { 'current-context': 'c', contexts: [{ name: 'c', context: { cluster: 'k', user: 'u' } }] },
      'has no server for the cluster "k"',
    ],
    ['an empty file', '', 'has no context'],
  ])('%s is an error that names the problem', async (_what, content, sentence) => {
    await expect(readKubeconfig(write('config', content))).rejects.toThrow(sentence);
  });

  test('a missing file is an error that names the file', async () => {
    await expect(readKubeconfig(join(folder, 'nothing'))).rejects.toThrow('cannot read the kubeconfig');
  });
});

describe('a credential plugin', () => {
  const plugin = (script: string, more: object = {}) =>
    write(
      'config',
      config({}, { exec: { apiVersion: 'client.authentication.k8s.io/v1', command: './plugin', ...more } }),
    ) && write('plugin', `#!/bin/sh\n${script}\n`);
  const answer = (status: object, apiVersion = 'client.authentication.k8s.io/v1') =>
    `cat <<END\n${JSON.stringify({ apiVersion, kind: 'ExecCredential', status })}\nEND`;
  const read = () => readKubeconfig(join(folder, 'config'), { PATH: process.env['PATH'] });

  test('issues a token with its expiry', async () => {
    plugin(answer({ token: 'T', expirationTimestamp: '2026-01-01T00:00:00Z' }));
    expect(await read()).toMatchObject({ token: 'T', goodUntil: Date.parse('2026-01-01T00:00:00Z') });
  });

  test('issues a certificate with its key', async () => {
    plugin(answer({ clientCertificateData: 'C', clientKeyData: 'K' }));
    expect(await read()).toMatchObject({ cert: 'C', key: 'K' });
  });

  test('gets its arguments, its environment, and the cluster if it asks for it', async () => {
    plugin(`echo "$1 $WHO $KUBERNETES_EXEC_INFO" > "${join(folder, 'said')}"\n${answer({ token: 'T' })}`, {
      args: ['login'],
      env: [{ name: 'WHO', value: 'me' }],
      provideClusterInfo: true,
    });
    await read();
    const { readFileSync } = await import('node:fs');
    expect(readFileSync(join(folder, 'said'), 'utf8')).toContain(
      'login me {"apiVersion":"client.authentication.k8s.io/v1"',
    );
    expect(readFileSync(join(folder, 'said'), 'utf8')).toContain('"server":"https://api:6443"');
  });

  test.each([
    ['fails', 'echo no such account >&2; exit 3', {}, 'failed: no such account'],
    ['prints nonsense', 'echo hello', {}, 'did not print JSON'],
    [
      'answers another version',
      answer({ token: 'T' }, 'client.authentication.k8s.io/v9'),
      {},
      'not client.authentication.k8s.io/v1',
    ],
    ['issues nothing', answer({}), {}, 'gave neither a token nor a certificate'],
    ['is not installed', '', { command: 'no-such-plugin', installHint: 'see the manual' }, 'see the manual'],
    ['is too old', '', { apiVersion: 'client.authentication.k8s.io/v1alpha1' }, 'known are'],
  ])('that %s is an error that names the problem', async (_what, script, more, sentence) => {
    plugin(script, more);
    await expect(read()).rejects.toThrow(sentence);
  });

  test('runs once while its credential is valid, and again when the API server refuses that', async () => {
    plugin(`echo x >> "${join(folder, 'runs')}"\n${answer({ token: 'T' })}`);
    let time = 0;
    const source = identityFromKubeconfig(join(folder, 'config'), process.env, () => time);
    await Promise.all([source(), source()]);
    time = 3_600_000;
    await source();
    await source('unreachable');
    const { readFileSync } = await import('node:fs');
    expect(readFileSync(join(folder, 'runs'), 'utf8')).toBe('x\n');
    await source('refused');
    expect(readFileSync(join(folder, 'runs'), 'utf8')).toBe('x\nx\n');
  });
});

describe('in a Pod', () => {
  const env = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '6443' };

  test('S14: the token and the CA are read again every 30 s, at once after a refusal, and kept while unreadable', async () => {
    let time = 0;
    const source = identityFromPod(env, () => time, folder);
    await expect(source()).rejects.toThrow('ENOENT');
    write('token', 'one\n');
    write('ca.crt', 'CA');
    expect(await source()).toEqual({ server: 'https://[fd00::1]:6443', token: 'one', ca: 'CA' });
    write('token', 'two');
    write('ca.crt', 'CA2');
    time = 29_000;
    expect(await source()).toMatchObject({ token: 'one' });
    time = 30_000;
    expect(await source()).toMatchObject({ token: 'two', ca: 'CA2' });
    write('token', 'three');
    time = 31_500;
    expect(await source('refused')).toMatchObject({ token: 'three' });
    rmSync(join(folder, 'token'));
    time = 90_000;
    expect(await source()).toMatchObject({ token: 'three' });
  });

  test('outside of a Pod the error names --kubeconfig', async () => {
    await expect(identityFromPod({}, () => 0, folder)()).rejects.toThrow('this is not a Pod');
  });
});
