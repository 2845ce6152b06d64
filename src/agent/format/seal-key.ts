/**
 * The keys of encrypted snapshots, from the Secret that encryption.keySecretRef names. `key` encrypts: 32 random bytes,
 * used as they are. Without it, `passphrase` does, stretched with scrypt: a text that a person chose would otherwise be
 * found by trying. `key-…` and `passphrase-…` only decrypt: what was encrypted before the key was changed.
 */
import { createHash, createHmac, hkdfSync, scrypt } from 'node:crypto';
import { promisify } from 'node:util';
import { MOUNTS } from '../../domain/agent-task.ts';
import { misconfigured } from '../failure.ts';
import { neededSecretFile, secretNames } from '../secrets.ts';

export const KEY_BYTES = 32;
export const ID_BYTES = 8;
const MIN_PASSPHRASE = 16;
/** 64 MiB and a fifth of a second: much for each guess, and a quarter of what the agent's container has. */
const COST = { N: 2 ** 16, r: 8, p: 1, maxmem: 2 ** 27 };
const NAME = /^(key|passphrase)([-.].+)?$/;

export interface SealKey {
  readonly bytes: Buffer;
  /** Identifies the key without revealing anything about it. */
  readonly id: string;
}

export interface KeyRing {
  /** Encrypts. */
  readonly current: SealKey;
  /** Decrypt; the current one is among them. */
  readonly all: readonly SealKey[];
}

function keyOf(bytes: Buffer): SealKey {
  const id = createHash('sha256').update('etcd-operator snapshot key id\0').update(bytes).digest('hex');
  return { bytes, id: id.slice(0, 2 * ID_BYTES) };
}

/** From the value of a Secret: 32 raw bytes, or base64 or hexadecimal of them. */
export const sealKey = (secret: Buffer): SealKey => keyOf(keyBytes(secret));

function keyBytes(secret: Buffer): Buffer {
  if (secret.length === KEY_BYTES) return Buffer.from(secret);
  const text = secret.toString('latin1').trim();
  if (/^[0-9a-f]{64}$/i.test(text)) return Buffer.from(text, 'hex');
  if (/^[A-Za-z0-9+/_-]{43}=?$/.test(text)) return Buffer.from(text, 'base64');
  throw misconfigured(
    `the encryption key has ${secret.length} bytes and is neither 32 raw bytes nor 32 bytes as base64 or hexadecimal: put the output of "openssl rand -base64 32" into the Secret, or a passphrase under the name "passphrase"`,
  );
}

export async function passphraseKey(secret: Buffer): Promise<SealKey> {
  const text = secret.toString('utf8').trim().normalize('NFC');
  if (text.length < MIN_PASSPHRASE)
    throw misconfigured(
      `the passphrase of the snapshots has ${text.length} characters: use at least ${MIN_PASSPHRASE}, such as five random words`,
    );
  // The same salt for all: a restore knows nothing but the passphrase. Each object has a salt of its own.
  const derive = promisify<string, string, number, typeof COST, Buffer>(scrypt);
  return keyOf(await derive(text, 'etcd-operator snapshot passphrase', KEY_BYTES, COST));
}

/** All keys of the task's Secret. */
export async function mountedKeys(): Promise<KeyRing> {
  const names = (await secretNames(MOUNTS.encryption)).filter((name) => NAME.test(name)).sort();
  const first = names.includes('passphrase') && !names.includes('key') ? 'passphrase' : 'key';
  const current = await keyIn(first);
  const others: SealKey[] = [];
  for (const name of names) if (name !== first) others.push(await keyIn(name));
  return { current, all: [current, ...others] };
}

async function keyIn(name: string): Promise<SealKey> {
  const secret = await neededSecretFile(MOUNTS.encryption, name, 'the Secret with the encryption key');
  return name.startsWith('passphrase') ? passphraseKey(secret) : sealKey(secret);
}

/** Authenticates a text with the key, for another purpose than encryption. */
export const authenticationOf = (key: SealKey, text: string): string =>
  createHmac('sha256', Buffer.from(hkdfSync('sha256', key.bytes, '', 'etcd-operator snapshot manifest', KEY_BYTES)))
    .update(text)
    .digest('hex');
