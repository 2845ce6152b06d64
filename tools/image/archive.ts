/**
 * Writes image archives without Docker and without a registry. The same input gives the same bytes on every machine.
 * The result is an OCI image layout in a tar with Docker's manifest.json: containerd, Docker, Podman and skopeo accept it.
 * The layer is not compressed: a compressor's output depends on its version and on the processor, and so would the digest.
 */
import { createHash, type Hash } from 'node:crypto';
import { type FileHandle, mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { BLOCK, END_OF_ARCHIVE, padding, type TarHeader, tarHeader } from './tar.ts';

export interface ImageFile {
  /** Its path in the image, with or without a leading slash. A path that ends with a slash is a folder without content. */
  readonly path: string;
  readonly mode: number;
  readonly content: Buffer | { readonly file: string } | { readonly link: string };
  readonly uid?: number;
  readonly gid?: number;
}

export interface ImageSpec {
  /** Such as quay.io/coreos/etcd:v3.6.16. A short name is completed as Docker does: containerd would not find it otherwise. */
  readonly reference: string;
  readonly architecture: 'amd64' | 'arm64';
  /** Parent folders that are not listed are added, mode 0755, owned by root. */
  readonly files: readonly ImageFile[];
  readonly entrypoint?: readonly string[];
  readonly cmd?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly user?: string;
  readonly workingDir?: string;
  readonly labels?: Readonly<Record<string, string>>;
}

export interface WrittenImage {
  /** sha256:… of the image's manifest: what a registry and a Pod's imageID show. */
  readonly digest: string;
  /** Bytes of the archive. */
  readonly size: number;
}

interface Entry extends Omit<TarHeader, 'size'> {
  readonly content: Buffer | { readonly file: string };
}

interface Blob {
  readonly digest: string;
  readonly size: number;
}

const EMPTY = Buffer.alloc(0);
const CHUNK = 1024 * 1024;
const EPOCH = '1970-01-01T00:00:00Z';
/** Puts a blob's digest into the name it has in an image layout. */
const blobPath = (digest: string): string => `blobs/${digest.replace(':', '/')}`;
const byPath = (a: { readonly path: string }, b: { readonly path: string }): number =>
  a.path < b.path ? -1 : a.path > b.path ? 1 : 0;

/** Completes a short reference: `busybox` is `docker.io/library/busybox:latest`. */
export function fullReference(reference: string): string {
  const [first = '', ...rest] = reference.split('/');
  const hasHost = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost');
  const named = hasHost ? reference : `docker.io/${rest.length > 0 ? reference : `library/${reference}`}`;
  return /:[^/]*$/.test(named) ? named : `${named}:latest`;
}

function entryOf(file: ImageFile): Entry {
  const path = file.path.replace(/^\/+/, '').replace(/\/+$/, '');
  if (path === '' || path.split('/').some((part) => part === '' || part === '.' || part === '..'))
    throw new Error(`"${file.path}" is not a path of a file in an image`);
  const base = { path, mode: file.mode, uid: file.uid ?? 0, gid: file.gid ?? 0 };
  if (file.path.endsWith('/')) {
    if (!Buffer.isBuffer(file.content) || file.content.length > 0)
      throw new Error(`the folder "${file.path}" of an image has no content of its own`);
    return { ...base, kind: 'folder', content: EMPTY };
  }
  if (Buffer.isBuffer(file.content) || 'file' in file.content) return { ...base, kind: 'file', content: file.content };
  return { ...base, kind: 'link', link: file.content.link, content: EMPTY };
}

/** All entries of the layer in order, the parent folders added. Two entries of one path, or a file below a file, are refused. */
export function layerEntries(files: readonly ImageFile[]): Entry[] {
  const entries = new Map<string, Entry>();
  const given = files.map(entryOf);
  for (const entry of given) {
    if (entries.has(entry.path)) throw new Error(`"${entry.path}" is in the image twice`);
    entries.set(entry.path, entry);
  }
  for (const { path: below } of given) {
    for (let cut = below.lastIndexOf('/'); cut > 0; cut = below.lastIndexOf('/', cut - 1)) {
      const path = below.slice(0, cut);
      const parent = entries.get(path);
      if (parent && parent.kind !== 'folder') throw new Error(`"${below}" lies below "${path}", which is not a folder`);
      if (!parent) entries.set(path, { path, kind: 'folder', mode: 0o755, uid: 0, gid: 0, content: EMPTY });
    }
  }
  return [...entries.values()].toSorted(byPath);
}

/** Appends to a file and hashes what it appends. */
class Writer {
  #hash: Hash = createHash('sha256');
  readonly #file: FileHandle;
  #position: number;
  readonly #start: number;

  constructor(file: FileHandle, start: number) {
    this.#file = file;
    this.#start = start;
    this.#position = start;
  }

  async write(bytes: Buffer): Promise<void> {
    this.#hash.update(bytes);
    for (let done = 0; done < bytes.length; ) {
      const { bytesWritten } = await this.#file.write(bytes, done, bytes.length - done, this.#position);
      done += bytesWritten;
      this.#position += bytesWritten;
    }
  }

  get position(): number {
    return this.#position;
  }

  finish(): Blob {
    return { digest: `sha256:${this.#hash.digest('hex')}`, size: this.#position - this.#start };
  }
}

async function writeContent(writer: Writer, entry: Entry): Promise<void> {
  const { content, kind: _kind, ...header } = entry;
  if (Buffer.isBuffer(content)) {
    for (const bytes of [tarHeader({ ...header, kind: entry.kind, size: content.length }), content])
      await writer.write(bytes);
    return writer.write(padding(content.length));
  }
  const source = await open(content.file, 'r');
  try {
    const { size } = await source.stat();
    await writer.write(tarHeader({ ...header, kind: 'file', size }));
    const chunk = Buffer.alloc(Math.min(CHUNK, Math.max(size, 1)));
    for (let left = size; left > 0; ) {
      const { bytesRead } = await source.read(chunk, 0, Math.min(chunk.length, left), size - left);
      if (bytesRead === 0) throw new Error(`${content.file} became shorter while it was put into an image`);
      await writer.write(chunk.subarray(0, bytesRead));
      left -= bytesRead;
    }
    await writer.write(padding(size));
  } finally {
    await source.close();
  }
}

const sorted = (record: Readonly<Record<string, string>>): [string, string][] =>
  Object.entries(record).toSorted(([a], [b]) => (a < b ? -1 : 1));

function configOf(spec: ImageSpec, layer: Blob): Buffer {
  return json({
    created: EPOCH,
    architecture: spec.architecture,
    os: 'linux',
    config: {
      ...(spec.user === undefined ? {} : { User: spec.user }),
      ...(spec.env ? { Env: sorted(spec.env).map(([key, value]) => `${key}=${value}`) } : {}),
      ...(spec.entrypoint ? { Entrypoint: spec.entrypoint } : {}),
      ...(spec.cmd ? { Cmd: spec.cmd } : {}),
      ...(spec.workingDir === undefined ? {} : { WorkingDir: spec.workingDir }),
      ...(spec.labels ? { Labels: Object.fromEntries(sorted(spec.labels)) } : {}),
    },
    rootfs: { type: 'layers', diff_ids: [layer.digest] },
    history: [{ created: EPOCH, created_by: 'etcd-operator image tool' }],
  });
}

const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
const blobOf = (bytes: Buffer): Blob => ({
  digest: `sha256:${createHash('sha256').update(bytes).digest('hex')}`,
  size: bytes.length,
});

/** The small files of the archive, and the digest of the manifest among them. */
function documents(spec: ImageSpec, layer: Blob): { readonly digest: string; readonly files: [string, Buffer][] } {
  const reference = fullReference(spec.reference);
  const config = configOf(spec, layer);
  const manifest = json({
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config: { mediaType: 'application/vnd.oci.image.config.v1+json', ...blobOf(config) },
    layers: [{ mediaType: 'application/vnd.oci.image.layer.v1.tar', ...layer }],
  });
  const { digest, size } = blobOf(manifest);
  const index = json({
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.index.v1+json',
    manifests: [
      {
        mediaType: 'application/vnd.oci.image.manifest.v1+json',
        digest,
        size,
        platform: { architecture: spec.architecture, os: 'linux' },
        annotations: {
          'io.containerd.image.name': reference,
          'org.opencontainers.image.ref.name': reference.slice(reference.lastIndexOf(':') + 1),
        },
      },
    ],
  });
  const docker = json([
    { Config: blobPath(blobOf(config).digest), RepoTags: [reference], Layers: [blobPath(layer.digest)] },
  ]);
  return {
    digest,
    files: [
      [blobPath(blobOf(config).digest), config],
      [blobPath(digest), manifest],
      ['index.json', index],
      ['manifest.json', docker],
      ['oci-layout', json({ imageLayoutVersion: '1.0.0' })],
    ],
  };
}

async function writeArchive(spec: ImageSpec, file: FileHandle): Promise<WrittenImage> {
  const header = (path: string, size: number): Buffer =>
    tarHeader({ path, kind: 'file', mode: 0o644, uid: 0, gid: 0, size });
  // The layer's name is its digest, so its header is written last, into the block left free for it.
  const layerWriter = new Writer(file, BLOCK);
  for (const entry of layerEntries(spec.files)) await writeContent(layerWriter, entry);
  await layerWriter.write(END_OF_ARCHIVE);
  const layer = layerWriter.finish();
  await new Writer(file, 0).write(header(blobPath(layer.digest), layer.size));

  const { digest, files } = documents(spec, layer);
  const rest = new Writer(file, layerWriter.position);
  await rest.write(padding(layer.size));
  for (const [path, bytes] of files) {
    await rest.write(header(path, bytes.length));
    await rest.write(bytes);
    await rest.write(padding(bytes.length));
  }
  await rest.write(END_OF_ARCHIVE);
  return { digest, size: rest.position };
}

/** Writes the archive under another name first: a build that is stopped leaves no half archive where a whole one is expected. */
export async function writeImage(spec: ImageSpec, out: string): Promise<WrittenImage> {
  await mkdir(dirname(out), { recursive: true });
  const unfinished = `${out}.${process.pid}.tmp`;
  try {
    const file = await open(unfinished, 'w');
    let written: WrittenImage;
    try {
      written = await writeArchive(spec, file);
    } finally {
      await file.close();
    }
    await rename(unfinished, out);
    return written;
  } catch (error) {
    await rm(unfinished, { force: true });
    throw error;
  }
}
