import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Manifest, manifestText, parseManifest } from './manifest.ts';
import { sealKey } from './seal-key.ts';

const SHA = 'ab'.repeat(32);
const KEY = 'backups/nightly.db';
const MANIFEST: Manifest = {
  version: 1,
  object: { key: 'nightly.db', sizeBytes: 20_512, sha256: SHA },
  database: { sizeBytes: 20_512, sha256: SHA },
  snapshot: { namespace: 'ns', name: 'nightly', uid: 'u1' },
  cluster: { name: 'db', uid: 'u2', id: '0123456789abcdef' },
  schedule: { name: 'every-night', uid: 'u3' },
  revision: 42,
  totalKeys: 7,
  hash: { revision: 42, hash: 4_294_967_295, compactRevision: -1 },
  etcdVersion: '3.6.16',
  storageVersion: '3.6.0',
  authEnabled: false,
  member: 'db-x2y3z',
  compression: 'none',
  takenAt: '2026-11-15T22:00:00.000Z',
  durationMs: 12,
};
const ENCRYPTED: Manifest = {
  ...MANIFEST,
  object: { key: 'nightly.db.zst.enc', sizeBytes: 100, sha256: 'cd'.repeat(32) },
  compression: 'zstd',
  encryption: { algorithm: 'AES-256-GCM', keyId: '0123456789abcdef' },
};
const parse = (value: unknown, key = KEY): Manifest => parseManifest(Buffer.from(JSON.stringify(value)), key);

test('a written manifest is parsed', () => {
  expect(parseManifest(Buffer.from(manifestText(MANIFEST)), KEY)).toEqual(MANIFEST);
  expect(parse(ENCRYPTED, 'nightly.db.zst.enc')).toEqual(ENCRYPTED);
  const { schedule: _, hash: __, storageVersion: ___, ...least } = MANIFEST;
  expect(parse(least)).toEqual(least);
});

test('fields of a later version are ignored, and do not stop a restore', () => {
  expect(parse({ ...MANIFEST, region: 'moon', object: { ...MANIFEST.object, parts: 3 } })).toEqual(MANIFEST);
});

test.each<[string, unknown]>([
  ['of an unknown version', { ...MANIFEST, version: 2 }],
  ['a list', [MANIFEST]],
  ['null', null],
  ['of another object', { ...MANIFEST, object: { ...MANIFEST.object, key: 'other.db' } }],
  ['of an object elsewhere', { ...MANIFEST, object: { ...MANIFEST.object, key: '../backups/nightly.db' } }],
  ['with a size below zero', { ...MANIFEST, object: { ...MANIFEST.object, sizeBytes: -1 } }],
  ['with a size beyond what a number can count', { ...MANIFEST, database: { sizeBytes: 2 ** 60, sha256: SHA } }],
  ['with a size that is no whole number', { ...MANIFEST, object: { ...MANIFEST.object, sizeBytes: 1.5 } }],
  ['with a size as text', { ...MANIFEST, object: { ...MANIFEST.object, sizeBytes: '20512' } }],
  ['with a digest in capitals', { ...MANIFEST, object: { ...MANIFEST.object, sha256: SHA.toUpperCase() } }],
  ['with half a digest', { ...MANIFEST, database: { sizeBytes: 1, sha256: 'ab' } }],
  ['with a hash beyond 32 bits', { ...MANIFEST, hash: { revision: 1, hash: 2 ** 32, compactRevision: 0 } }],
  ['with an invalid version', { ...MANIFEST, etcdVersion: '3.6' }],
  ['with a version that is a command', { ...MANIFEST, etcdVersion: '3.6.0; reboot' }],
  ['with an unknown compression', { ...MANIFEST, compression: 'gzip' }],
  [
    'with a cipher that we do not know',
    { ...ENCRYPTED, encryption: { algorithm: 'ROT13', keyId: '0123456789abcdef' } },
  ],
  ['with an invalid time', { ...MANIFEST, takenAt: 'yesterday' }],
  ['with an endless name', { ...MANIFEST, member: 'x'.repeat(254) }],
  ['without a revision', { ...MANIFEST, revision: undefined }],
  ['that contradicts itself in the size', { ...MANIFEST, object: { ...MANIFEST.object, sizeBytes: 1 } }],
  ['that contradicts itself in the digest', { ...MANIFEST, object: { ...MANIFEST.object, sha256: 'cd'.repeat(32) } }],
  ['with a prototype', JSON.parse('{"__proto__": {"version": 1}}')],
])('one %s is refused', (_what, value) => {
  const { object } = (value ?? {}) as Partial<Manifest>;
  const key = object?.key === 'nightly.db.zst.enc' ? object.key : KEY;
  expect(() => parse(value, key)).toThrow(expect.objectContaining({ reason: 'ManifestDamaged' }));
});

