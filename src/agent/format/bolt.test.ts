import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AgentFailure } from '../failure.ts';
import { readFacts } from './bolt.ts';

const PAGE = 4096;
const LEAF = 2;
const BRANCH = 1;

const fnv = (bytes: Uint8Array): bigint => {
  let hash = 0xcbf29ce484222325n;
  for (const byte of bytes) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  return hash;
};

function metaPage(id: number, transaction: number, root: number, pages: number, pageSize = PAGE): Buffer {
  const page = Buffer.alloc(pageSize);
  page.writeBigUInt64LE(BigInt(id), 0);
  page.writeUInt16LE(4, 8);
  page.writeUInt32LE(0xed0cdaed, 16);
  page.writeUInt32LE(2, 20);
  page.writeUInt32LE(pageSize, 24);
  page.writeBigUInt64LE(BigInt(root), 32);
  page.writeBigUInt64LE(BigInt(pages), 56);
  page.writeBigUInt64LE(BigInt(transaction), 64);
  page.writeBigUInt64LE(fnv(page.subarray(16, 72)), 72);
  return page;
}

interface Entry {
  readonly key: string;
  readonly value?: Buffer | string;
  readonly bucket?: boolean;
  readonly child?: number;
}

/** As long as needed: a page with free space after it, or the content of an inline bucket. */
function page(id: number, flags: number, entries: readonly Entry[], size?: number): Buffer {
  const header = Buffer.alloc(16 + entries.length * 16);
  header.writeBigUInt64LE(BigInt(id), 0);
  header.writeUInt16LE(flags, 8);
  header.writeUInt16LE(entries.length, 10);
  const data: Buffer[] = [];
  let place = header.length;
  entries.forEach(({ key, value = '', bucket, child = 0 }, i) => {
    const at = 16 + i * 16;
    const bytes = Buffer.from(value);
    if (flags === LEAF) {
      header.writeUInt32LE(bucket === true ? 1 : 0, at);
      header.writeUInt32LE(place - at, at + 4);
      header.writeUInt32LE(key.length, at + 8);
      header.writeUInt32LE(bytes.length, at + 12);
    } else {
      header.writeUInt32LE(place - at, at);
      header.writeUInt32LE(key.length, at + 4);
      header.writeBigUInt64LE(BigInt(child), at + 8);
    }
    data.push(Buffer.from(key), bytes);
    place += key.length + bytes.length;
  });
  const all = Buffer.concat([header, ...data]);
  return size === undefined ? all : Buffer.concat([all, Buffer.alloc(size - all.length)]);
}

const inline = (entries: readonly Entry[]): Buffer => Buffer.concat([Buffer.alloc(16), page(0, LEAF, entries)]);
const rooted = (id: number): Buffer => {
  const header = Buffer.alloc(16);
  header.writeBigUInt64LE(BigInt(id), 0);
  return header;
};

/** Two inline buckets in the root's page, one bucket with a branch and two leaves; these are four pages from `first` on. */
function pagesOf({
  first = 3,
  auth = [{ key: 'authEnabled', value: Buffer.from([1]) }],
  meta = [
    { key: 'consistent_index', value: '12345678' },
    { key: 'storageVersion', value: '3.6.0' },
  ],
  version = '3.6.0',
}: {
  readonly first?: number;
  readonly auth?: readonly Entry[];
  readonly meta?: readonly Entry[];
  readonly version?: string;
} = {}): Buffer {
  const buckets = [
    { key: 'auth', value: inline(auth), bucket: true },
    { key: 'cluster', value: rooted(first + 1), bucket: true },
    { key: 'key', value: rooted(first + 2), bucket: true },
    { key: 'meta', value: inline(meta), bucket: true },
  ];
  const branch = [
    { key: 'a', child: first + 2 },
    { key: 'c', child: first + 3 },
  ];
  const leaf = [
    { key: 'clusterVersion', value: version },
    { key: 'downgrade', value: '{}' },
  ];
  return Buffer.concat([
    page(first, LEAF, buckets, PAGE),
    page(first + 1, BRANCH, branch, PAGE),
    page(first + 2, LEAF, [{ key: 'a', value: 'x' }], PAGE),
    page(first + 3, LEAF, leaf, PAGE),
  ]);
}

const database = (options: Parameters<typeof pagesOf>[0] = {}): Buffer =>
  Buffer.concat([metaPage(0, 7, 3, 7), metaPage(1, 6, 3, 7), Buffer.alloc(PAGE), pagesOf(options)]);

async function factsOf(bytes: Buffer, size = bytes.length) {
  let reads = 0;
  const read = (into: Buffer, _: number, length: number, position: number) => {
    if (++reads > 20_000) throw new Error('too many reads');
    return Promise.resolve({ bytesRead: bytes.copy(into, 0, position, Math.min(bytes.length, position + length)) });
  };
  return readFacts({ read }, size);
}

const changed = (change: (bytes: Buffer) => void): Buffer => {
  const bytes = database();
  change(bytes);
  return bytes;
};

