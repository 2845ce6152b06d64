/**
 * What a restore has to know before etcdutl reads the file: which version wrote it, and whether auth is enabled. A
 * reader of bbolt's file format that looks up single keys. The file is untrusted: every offset in it is checked, the
 * depth of a tree is bounded, and no more than one key is read at a time.
 */
import { AgentFailure } from '../failure.ts';

export interface DatabaseFacts {
  /** The minor version that the data was written for, such as `3.6`; from 3.6 on. */
  readonly storageVersion: string | undefined;
  /** The minor version that the members had agreed on; `undefined` in a cluster that was too young for that. */
  readonly clusterVersion: string | undefined;
  readonly authEnabled: boolean;
  /** The offset of the auth flag in the file: one byte, which is 1. */
  readonly authFlagAt?: number;
}

const MAGIC = 0xed0cdaed;
const FORMAT = 2;
const PAGE_HEADER = 16;
const META_BYTES = 64;
const ELEMENT = 16;
const BUCKET_HEADER = 16;
const BRANCH = 0x01;
const LEAF = 0x02;
const IS_BUCKET = 0x01;
/** bbolt's own limit of a key. */
const MAX_KEY_BYTES = 32_768;
/** Of the values read here: versions, flags, and small inline buckets. */
const MAX_VALUE_BYTES = 1024 * 1024;
/** A tree of pages with two entries each would be this deep with more pages than a disk has. */
const MAX_DEPTH = 48;
const PAGE_SIZES = Array.from({ length: 8 }, (_, i) => 1024 << i);

const damaged = (what: string): AgentFailure =>
  new AgentFailure(
    'SnapshotDamaged',
    `the snapshot is not a database of etcd: ${what}. Restore another snapshot, or take a new one`,
  );

/** The part of a FileHandle that is used. */
interface ReadableFile {
  read(into: Buffer, offset: number, length: number, position: number): Promise<{ readonly bytesRead: number }>;
}

/** The file, or an inline bucket: offsets outside of it do not exist. */
interface Space {
  at(position: number, length: number): Promise<Buffer>;
}

interface Meta {
  readonly pageSize: number;
  readonly root: bigint;
  /** The first page that was never used. */
  readonly end: bigint;
  readonly transaction: bigint;
}

interface Database {
  readonly space: Space;
  readonly meta: Meta;
}

/** A bucket: a tree of pages of its own, or one page inside the value of its parent. */
type Bucket = { readonly root: bigint } | { readonly inline: Buffer; readonly position: number };

function fnv64a(bytes: Uint8Array): bigint {
  let hash = 0xcbf29ce484222325n;
  for (const byte of bytes) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  return hash;
}

const spaceOf = (file: ReadableFile, size: number): Space => ({
  at: async (position, length) => {
    if (position + length > size) throw damaged('it points beyond its end');
    const bytes = Buffer.alloc(length);
    const { bytesRead } = await file.read(bytes, 0, length, position);
    if (bytesRead !== length) throw damaged('it became shorter while it was read');
    return bytes;
  },
});

const inlineSpace = (page: Buffer): Space => ({
  at: (position, length) => {
    if (position + length > page.length) return Promise.reject(damaged('a bucket points beyond its end'));
    return Promise.resolve(page.subarray(position, position + length));
  },
});

/** One of the two meta pages; `undefined` when it was not written completely, or is none. */
function metaOf(page: Buffer): Meta | undefined {
  const bytes = page.subarray(PAGE_HEADER, PAGE_HEADER + META_BYTES);
  const pageSize = bytes.readUInt32LE(8);
  const isMeta = bytes.readUInt32LE(0) === MAGIC && bytes.readUInt32LE(4) === FORMAT && PAGE_SIZES.includes(pageSize);
  if (!isMeta || fnv64a(bytes.subarray(0, 56)) !== bytes.readBigUInt64LE(56)) return undefined;
  return {
    pageSize,
    root: bytes.readBigUInt64LE(16),
    end: bytes.readBigUInt64LE(40),
    transaction: bytes.readBigUInt64LE(48),
  };
}

/**
 * The newer of the valid meta pages. The second starts where the first page ends, so its offset also gives the page
 * size.
 */
async function newestMeta(space: Space, size: number): Promise<Meta> {
  const metaAt = async (position: number): Promise<readonly Meta[]> => {
    if (position + PAGE_HEADER + META_BYTES > size) return [];
    const meta = metaOf(await space.at(position, PAGE_HEADER + META_BYTES));
    return meta && (position === 0 || position === meta.pageSize) ? [meta] : [];
  };
  const found: Meta[] = [];
  for (const position of [0, ...PAGE_SIZES]) found.push(...(await metaAt(position)));
  const [newest] = found.toSorted((a, b) => (a.transaction < b.transaction ? 1 : -1));
  if (!newest) throw damaged('neither of its two meta pages is valid');
  return newest;
}

interface Page {
  readonly flags: number;
  readonly count: number;
  /** The offset of the page. */
  readonly position: number;
}

const pageOf = (header: Buffer, position: number): Page => ({
  flags: header.readUInt16LE(8),
  count: header.readUInt16LE(10),
  position,
});

