/** Snapshots of real members as files, with manifests as the agent writes them: the input of restores and drills. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { build } from '../../../local/binaries.ts';
import { compress } from '../../../src/agent/format/compress.ts';
import { baseName, type Manifest, manifestText } from '../../../src/agent/format/manifest.ts';
import { type Identity, seal } from '../../../src/agent/format/seal.ts';
import { sealKey } from '../../../src/agent/format/seal-key.ts';
import { MOUNTS, manifestKey } from '../../../src/domain/agent-task.ts';
import type { Access, Ask } from '../../../src/etcd/client.ts';
import { DIGEST_BYTES } from '../../../src/etcd/snapshot.ts';
import { must } from '../../contract/etcd-world.ts';
import { sealFormat1 } from '../seal-format-1.ts';
import type { Agent } from './agent.ts';
import { ask, ETCD_PARTS, ETCD_VERSIONS, type EtcdLab, type EtcdVersion } from './etcd.ts';
import { eventually } from './processes.ts';

export const PASSWORD = 'the-password-of-root';
/** Each cluster issues tokens of its own. */
export const asRoot = ({ endpoint }: { readonly endpoint: string }): Access => ({
  cluster: `as root at ${endpoint}`,
  passwords: () => [{ user: 'root', password: PASSWORD }],
});
export const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

export interface Taken {
  readonly version: EtcdVersion;
  /** The database with its digest. */
  readonly bytes: Buffer;
  readonly revision: number;
  readonly totalKeys: number;
  readonly hash: NonNullable<Manifest['hash']>;
  readonly authEnabled: boolean;
}

/** From 3.6 on, a new member reports an earlier storage version for some seconds. */
export async function versionSettled({ client }: EtcdLab, version: EtcdVersion, asked: Ask): Promise<void> {
  if (version === '3.5.35') return;
  await eventually('the storage version is settled', async () => {
    const { storageVersion } = must(await client.status(asked));
    return storageVersion?.startsWith(version.slice(0, 3)) || undefined;
  });
}

/** A member with these keys, and its snapshot. Its storage version is settled before. */
export async function take(
  lab: EtcdLab,
  version: EtcdVersion,
  { auth = false, keys = 20, valueBytes = 100 } = {},
): Promise<Taken> {
  const node = await lab.seed({ version });
  const { kv, maintenance, auth: users } = lab.client;
  for (let i = 0; i < keys; i++) must(await kv.put(ask(node, 30_000), `k${i}`, new Uint8Array(valueBytes).fill(i)));
  must(await kv.put(ask(node), 'k0', 'again'));
  if (auth) {
    must(await users.addUser(ask(node), 'root', PASSWORD));
    must(await users.grantRole(ask(node), 'root', 'root'));
    must(await users.enable(ask(node)));
  }
  const asked = { ...ask(node, 30_000), ...(auth && { access: asRoot(node) }) };
  await versionSettled(lab, version, asked);
  const { revision, count } = must(await kv.range(asked, { key: '', prefix: true, countOnly: true }));
  const { hash, compactRevision } = must(await maintenance.hashKV(asked, revision));
  const bytes = await buffer(Readable.from(maintenance.snapshot({ ...asked, timeoutMs: 200_000 })));
  await node.stop('SIGKILL');
  return {
    version,
    bytes,
    revision: Number(revision),
    totalKeys: Number(count),
    hash: { revision: Number(revision), hash, compactRevision: Number(compactRevision) },
    authEnabled: auth,
  };
}

/**
 * The same with a page of keys that carries another page's id, as a misdirected write leaves it: a member streams such a
 * database with a correct digest.
 */
export function withDamagedPage(taken: Taken): Taken {
  const database = Buffer.from(taken.bytes.subarray(0, -DIGEST_BYTES));
  const pageSize = database.readUInt32LE(24);
  const value = new Uint8Array(100).fill(7);
  for (let at = database.indexOf(value); at >= 0; at = database.indexOf(value, at + 1))
    database[at - (at % pageSize)] = 0xff;
  return { ...taken, bytes: Buffer.concat([database, createHash('sha256').update(database).digest()]) };
}

export const KEY = Buffer.alloc(32, 'k');

export interface As {
  readonly compression?: 'none' | 'zstd';
  readonly key?: Buffer;
  /** Overrides of the manifest; `none`: there is none. */
  readonly manifest?: Partial<Manifest> | 'none';
  /** Of an encrypted object; `none`: format 1, with a manifest that is not authenticated. */
  readonly identity?: Partial<Identity> | 'none';
}

/** Stores the snapshot in the volume that the agent restores from. */
export async function store(agent: Agent, name: string, taken: Taken, as: As = {}): Promise<void> {
  agent.mount(MOUNTS.source, await filesOf(name, taken, as));
}

/** The object and its manifest by their keys, as the agent would store them. */
export async function filesOf(
  name: string,
  taken: Taken,
  as: As = {},
): Promise<Readonly<Record<string, string | Buffer>>> {
  const { compression = 'none', key } = as;
  const sealing = key && sealKey(key);
  const once = (bytes: Buffer): AsyncIterable<Uint8Array> => Readable.from([bytes]);
  const small = compression === 'zstd' ? await buffer(compress(once(taken.bytes))) : taken.bytes;
  const takenAt = '2026-01-01T00:00:00Z';
  const isFormat1 = as.identity === 'none';
  const identity = { path: baseName(name), uid: 'uid', takenAt, ...(as.identity !== 'none' && as.identity) };
  const encrypted =
    sealing && (isFormat1 ? sealFormat1(sealing, small) : await buffer(seal(sealing, identity, once(small))));
  const stored = encrypted ?? small;
  if (as.manifest === 'none') return { [name]: stored };
  const manifest: Manifest = {
    version: 1,
    object: { key: baseName(name), sizeBytes: stored.length, sha256: sha256(stored) },
    database: { sizeBytes: taken.bytes.length, sha256: sha256(taken.bytes) },
    snapshot: { namespace: 'ns', name: 'nightly', uid: 'uid' },
    cluster: { name: 'db', uid: 'uid', id: '0123456789abcdef' },
    revision: taken.revision,
    totalKeys: taken.totalKeys,
    hash: taken.hash,
    etcdVersion: taken.version,
    authEnabled: taken.authEnabled,
    member: 'db-abcde',
    compression,
    ...(sealing && { encryption: { algorithm: 'AES-256-GCM', keyId: sealing.id } }),
    takenAt,
    durationMs: 1,
    ...as.manifest,
  };
  return { [name]: stored, [manifestKey(name)]: manifestText(manifest, isFormat1 ? undefined : sealing) };
}

/** The tools of the etcd image of this version. */
export async function toolsOf(
  version: EtcdVersion,
): Promise<{ readonly ETCDUTL_PATH: string; readonly ETCD_PATH: string }> {
  const part = ETCD_PARTS[version];
  const { [part]: folder } = await build([part]);
  return { ETCDUTL_PATH: join(folder, 'etcdutl'), ETCD_PATH: join(folder, 'etcd') };
}

/** By members of every version, with auth disabled (`open`) and enabled (`guarded`). */
export type TakenByAll = Record<EtcdVersion, { readonly open: Taken; readonly guarded: Taken }>;

export async function takeAll(lab: EtcdLab): Promise<TakenByAll> {
  const each = await Promise.all(
    ETCD_VERSIONS.map(async (version) => {
      const [open, guarded] = await Promise.all([take(lab, version), take(lab, version, { auth: true })]);
      return [version, { open, guarded }] as const;
    }),
  );
  return Object.fromEntries(each) as TakenByAll;
}