test('a manifest that is not JSON, not UTF-8, or too long is refused', () => {
  const long = Buffer.from(JSON.stringify({ ...MANIFEST, padding: 'x'.repeat(70_000) }));
  for (const bytes of [Buffer.from('{'), Buffer.of(), Buffer.of(0xff, 0xfe), Buffer.from('{}{}'), long])
    expect(() => parseManifest(bytes, KEY)).toThrow(expect.objectContaining({ reason: 'ManifestDamaged' }));
});

test('any other text is refused with the same reason, and no other error is thrown', () => {
  const text = Buffer.from(manifestText(MANIFEST));
  const refusedOrSame = (bytes: Uint8Array): boolean => {
    try {
      return parseManifest(bytes, KEY).version === 1;
    } catch (error) {
      return (error as { readonly reason?: string }).reason === 'ManifestDamaged';
    }
  };
  fc.assert(fc.property(fc.jsonValue(), (value) => refusedOrSame(Buffer.from(JSON.stringify(value)))));
  fc.assert(
    fc.property(fc.nat(text.length - 1), fc.integer({ min: 1, max: 255 }), (at, mask) => {
      const bent = Buffer.from(text);
      bent[at] = (bent[at] ?? 0) ^ mask;
      return refusedOrSame(bent);
    }),
  );
});

const SEAL_KEY = sealKey(Buffer.alloc(32, 7));
const AUTHENTIC: Manifest = {
  ...ENCRYPTED,
  object: { ...ENCRYPTED.object, path: 'ns/db/nightly.db.zst.enc' },
  encryption: { algorithm: 'AES-256-GCM', keyId: SEAL_KEY.id },
};
const AT = 'backups/ns/db/nightly.db.zst.enc';

test('the manifest of an encrypted snapshot is authenticated with its key, and with no other', () => {
  const content = Buffer.from(manifestText(AUTHENTIC, SEAL_KEY));
  const keys = [sealKey(Buffer.alloc(32, 8)), SEAL_KEY];
  expect(parseManifest(content, AT, keys)).toMatchObject({ ...AUTHENTIC, authentic: true });
  for (const others of [[], keys.slice(0, 1)])
    expect(parseManifest(content, AT, others)).not.toHaveProperty('authentic');
  expect(parseManifest(Buffer.from(manifestText(AUTHENTIC)), AT, keys)).not.toHaveProperty('authentic');
});

test('a manifest that was changed, or moved to the place of another, is refused', () => {
  const json = JSON.parse(manifestText(AUTHENTIC, SEAL_KEY)) as Manifest;
  const later = { ...json, addedLater: 1 };
  const changes: readonly unknown[] = [
    { ...json, takenAt: '2026-11-16T22:00:00.000Z' },
    { ...json, snapshot: { ...json.snapshot, uid: 'u9' } },
    { ...json, object: { ...json.object, sha256: 'ef'.repeat(32) } },
    { ...json, mac: '0'.repeat(64) },
    later,
  ];
  for (const changed of changes)
    expect(() => parseManifest(Buffer.from(JSON.stringify(changed)), AT, [SEAL_KEY])).toThrow('authentication code');
  const content = Buffer.from(manifestText(json, undefined));
  const elsewhere = 'backups/ns/other/nightly.db.zst.enc';
  expect(() => parseManifest(content, elsewhere, [SEAL_KEY])).toThrow('belongs to ns/db/nightly.db.zst.enc');
});

test('the authentication covers fields that a later version adds', () => {
  const later = { ...AUTHENTIC, addedLater: 1 } as Manifest;
  const parsed = parseManifest(Buffer.from(manifestText(later, SEAL_KEY)), AT, [SEAL_KEY]);
  expect(parsed).toMatchObject({ authentic: true });
  expect(parsed).not.toHaveProperty('addedLater');
});