describe('a database', () => {
  test('contains its version and that auth is enabled', async () => {
    const bytes = database();
    const { authFlagAt, ...facts } = await factsOf(bytes);
    expect(facts).toEqual({ storageVersion: '3.6', clusterVersion: '3.6', authEnabled: true });
    expect(bytes[authFlagAt ?? 0]).toBe(1);
    bytes[authFlagAt ?? 0] = 0;
    expect(await factsOf(bytes)).toEqual({ ...facts, authEnabled: false });
  });

  test.each([
    ['of 3.5 has no storage version', database({ meta: [] }), { storageVersion: undefined }],
    ['without the flag has auth disabled', database({ auth: [] }), { authEnabled: false }],
    [
      'whose flag is 0 asks for none',
      database({ auth: [{ key: 'authEnabled', value: '\0' }] }),
      { authEnabled: false },
    ],
    [
      'whose first meta page is damaged is read by its second',
      changed((b) => b.fill(1, 16, 80)),
      { storageVersion: '3.6' },
    ],
    [
      'whose second page is damaged is read by its first',
      changed((b) => b.fill(1, PAGE, PAGE + 80)),
      { storageVersion: '3.6' },
    ],
    ['of another patch is of its minor', database({ version: '3.10.17' }), { clusterVersion: '3.10' }],
  ])('%s', async (_name, bytes, expected) => {
    expect(await factsOf(bytes)).toMatchObject(expected);
  });

  test.each([
    [6, '3.6'],
    [8, '3.5'],
  ])('is read as its newest transaction left it: 7 and %d', async (second, clusterVersion) => {
    const pages = [pagesOf({ version: '3.6.0' }), pagesOf({ first: 7, version: '3.5.0' })];
    const both = [metaPage(0, 7, 3, 11), metaPage(1, second, 7, 11), Buffer.alloc(PAGE), ...pages];
    expect(await factsOf(Buffer.concat(both))).toMatchObject({ clusterVersion });
  });
});

describe('what is no database of etcd', () => {
  const rootAt = 3 * PAGE;
  test.each([
    ['nothing', Buffer.alloc(0), 'meta pages'],
    ['text', Buffer.from('not a database '.repeat(1000)), 'meta pages'],
    ['two damaged meta pages', changed((b) => b.fill(0, 70, 80).fill(0, PAGE + 70, PAGE + 80)), 'meta pages'],
    ['a truncated file', database().subarray(0, 2 * PAGE), 'beyond its end'],
    ['a page with the id of another one', changed((b) => b.writeUInt32LE(9, rootAt)), 'another page is in the place'],
    ['a page of no kind', changed((b) => b.writeUInt16LE(16, rootAt + 8)), 'neither a branch nor a leaf'],
    ['a key beyond the end', changed((b) => b.writeUInt32LE(0xffff_fff0, rootAt + 16 + 4)), ''],
    ['a key of gigabytes', changed((b) => b.writeUInt32LE(0x7fff_ffff, rootAt + 32 + 8)), 'longer than keys'],
    ['a branch below itself', changed((b) => b.writeUInt32LE(4, 4 * PAGE + 16 + 16 + 8)), 'circle'],
    ['a branch to page 1', changed((b) => b.writeUInt32LE(1, 4 * PAGE + 16 + 16 + 8)), 'none of its pages'],
    [
      'a branch to a page that was never used',
      changed((b) => b.writeUInt32LE(7, 4 * PAGE + 16 + 16 + 8)),
      'none of its pages',
    ],
    ['an invalid version', database({ version: 'latest' }), 'not a version'],
    ['no bucket of etcd', changed((b) => b.writeUInt16LE(1, rootAt + 10)), 'no bucket called'],
  ])('%s is refused with a message', async (_name, bytes, words) => {
    const refused = expect(factsOf(bytes)).rejects;
    await refused.toMatchObject({ reason: 'SnapshotDamaged' });
    await expect(factsOf(bytes)).rejects.toThrow(words);
  });
});

test('with any bytes changed and truncated anywhere, it is read or refused, with few reads', async () => {
  const original = database();
  const byte = fc.record({ at: fc.nat(original.length - 1), to: fc.nat(255) });
  const place = fc.oneof(byte, fc.record({ at: fc.integer({ min: 3 * PAGE, max: 3 * PAGE + 400 }), to: fc.nat(255) }));
  await fc.assert(
    fc.asyncProperty(
      fc.array(place, { maxLength: 40 }),
      fc.nat(original.length),
      fc.boolean(),
      async (changes, cut, cuts) => {
        const bytes = Buffer.from(original);
        for (const { at, to } of changes) bytes[at] = to;
        const error = await factsOf(cuts ? bytes.subarray(0, cut) : bytes).then(
          () => undefined,
          (e: unknown) => e,
        );
        if (error !== undefined) expect(error).toBeInstanceOf(AgentFailure);
      },
    ),
    { numRuns: 2_000 },
  );
});
