/** The process around the commands, without an API server. */
import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { main } from './main.ts';

async function run(...args: readonly string[]) {
  let [out, error] = ['', ''];
  const io = {
    env: { KUBECONFIG: '/nonexistent/config' },
    stdin: Readable.from([]),
    stdout: { write: (text: string) => (out += text) },
    stderr: { write: (text: string) => (error += text) },
    signal: new AbortController().signal,
  };
  const code = await main(args, io, '1.2.3', {
    explain: () => Promise.resolve(undefined),
    checkVersion: () => Promise.resolve(undefined),
  });
  return { code, out, error };
}

test('the help lists every command by task, with examples', async () => {
  const { code, out } = await run('--help');
  expect(code).toBe(0);
  await expect(out).toMatchFileSnapshot('render/golden/help.txt');
});

test('the commands of the plugin of the Go operator are all there', async () => {
  const { out } = await run('--help');
  const verbs = [
    'status',
    'members',
    'defrag',
    'compact',
    'alarm',
    'forfeit-leadership',
    'leave',
    'remove-member',
    'add-member',
    'snapshot',
  ];
  for (const verb of verbs) expect(out).toMatch(new RegExp(`^  ${verb}\\b`, 'm'));
  expect(out).toMatch(/-k, --kubeconfig/);
  expect(out).toMatch(/-p, --pod/);
  expect(out).toMatch(/-s, --credentials-secret/);
});

test('the version', async () => expect(await run('--version')).toEqual({ code: 0, out: '1.2.3\n', error: '' }));

test('a command that does not exist is an error, with the nearest one', async () => {
  const { code, error } = await run('statsu');
  expect(code).toBe(1);
  expect(error).toContain('Did you mean status?');
});

test('without a kubeconfig, one sentence says what to set', async () => {
  expect(await run('status')).toEqual({
    code: 1,
    out: '',
    error: 'error: there is no kubeconfig at /nonexistent/config: set KUBECONFIG, or pass --kubeconfig\n',
  });
});

test('a group of commands without one shows them', async () => {
  for (const group of ['snapshot', 'schedule', 'alarm']) {
    const { code, error } = await run(group);
    expect([code, error]).toEqual([1, expect.stringMatching(/^Usage: kubectl etcd/)]);
    expect(error).toContain('list');
  }
});