async function pageAt({ space, meta }: Database, id: bigint): Promise<Page> {
  if (id < 2n || id >= meta.end) throw damaged(`it points to page ${id}, which is none of its pages`);
  const position = Number(id) * meta.pageSize;
  const header = await space.at(position, PAGE_HEADER);
  if (header.readBigUInt64LE(0) !== id) throw damaged(`another page is in the place of page ${id}`);
  return pageOf(header, position);
}

interface Element {
  readonly key: Buffer;
  /** Of a leaf: the kind of value, and its offset; of a branch: the child page. */
  readonly flags: number;
  readonly value: { readonly position: number; readonly length: number };
  readonly child: bigint;
}

async function elementAt(space: Space, page: Page, index: number): Promise<Element> {
  const place = page.position + PAGE_HEADER + index * ELEMENT;
  const bytes = await space.at(place, ELEMENT);
  const leaf = page.flags === LEAF;
  const offset = bytes.readUInt32LE(leaf ? 4 : 0);
  const length = bytes.readUInt32LE(leaf ? 8 : 4);
  if (length > MAX_KEY_BYTES) throw damaged('a key is longer than keys can be');
  return {
    key: await space.at(place + offset, length),
    flags: leaf ? bytes.readUInt32LE(0) : 0,
    value: { position: place + offset + length, length: leaf ? bytes.readUInt32LE(12) : 0 },
    child: leaf ? 0n : bytes.readBigUInt64LE(8),
  };
}

/** The last element whose key is not above this one. */
async function lastUpTo(space: Space, page: Page, key: Buffer): Promise<Element | undefined> {
  let found: Element | undefined;
  for (let low = 0, high = page.count - 1; low <= high; ) {
    const middle = (low + high) >> 1;
    const element = await elementAt(space, page, middle);
    if (element.key.compare(key) <= 0) {
      found = element;
      low = middle + 1;
    } else high = middle - 1;
  }
  return found;
}

interface Found {
  readonly isBucket: boolean;
  readonly value: Buffer;
  /** The offset of the value in the file. */
  readonly position: number;
}

async function lookUp(database: Database, bucket: Bucket, name: string): Promise<Found | undefined> {
  const key = Buffer.from(name);
  const space = 'inline' in bucket ? inlineSpace(bucket.inline) : database.space;
  let page = 'inline' in bucket ? pageOf(await space.at(0, PAGE_HEADER), 0) : await pageAt(database, bucket.root);
  for (let depth = 0; page.flags !== LEAF; depth++) {
    if (page.flags !== BRANCH || 'inline' in bucket) throw damaged('a page is neither a branch nor a leaf');
    if (depth === MAX_DEPTH) throw damaged('its pages lead in a circle');
    const below = await lastUpTo(space, page, key);
    if (!below) return undefined;
    page = await pageAt(database, below.child);
  }
  const element = await lastUpTo(space, page, key);
  if (!element?.key.equals(key)) return undefined;
  if (element.value.length > MAX_VALUE_BYTES) throw damaged(`what it has for ${name} is too long`);
  const value = await space.at(element.value.position, element.value.length);
  const position = element.value.position + ('inline' in bucket ? bucket.position : 0);
  return { isBucket: (element.flags & IS_BUCKET) !== 0, value, position };
}

/** Every database of etcd has these buckets, from the first start on. */
async function valueOf(database: Database, bucketName: string, name: string): Promise<Found | undefined> {
  const parent = await lookUp(database, { root: database.meta.root }, bucketName);
  if (!parent?.isBucket || parent.value.length < BUCKET_HEADER) throw damaged(`it has no bucket called ${bucketName}`);
  const root = parent.value.readBigUInt64LE(0);
  const inline = { inline: parent.value.subarray(BUCKET_HEADER), position: parent.position + BUCKET_HEADER };
  const found = await lookUp(database, root === 0n ? inline : { root }, name);
  if (found?.isBucket) throw damaged(`${name} of ${bucketName} is no value`);
  return found;
}

function minorOf(found: Found | undefined, what: string): string | undefined {
  if (!found) return undefined;
  const minor = /^(\d{1,3}\.\d{1,3})\.\d{1,3}/.exec(found.value.toString('latin1', 0, 16))?.[1];
  if (minor === undefined) throw damaged(`its ${what} is not a version`);
  return minor;
}

/** `size` is that of the database, without the digest after it. */
export async function readFacts(file: ReadableFile, size: number): Promise<DatabaseFacts> {
  const space = spaceOf(file, size);
  const database = { space, meta: await newestMeta(space, size) };
  const auth = await valueOf(database, 'auth', 'authEnabled');
  const authEnabled = auth?.value.length === 1 && auth.value[0] === 1;
  return {
    storageVersion: minorOf(await valueOf(database, 'meta', 'storageVersion'), 'storageVersion'),
    clusterVersion: minorOf(await valueOf(database, 'cluster', 'clusterVersion'), 'clusterVersion'),
    authEnabled,
    ...(authEnabled && { authFlagAt: auth.position }),
  };
}
