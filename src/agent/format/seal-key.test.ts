import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { MOUNTS } from '../../domain/agent-task.ts';
import { mountedKeys, passphraseKey, sealKey } from './seal-key.ts';

const RAW = Buffer.from(Array.from({ length: 32 }, (_, i) => i));
test.each([
  ['32 raw bytes', RAW],
  ['base64', Buffer.from(RAW.toString('base64'))],
  ['base64 with a newline', Buffer.from(`${RAW.toString('base64')}\n`)],
  ['base64 without padding, for URLs', Buffer.from(RAW.toString('base64url'))],
  ['hexadecimal', Buffer.from(RAW.toString('hex'))],
  ['hexadecimal in capitals with spaces around', Buffer.from(` ${RAW.toString('hex').toUpperCase()}\r\n`)],
])('a key may be written as %s', (_how, secret) => {
  expect(sealKey(secret)).toEqual({ bytes: RAW, id: 'fc144f9ecdb1b9de' });
});

test.each([
  ['nothing', ''],
  ['a password', 'correct horse'],
  ['31 bytes', 'a'.repeat(31)],
  ['33 bytes', 'a'.repeat(33)],
  ['hexadecimal of 16 bytes', 'a1'.repeat(16).slice(0, 30)],
  ['base64 of 33 bytes', Buffer.alloc(33).toString('base64')],
])('%s is no key, and the message does not repeat it', (_what, secret) => {
  const attempt = (): unknown => sealKey(Buffer.from(secret));
  expect(attempt).toThrow(/openssl rand -base64 32/);
  if (secret !== '') expect(attempt).not.toThrow(secret);
});

test('a passphrase is stretched: its key and its id are neither its bytes nor a hash of them', async () => {
  const text = 'correct horse battery staple!!!!'; // 32 characters, which would be a key under the name "key"
  const [stretched, raw] = [await passphraseKey(Buffer.from(`${text}\n`)), sealKey(Buffer.from(text))];
  expect(stretched).toEqual(await passphraseKey(Buffer.from(text)));
  expect(stretched.bytes).toHaveLength(32);
  expect(stretched.bytes.equals(raw.bytes)).toBe(false);
  expect(stretched.id).not.toBe(raw.id);
  await expect(passphraseKey(Buffer.from('too short'))).rejects.toThrow('use at least 16');
  await expect(passphraseKey(Buffer.from('too short'))).rejects.not.toThrow('too short');
});

let folder: string | undefined;
afterEach(() => {
  vi.unstubAllEnvs();
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
});

function mount(files: Readonly<Record<string, string>>): void {
  folder = mkdtempSync(join(tmpdir(), 'keys-'));
  const at = join(folder, MOUNTS.encryption);
  mkdirSync(join(at, '..data'), { recursive: true });
  for (const [name, content] of Object.entries(files)) writeFileSync(join(at, name), content);
  vi.stubEnv('AGENT_ROOT', folder);
}

const hex = (byte: string): string => byte.repeat(32);
const idOf = (byte: string): string => sealKey(Buffer.from(hex(byte))).id;
const PHRASE = 'five random words or more';

test('the key encrypts, and previous keys and passphrases decrypt', async () => {
  mount({ key: hex('0a'), 'key-2025': hex('0b'), 'passphrase-2024': PHRASE, unrelated: 'x' });
  const { current, all } = await mountedKeys();
  expect(current.id).toBe(idOf('0a'));
  const phrase = await passphraseKey(Buffer.from(PHRASE));
  expect(all.map(({ id }) => id)).toEqual([idOf('0a'), idOf('0b'), phrase.id]);
});

test('without a key, the passphrase encrypts; beside a key, it decrypts', async () => {
  mount({ passphrase: PHRASE });
  const { current } = await mountedKeys();
  expect(current).toEqual(await passphraseKey(Buffer.from(PHRASE)));
  mount({ passphrase: PHRASE, key: hex('0a') });
  const both = await mountedKeys();
  expect([both.current.id, ...both.all.map(({ id }) => id)]).toEqual([idOf('0a'), idOf('0a'), current.id]);
});

test('a Secret without either is reported, and so is a previous key that is none', async () => {
  mount({ 'key-2025': hex('0b') });
  await expect(mountedKeys()).rejects.toMatchObject({ reason: 'Misconfigured' });
  mount({ key: hex('0a'), 'key-2025': 'nonsense' });
  await expect(mountedKeys()).rejects.toThrow('openssl rand -base64 32');
});
