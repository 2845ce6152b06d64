import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { run } from '../process.ts';
import { readElf } from './elf.ts';
import { libraries } from './operator.ts';

const onLinux = test.skipIf(process.platform !== 'linux');

onLinux('the architecture, the loader and the libraries of Node are read from its file', async () => {
  const elf = readElf(await readFile(process.execPath));
  expect(elf?.machine).toBe(process.arch === 'x64' ? 'amd64' : process.arch);
  expect(elf?.interpreter).toMatch(/^\/lib.*\/ld-linux-.*\.so\.\d$/);
  expect(elf?.needed).toEqual(expect.arrayContaining(['libc.so.6', 'libstdc++.so.6']));
});

onLinux('readelf, where it is installed, agrees', async (context) => {
  const readelf = await run('readelf', ['--dynamic', process.execPath]).catch(() => undefined);
  if (!readelf) return context.skip('no readelf on this machine');
  const names = [...readelf.stdout.matchAll(/\(NEEDED\).*\[(.*)\]/g)].map((match) => match[1]);
  expect(readElf(await readFile(process.execPath))?.needed).toEqual(names);
});

test.each([
  ['a text', Buffer.from('#!/bin/sh\n'.repeat(10))],
  ['nothing', Buffer.alloc(0)],
  ['a 32-bit program', Buffer.from('7f454c4601'.padEnd(128, '0'), 'hex')],
])('%s is no program', (_name, bytes) => {
  expect(readElf(bytes)).toBeUndefined();
});

onLinux('a library that no package has fails the build with its name', async () => {
  const architecture = process.arch === 'x64' ? 'amd64' : 'arm64';
  const unpacked = { library: () => Promise.resolve(undefined), licenses: new Map<string, Buffer>() };
  await expect(libraries(await readFile(process.execPath), architecture, unpacked)).rejects.toThrow(
    /Node needs ld-linux-.* no package of debian\.lock\.json has it/,
  );
});
