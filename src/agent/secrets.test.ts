import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { neededSecretFile, secondSecretFile, secretFile, withoutSecrets } from './secrets.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'secrets-'));
  mkdirSync(join(folder, 'agent/store/folder'), { recursive: true });
  writeFileSync(join(folder, 'agent/store/password'), 'planted-in-a-file\n');
  writeFileSync(join(folder, 'agent/store/short'), 'the');
  writeFileSync(join(folder, 'agent/store/empty'), '');
  vi.stubEnv('AGENT_ROOT', folder);
});
afterAll(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

test('an existing key is read as it is, and a missing one is undefined', async () => {
  expect((await secretFile('/agent/store', 'password'))?.toString()).toBe('planted-in-a-file\n');
  expect(await secretFile('/agent/store', 'other')).toBeUndefined();
  expect(await secretFile('/agent/nothing', 'password')).toBeUndefined();
});

test('the second location of a Pod has Secrets of its own', async () => {
  mkdirSync(join(folder, 'agent/copy-store'), { recursive: true });
  writeFileSync(join(folder, 'agent/copy-store/password'), 'of-the-second\n');
  expect((await secondSecretFile('/agent/store', 'password'))?.toString()).toBe('of-the-second\n');
  expect(await secondSecretFile('/agent/store', 'short')).toBeUndefined();
  expect(await secondSecretFile('/agent/store-ca', 'ca.crt')).toBeUndefined();
});

test('a required key that is missing, empty or unreadable is reported with what to do', async () => {
  const missing = { reason: 'Misconfigured', message: 'the Secret s has no "other": add it to the Secret' };
  await expect(neededSecretFile('/agent/store', 'other', 'the Secret s')).rejects.toMatchObject(missing);
  await expect(neededSecretFile('/agent/store', 'empty', 'the Secret s')).rejects.toThrow('has no "empty"');
  await expect(secretFile('/agent/store', 'folder')).rejects.toThrow('cannot be read: EISDIR');
});

test('Secret values are redacted from a text, and ordinary words stay', async () => {
  await secretFile('/agent/store', 'password');
  await secretFile('/agent/store', 'short');
  expect(withoutSecrets('authentication with planted-in-a-file failed')).toBe('authentication with [secret] failed');
});
