/**
 * The shared libraries of the operator's image, from Debian packages of the image's architecture. apt has its own state
 * under the cache: it reads the host's sources and keys, and changes nothing on the host.
 */
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, realpath, rename, rm, writeFile } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { run } from '../process.ts';
import { Failure, say } from '../terminal.ts';
import type { Architecture } from './elf.ts';

export interface LockedPackage {
  readonly version: string;
  readonly sha256: string;
}
export type Packages = Readonly<Record<string, LockedPackage>>;
export type DebianLock = Readonly<Record<Architecture, Packages>>;

export const lockPath: string = join(import.meta.dirname, 'debian.lock.json');

/** Debian's name of the architecture in library paths. */
export const TRIPLET: Readonly<Record<Architecture, string>> = {
  amd64: 'x86_64-linux-gnu',
  arm64: 'aarch64-linux-gnu',
};

export const readLock = async (): Promise<DebianLock> => JSON.parse(await readFile(lockPath, 'utf8')) as DebianLock;

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
const packageFile = (name: string, { version }: LockedPackage): string =>
  `${name}_${version.replaceAll(':', '%3a')}.deb`;

/** Where the packages of one architecture are stored. */
const home = (cache: string, architecture: Architecture): string => join(cache, 'debian', architecture);

/** On another system only the packages are missing, and they are available only through apt. */
async function requireDebian(): Promise<void> {
  for (const program of ['apt-get', 'dpkg-deb'])
    await run(program, ['--version']).catch(() => {
      throw new Failure(
        `the image's libraries come from Debian packages, and there is no ${program} here: build the image on Debian, or in a container with Debian.`,
      );
    });
}

async function apt(cache: string, architecture: Architecture, cwd: string, args: readonly string[]): Promise<void> {
  const state = join(home(cache, architecture), 'apt');
  await mkdir(join(state, 'lists', 'partial'), { recursive: true });
  await mkdir(join(state, 'cache', 'archives', 'partial'), { recursive: true });
  await writeFile(join(state, 'status'), '');
  const settings = {
    'Dir::State': state,
    'Dir::State::status': join(state, 'status'),
    'Dir::State::lists': join(state, 'lists'),
    'Dir::Cache': join(state, 'cache'),
    'APT::Architecture': architecture,
    'APT::Architectures': architecture,
    'APT::Sandbox::User': 'root',
    'Acquire::Languages': 'none',
    'Acquire::Retries': '3',
  };
  await run('apt-get', [...Object.entries(settings).flatMap(([key, value]) => ['-o', `${key}=${value}`]), ...args], {
    cwd,
    env: { LC_ALL: 'C' },
    timeoutMs: 300_000,
  });
}

async function refreshLists(cache: string, architecture: Architecture): Promise<void> {
  await requireDebian();
  await apt(cache, architecture, cache, ['update', '--quiet=2']);
}

