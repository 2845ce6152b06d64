/** The operator's image: Node, two bundled files, the libraries Node needs, and nothing else. No shell, nothing that is writable. */
import { createHash } from 'node:crypto';
import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { withLock } from '../../local/lock.ts';
import { cacheDir, root } from '../paths.ts';
import { run } from '../process.ts';
import { Failure, type Progress, step } from '../terminal.ts';
import { type ImageFile, writeImage } from './archive.ts';
import { type Bundle, bundle, licensesOf } from './bundle.ts';
import { type FetchOptions, fetchPackages, TRIPLET, type Unpacked, withUnpacked } from './debian.ts';
import { type Architecture, readElf } from './elf.ts';
import { type PinnedNode, pinnedNode } from './node.ts';

export interface OperatorImageOptions {
  readonly architecture: Architecture;
  /** Fail instead of using other Debian packages than the locked ones. */
  readonly locked?: boolean;
  /** The folder with the programs, relative to the checkout. */
  readonly programs?: string;
  /** Where downloads and the archive are stored. */
  readonly cache?: string;
  /** The commit in the image's labels; the checkout's when not given. */
  readonly revision?: string;
}

export interface OperatorImage {
  readonly architecture: Architecture;
  readonly path: string;
  /** sha256:… of the manifest. */
  readonly digest: string;
  readonly reference: string;
  readonly size: number;
}

const USER = 65532;
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';

/**
 * Node's options are in the environment, so that they also apply to `/manager`. Mounting other certificates over the file works.
 * Young objects get two spaces of at most 8 MiB: with smaller ones, objects that live as long as a call are promoted to the old space,
 * and the event loop was late by 70 ms. One thread beside the main one is enough for an operator, and threads that share their
 * memory leave less of it unused: 10 MiB with forty clusters. Source maps are read when the process crashes (`bin/crash.ts`).
 */
export const RUNTIME = {
  NODE_OPTIONS: '--use-openssl-ca --max-semi-space-size=8 --v8-pool-size=1',
  MALLOC_ARENA_MAX: '1',
};
const ENV = {
  ...RUNTIME,
  SSL_CERT_FILE: CERTIFICATES,
  PATH: '/usr/local/bin',
};

const readVersion = async (): Promise<string> =>
  (JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string }).version;

/**
 * The name of a local image. No node can pull from its host: a user who forgets to load the image, or to push it and to
 * set its repository, gets a pull error and not a foreign image of the same name.
 */
export const operatorReference = async (): Promise<string> => `localhost/etcd-operator:${await readVersion()}`;

/** The commit, and whether what goes into the image differs from it. Undefined without git. */
async function revision(): Promise<string | undefined> {
  const head = await run('git', ['rev-parse', 'HEAD'], { cwd: root }).catch(() => undefined);
  if (!head) return undefined;
  const inputs = ['src', 'tools/image', 'package.json', 'package-lock.json'];
  const { stdout } = await run('git', ['status', '--porcelain', '--', ...inputs], { cwd: root });
  return head.stdout.trim() + (stdout.trim() === '' ? '' : '-dirty');
}

async function labels(commit: string | undefined): Promise<Record<string, string>> {
  return {
    'org.opencontainers.image.title': 'etcd-operator',
    'org.opencontainers.image.version': await readVersion(),
    'org.opencontainers.image.licenses': 'Apache-2.0',
    ...(commit === undefined ? {} : { 'org.opencontainers.image.revision': commit }),
  };
}

const file = (path: string, content: string | Buffer, mode = 0o644): ImageFile => ({
  path,
  mode,
  content: Buffer.from(content),
});

/** The libraries a program needs, and those that they need, where the loader searches them; the loader where the kernel searches it. */
export async function libraries(program: Buffer, architecture: Architecture, unpacked: Unpacked): Promise<ImageFile[]> {
  const elf = readElf(program);
  if (elf?.machine !== architecture || elf.interpreter === undefined)
    throw new Failure(`The pinned Node is not a program for ${architecture}.`);
  const folder = `/lib/${TRIPLET[architecture]}`;
  const loader = elf.interpreter;
  const files: ImageFile[] = [];
  const queue = [loader.slice(loader.lastIndexOf('/') + 1), ...elf.needed];
  const done = new Set<string>();
  for (let name = queue.shift(); name !== undefined; name = queue.shift()) {
    if (done.has(name)) continue;
    done.add(name);
    const bytes = await unpacked.library(name);
    const found = bytes && readElf(bytes);
    if (!found || found.machine !== architecture)
      throw new Failure(`Node needs ${name}, and no package of debian.lock.json has it for ${architecture}.`);
    queue.push(...found.needed);
    if (loader.endsWith(`/${name}`)) {
      files.push(file(loader, bytes, 0o755), { path: `${folder}/${name}`, mode: 0o777, content: { link: loader } });
    } else files.push(file(`${folder}/${name}`, bytes));
  }
  return files;
}

