import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { TOOLS_FOLDER, toolsCommand } from '../../domain/agent-tools.ts';
import { installTools, layout, type Running, running } from './install-tools.ts';

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'tools-'));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const on = (loader: string, triplet: string): Running => ({
  node: '/usr/local/bin/node',
  agent: '/agent.mjs',
  libraries: [`/lib/${triplet}/libstdc++.so.6`, `/lib/${triplet}/libc.so.6`, loader],
  certificates: '/etc/ssl/certs/ca-certificates.crt',
});

test.each([
  ['amd64', '/lib64/ld-linux-x86-64.so.2', 'x86_64-linux-gnu'],
  ['arm64', '/lib/ld-linux-aarch64.so.1', 'aarch64-linux-gnu'],
])('on %s every file has the same path in the volume', (_architecture, loader, triplet) => {
  const files = layout(on(loader, triplet));
  expect(files.get('loader')).toBe(loader);
  expect(files.get('lib/libc.so.6')).toBe(`/lib/${triplet}/libc.so.6`);
  expect([...files.keys()].filter((name) => !name.startsWith('lib/'))).toEqual([
    'node',
    'agent.mjs',
    'ca-certificates.crt',
    'loader',
  ]);
});

test('a missing loader is an error', () => {
  expect(() => layout({ ...on('', ''), libraries: ['/lib/libc.so.6'] })).toThrow('is a dynamic loader');
});

/** Small files in place of large ones. */
function small(name: string): Running {
  const folder = join(dir, name);
  mkdirSync(folder);
  const file = (base: string): string => {
    writeFileSync(join(folder, base), base);
    return join(folder, base);
  };
  return {
    node: file('node'),
    agent: file('agent.mjs'),
    libraries: [file('libc.so.6'), file('ld-linux-x86-64.so.2')],
    certificates: file('ca.crt'),
  };
}

describe('a copy', () => {
  test('is complete or absent, and an interrupted one is made again', async () => {
    const parts = small('cut');
    const volume = join(dir, 'cut-volume');
    await expect(installTools({ ...parts, certificates: '/missing' }, join(volume, 'agent'))).rejects.toThrow('ENOENT');
    expect(existsSync(join(volume, 'agent'))).toBe(false);
    await installTools(parts, join(volume, 'agent'));
    expect(readdirSync(volume)).toEqual(['agent']);
    expect(readFileSync(join(volume, 'agent/lib/libc.so.6'), 'utf8')).toBe('libc.so.6');
  });

  test('that exists is not changed', async () => {
    const parts = small('again');
    const folder = join(dir, 'again-volume/agent');
    await installTools(parts, folder);
    const { ino } = statSync(join(folder, 'node'));
    await installTools({ ...parts, node: '/missing' }, folder);
    expect(statSync(join(folder, 'node')).ino).toBe(ino);
  });
});

test('Node runs from it without anything else: no libc, no loader, no shell', async () => {
  const root = join(dir, 'root');
  const agent = join(dir, 'agent.mjs');
  writeFileSync(agent, 'process.stdout.write(`${process.argv[2]} in ${process.cwd()}, ${process.version}`)');
  await installTools({ ...running(), agent }, join(root, TOOLS_FOLDER));
  expect(readdirSync(root)).toEqual(['tools']);
  const command = ['--map-root-user', 'chroot', root, ...toolsCommand(), 'restore'];
  const said = execFileSync('unshare', command, { encoding: 'utf8', timeout: 60_000 });
  expect(said).toBe(`restore in /, ${process.version}`);
}, 60_000);
