/**
 * The manifest next to a stored snapshot: what a restore needs to know before it reads the object, and what it compares
 * the object with. It is written last, so a snapshot that has one is complete. Anyone with write access to the store
 * can write one: it is parsed as untrusted input. That of an encrypted snapshot is authenticated with the same key.
 */
import { timingSafeEqual } from 'node:crypto';
import Type, { type Static } from 'typebox';
import { Check, Clean, Errors } from 'typebox/value';
import type { DeepReadonly } from '../../api/meta.ts';
import { manifestKey } from '../../domain/agent-task.ts';
import { AgentFailure } from '../failure.ts';
import type { Store } from '../stores/store.ts';
import { isAtPath } from './seal.ts';
import { authenticationOf, type SealKey } from './seal-key.ts';

const MAX_BYTES = 64 * 1024;

const whole = () => Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const text = (maxLength = 253) => Type.String({ minLength: 1, maxLength });
const sha256 = () => Type.String({ pattern: '^[0-9a-f]{64}$' });
const hexId = () => Type.String({ pattern: '^[0-9a-f]{16}$' });
const version = () => Type.String({ pattern: String.raw`^\d{1,4}\.\d{1,4}\.\d{1,4}(-[0-9A-Za-z.-]{1,64})?$` });
const named = () => Type.Object({ name: text(), uid: text() });

const ManifestSchema = Type.Object({
  version: Type.Literal(1),
  /** As it is stored. Only the key's last part: a folder can be copied elsewhere without changing its manifests. */
  object: Type.Object({
    key: Type.String({ pattern: '^[^/]{1,512}$' }),
    /** The key without that of the destination, where the manifest is authenticated. */
    path: Type.Optional(text(1024)),
    sizeBytes: whole(),
    sha256: sha256(),
  }),
  /** As `etcdctl snapshot save` would have written it: the database, then the 32 bytes of its digest. */
  database: Type.Object({ sizeBytes: whole(), sha256: sha256() }),
  snapshot: Type.Object({ namespace: text(), name: text(), uid: text() }),
  cluster: Type.Object({ name: text(), uid: text(), id: hexId() }),
  schedule: Type.Optional(named()),
  /** Read just before the stream: the snapshot contains everything up to it, and perhaps more. */
  revision: whole(),
  /** Keys that exist at that revision. */
  totalKeys: whole(),
  /**
   * Of the keys up to that revision, as the member computed it; comparable where the compact revision (-1: none) is the
   * same.
   */
  hash: Type.Optional(
    Type.Object({
      revision: whole(),
      hash: Type.Integer({ minimum: 0, maximum: 2 ** 32 - 1 }),
      compactRevision: Type.Integer({ minimum: -1, maximum: Number.MAX_SAFE_INTEGER }),
    }),
  ),
  etcdVersion: version(),
  /** From 3.6 on. */
  storageVersion: Type.Optional(version()),
  authEnabled: Type.Boolean(),
  member: text(),
  compression: Type.Enum(['none', 'zstd']),
  encryption: Type.Optional(Type.Object({ algorithm: Type.Literal('AES-256-GCM'), keyId: hexId() })),
  takenAt: Type.String({ pattern: String.raw`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$` }),
  durationMs: whole(),
  /** HMAC-SHA-256 of all other fields, in their order, also of those that a later version adds. */
  mac: Type.Optional(sha256()),
});

export type Manifest = DeepReadonly<Static<typeof ManifestSchema>>;
/** `authentic`: a holder of one of the given keys has written it. */
export type ReadManifest = Manifest & { readonly authentic?: true };

export function manifestText(manifest: Manifest, key?: SealKey): string {
  const mac = key && { mac: authenticationOf(key, JSON.stringify(manifest)) };
  return `${JSON.stringify({ ...manifest, ...mac }, undefined, 2)}\n`;
}

/** `undefined`: none of the keys is the one that it names, or it has no authentication. */
function isAuthentic({ mac, ...rest }: Manifest, keys: readonly SealKey[]): boolean | undefined {
  const key = keys.find(({ id }) => id === rest.encryption?.keyId);
  if (!key || mac === undefined) return undefined;
  return timingSafeEqual(Buffer.from(authenticationOf(key, JSON.stringify(rest)), 'hex'), Buffer.from(mac, 'hex'));
}

/** Parses the manifest of this object; throws ManifestDamaged. Fields that a later version added are ignored. */
export function parseManifest(content: Uint8Array, objectKey: string, keys: readonly SealKey[] = []): ReadManifest {
  const wrong = (how: string): AgentFailure =>
    new AgentFailure('ManifestDamaged', `the manifest of ${objectKey} ${how}: restore from another snapshot`);
  if (content.length > MAX_BYTES) throw wrong(`has ${content.length} bytes, more than a manifest can have`);
  let json: unknown;
  try {
    json = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(content));
  } catch {
    throw wrong('is not JSON');
  }
  if (!Check(ManifestSchema, json)) {
    const [first] = Errors(ManifestSchema, json);
    throw wrong(`does not match the schema of this version: ${first?.instancePath.slice(0, 100) || '/'} is wrong`);
  }
  const authentic = isAuthentic(json, keys); // of all fields: Clean removes some
  const manifest = Clean(ManifestSchema, json) as Manifest;
  const { object, database, compression, encryption } = manifest;
  if (object.key !== baseName(objectKey)) throw wrong('belongs to another object');
  const asItIs = compression === 'none' && !encryption;
  if (asItIs && (object.sizeBytes !== database.sizeBytes || object.sha256 !== database.sha256))
    throw wrong('contradicts itself: the object is the uncompressed database, and their sizes or digests differ');
  if (authentic === false) throw wrong('was changed: it does not match its authentication code');
  if (authentic && !isAtPath(objectKey, object.path ?? object.key))
    throw wrong(`belongs to ${object.path}: copy the snapshot to a key that ends with that`);
  return authentic ? { ...manifest, authentic } : manifest;
}

/** Reads the manifest next to this object, and no more bytes than a manifest can have. */
export async function readManifest(
  store: Pick<Store, 'get'>,
  objectKey: string,
  signal: AbortSignal,
  keys: readonly SealKey[] = [],
): Promise<ReadManifest> {
  return parseManifest(await manifestBytes(store, objectKey, signal), objectKey, keys);
}

/** As they are stored. */
export async function manifestBytes(
  store: Pick<Store, 'get'>,
  objectKey: string,
  signal: AbortSignal,
): Promise<Buffer> {
  const { body } = await store.get(manifestKey(objectKey), signal);
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of body) {
    pieces.push(piece);
    length += piece.length;
    if (length > MAX_BYTES) break; // parseManifest refuses it
  }
  return Buffer.concat(pieces);
}

export const baseName = (key: string): string => key.slice(key.lastIndexOf('/') + 1);