/** The files of /etc that Node and libc read. */
const settings = (): ImageFile[] => [
  file('/etc/passwd', `root:x:0:0:root:/:/none\nnonroot:x:${USER}:${USER}:nonroot:/:/none\n`),
  file('/etc/group', `root:x:0:\nnonroot:x:${USER}:\n`),
  file('/etc/nsswitch.conf', 'hosts: files dns\n'),
  file(CERTIFICATES, `${rootCertificates.toSorted().join('\n')}\n`),
];

/** The operator, and apart from it the agents of Jobs: the libraries for stores are large, and the operator uses none. */
export const bundles = (folder: string): Promise<readonly Bundle[]> =>
  Promise.all([bundle(join(folder, 'operator.ts'), 'manager.mjs'), bundle(join(folder, 'agent.ts'), 'agent.mjs')]);

const programs = (parts: readonly Bundle[], licenses: Buffer, node: PinnedNode): ImageFile[] => [
  ...parts.flatMap(({ name, code, map }) => [file(`/${name}`, code, 0o755), file(`/${name}.map`, map)]),
  { path: '/manager', mode: 0o777, content: { link: 'manager.mjs' } },
  { path: '/usr/local/bin/node', mode: 0o755, content: { file: join(node.folder, 'bin/node') } },
  { path: '/usr/share/doc/node/LICENSE', mode: 0o644, content: { file: join(node.folder, 'LICENSE') } },
  file('/usr/share/doc/etcd-operator/LICENSES', licenses),
];

/** A hash over everything that decides the archive's bytes, this tool included. */
async function inputsHash(parts: readonly Buffer[], others: unknown): Promise<string> {
  const hash = createHash('sha256').update(JSON.stringify(others));
  const names = (await readdir(import.meta.dirname)).filter((name) => name.endsWith('.ts') && !name.includes('.test.'));
  for (const name of names.toSorted()) hash.update(await readFile(join(import.meta.dirname, name)));
  for (const part of parts) hash.update(`\0${part.length}\0`).update(part);
  return hash.digest('hex');
}

interface Recorded extends OperatorImage {
  readonly inputs: string;
}

/** The result of an earlier build, when its inputs were the same and it is complete. */
async function reusable(path: string, inputs: string): Promise<OperatorImage | undefined> {
  const text = await readFile(`${path}.json`, 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  const { inputs: made, ...image } = JSON.parse(text) as Recorded;
  const size = (await stat(path).catch(() => undefined))?.size;
  return made === inputs && size === image.size ? { ...image, path } : undefined;
}

type Complete = OperatorImageOptions & Required<Omit<OperatorImageOptions, 'revision'>>;

async function assemble(options: Complete, progress: Progress): Promise<OperatorImage> {
  const { architecture, cache } = options;
  const path = join(cache, 'images', `etcd-operator-${architecture}.tar`);
  progress('bundling');
  const [parts, reference, description] = await Promise.all([
    bundles(options.programs),
    operatorReference(),
    labels(options.revision ?? (await revision())),
  ]);
  const licenses = await licensesOf(parts);
  progress('getting Node');
  const node = await pinnedNode(`linux-${architecture}`, cache);
  // The root certificates in the image are those of the Node that runs this.
  if (process.version !== `v${node.version}`)
    throw new Failure(`The image is built with Node ${node.version}, and this is ${process.version}: use ./dev image.`);
  progress('getting libraries');
  const fetching: FetchOptions = { cache, architecture, locked: options.locked };
  const packages = await fetchPackages(fetching);
  const texts = [...parts.flatMap(({ code, map }) => [code, map]), licenses];
  const inputs = await inputsHash(texts, [
    reference,
    description,
    node.version,
    node.integrity,
    packages,
    rootCertificates,
  ]);
  const earlier = await reusable(path, inputs);
  if (earlier) return earlier;

  progress('writing');
  await rm(`${path}.json`, { force: true });
  const fromDebian = await withUnpacked(fetching, packages, async (unpacked) => [
    ...(await libraries(await readFile(join(node.folder, 'bin/node')), architecture, unpacked)),
    ...[...unpacked.licenses].map(([name, text]) => file(`/usr/share/doc/${name}/copyright`, text)),
  ]);
  const spec = {
    reference,
    architecture,
    files: [...programs(parts, licenses, node), ...fromDebian, ...settings()],
    entrypoint: ['/usr/local/bin/node', '/manager.mjs'],
    env: ENV,
    user: `${USER}:${USER}`,
    workingDir: '/',
    labels: description,
  };
  const image: OperatorImage = { architecture, path, reference, ...(await writeImage(spec, path)) };
  await writeFile(`${path}.json`, JSON.stringify({ ...image, inputs } satisfies Recorded, undefined, 2));
  return image;
}

/** Builds share apt's lists, downloads and the archive's path: a second build waits, and then finds everything there. */
export const oneAtATime = <T>(work: () => Promise<T>): Promise<T> => withLock('operator image', work, { wait: true });

/** Builds the operator's image archive, or returns the last one when its inputs were the same. */
export function buildOperatorImage(options: OperatorImageOptions): Promise<OperatorImage> {
  const complete = { locked: false, programs: 'src/bin', cache: cacheDir, ...options };
  return oneAtATime(() =>
    step(`operator image for ${options.architecture}`, (progress) => assemble(complete, progress)),
  );
}