/** Downloads one package into the cache; undefined when the archive does not have it (in this version). */
async function download(
  cache: string,
  architecture: Architecture,
  name: string,
  version?: string,
): Promise<LockedPackage | undefined> {
  const folder = await mkdtemp(join(home(cache, architecture), 'download-'));
  try {
    await apt(cache, architecture, folder, ['download', version === undefined ? name : `${name}=${version}`]);
    const [file] = await readdir(folder);
    if (file === undefined) return undefined;
    const bytes = await readFile(join(folder, file));
    const { stdout } = await run('dpkg-deb', ['--field', join(folder, file), 'Version']);
    const found = { version: stdout.trim(), sha256: sha256(bytes) };
    await rename(join(folder, file), join(home(cache, architecture), packageFile(name, found)));
    return found;
  } catch (error) {
    if (error instanceof Failure && /E: (Version|Unable to locate|Can't find)/.test(error.message)) return undefined;
    throw error;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function isCached(
  cache: string,
  architecture: Architecture,
  name: string,
  want: LockedPackage,
): Promise<boolean> {
  const path = join(home(cache, architecture), packageFile(name, want));
  const bytes = await readFile(path).catch(() => undefined);
  return bytes !== undefined && sha256(bytes) === want.sha256;
}

/** Records which packages replace locked ones that the archive no longer has, so that a second build needs no network. */
const standInsPath = (cache: string, architecture: Architecture): string =>
  join(home(cache, architecture), 'stand-ins.json');

async function standIns(cache: string, architecture: Architecture, locked: Packages): Promise<Packages> {
  const text = await readFile(standInsPath(cache, architecture), 'utf8').catch(() => '{}');
  const kept = JSON.parse(text) as { lock?: Packages; packages?: Packages };
  return JSON.stringify(kept.lock) === JSON.stringify(locked) ? (kept.packages ?? {}) : {};
}

export interface FetchOptions {
  readonly cache: string;
  readonly architecture: Architecture;
  /** Refuse packages other than the locked ones. */
  readonly locked: boolean;
}

/** The same version with other bytes is never used: it may come from another distribution or an attacker. */
async function downloadLocked(options: FetchOptions, name: string, want: LockedPackage): Promise<boolean> {
  const got = await download(options.cache, options.architecture, name, want.version);
  if (got && got.sha256 !== want.sha256)
    throw new Failure(
      `${name} ${want.version} for ${options.architecture} has the sha256 ${got.sha256} in the package archive, and ${want.sha256} in debian.lock.json.`,
    );
  if (!got && options.locked)
    throw new Failure(
      `The package archive has no ${name} ${want.version} for ${options.architecture} any more. "./dev image --update-lock" locks what it has.`,
    );
  return got !== undefined;
}

/** Ensures that the locked packages, or what the archive has instead, are in the cache; returns which they are. */
export async function fetchPackages(options: FetchOptions): Promise<Packages> {
  const { cache, architecture } = options;
  const lock = (await readLock())[architecture];
  await mkdir(home(cache, architecture), { recursive: true });
  const replaced: Record<string, LockedPackage> = options.locked
    ? {}
    : { ...(await standIns(cache, architecture, lock)) };
  const result: Record<string, LockedPackage> = {};
  let updated = false;
  for (const [name, want] of Object.entries(lock)) {
    const chosen = replaced[name] ?? want;
    let found: LockedPackage | undefined = chosen;
    if (!(await isCached(cache, architecture, name, chosen))) {
      if (!updated) await refreshLists(cache, architecture);
      updated = true;
      found = (await downloadLocked(options, name, want)) ? want : await download(cache, architecture, name);
    }
    if (found) result[name] = found;
    if (found === want) continue;
    if (found) replaced[name] = found;
    say(`  ! The package archive has no ${name} ${want.version} for ${architecture} any more; the image gets`);
    say(`    ${found?.version ?? 'none'}, and its digest WILL DIFFER from that of the release.`);
  }
  if (!options.locked)
    await writeFile(standInsPath(cache, architecture), JSON.stringify({ lock, packages: replaced }, undefined, 2));
  return result;
}

/** Locks the versions that the archive has now, for both architectures. */
export async function updateLock(cache: string): Promise<DebianLock> {
  const lock = await readLock();
  const current = async (architecture: Architecture): Promise<Packages> => {
    await mkdir(home(cache, architecture), { recursive: true });
    await refreshLists(cache, architecture);
    const packages: Record<string, LockedPackage> = {};
    for (const name of Object.keys(lock[architecture])) {
      const got = await download(cache, architecture, name);
      if (!got) throw new Failure(`The package archive of this machine has no ${name} for ${architecture}.`);
      packages[name] = got;
    }
    return packages;
  };
  const next: DebianLock = { amd64: await current('amd64'), arm64: await current('arm64') };
  await writeFile(lockPath, `${JSON.stringify(next, undefined, 2)}\n`);
  return next;
}

export interface Unpacked {
  /** The bytes of a library by the name under which other files need it. */
  library(name: string): Promise<Buffer | undefined>;
  /** The licence texts of the packages, by package. */
  readonly licenses: ReadonlyMap<string, Buffer>;
}

/** Unpacks the packages into a folder that exists as long as `work` runs. */
export async function withUnpacked<T>(
  { cache, architecture }: FetchOptions,
  packages: Packages,
  work: (unpacked: Unpacked) => Promise<T>,
): Promise<T> {
  const folder = await realpath(await mkdtemp(join(home(cache, architecture), 'unpacked-')));
  try {
    for (const [name, want] of Object.entries(packages))
      await run('dpkg-deb', ['--extract', join(home(cache, architecture), packageFile(name, want)), folder]);
    const licenses = new Map<string, Buffer>();
    for (const name of Object.keys(packages).toSorted()) {
      const text = await readInside(folder, join('usr/share/doc', name, 'copyright'));
      if (text) licenses.set(name, text);
    }
    const library = async (name: string): Promise<Buffer | undefined> => {
      for (const place of [`lib/${TRIPLET[architecture]}`, `usr/lib/${TRIPLET[architecture]}`]) {
        const bytes = await readInside(folder, join(place, name));
        if (bytes) return bytes;
      }
      return undefined;
    };
    return await work({ library, licenses });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** An absolute link in a package would point to a file of the host: such a file counts as missing. */
async function readInside(folder: string, path: string): Promise<Buffer | undefined> {
  const real = await realpath(join(folder, path)).catch(() => undefined);
  return real?.startsWith(folder + sep) ? readFile(real) : undefined;
}
