/** `./dev plugin`: builds kubectl-etcd. */
import { writeFile } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { Platform } from '../image/node.ts';
import { root } from '../paths.ts';
import { say, step, UsageFailure } from '../terminal.ts';
import { buildExecutable, buildScript, ownPlatform, PLATFORMS, packageVersion } from './build.ts';
import { krewManifest, npmPackage, type Packed, packForKrew, sha256 } from './packages.ts';

export const USAGE = `./dev plugin [--platform ${PLATFORMS.join('|')}|all|none] [--out FOLDER] [--krew URL]

Builds the kubectl plugin: kubectl-etcd, a script that needs Node 26 or later, and an executable for each platform, which
needs nothing, with cli-SHA256SUMS.txt; and npm, a folder for npm install --global or npm publish.

  --platform  for which platform; without it, that of this machine; none: only the script
  --out       the folder; without it, dist
  --krew      also an archive for each platform and etcd.yaml, the manifest for krew, for archives that are published at this URL
`;

function platforms(wanted: string | undefined): readonly Platform[] {
  if (wanted === 'none') return [];
  if (wanted === 'all') return PLATFORMS;
  const found = wanted === undefined ? ownPlatform() : PLATFORMS.find((each) => each === wanted);
  if (found) return [found];
  throw new UsageFailure(`There is no plugin for "${wanted ?? process.platform}".\n\n${USAGE}`);
}

function parse(args: readonly string[]) {
  try {
    const options = {
      platform: { type: 'string' },
      out: { type: 'string' },
      krew: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    } as const;
    return parseArgs({ args: [...args], options }).values;
  } catch (error) {
    throw new UsageFailure(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`);
  }
}

export async function pluginCommand(args: readonly string[]): Promise<number> {
  const { platform, out = join(root, 'dist'), krew, help } = parse(args);
  if (help) {
    process.stdout.write(USAGE);
    return 0;
  }
  const wanted = platforms(platform);
  const folder = resolve(out);
  const script = await step('bundle kubectl-etcd', () => buildScript(folder));
  const version = await packageVersion();
  const npm = await step('make the package for npm', () => npmPackage(script, version, folder));
  const made: string[] = [];
  const packed: Packed[] = [];
  for (const each of wanted) {
    const executable = await step(`make the executable for ${each}`, () => buildExecutable(script, each, folder));
    made.push(executable);
    if (krew === undefined) continue;
    const archive = await step(`pack it for krew`, () => packForKrew(executable, each, folder));
    made.push(archive);
    packed.push({ platform: each, sha256: await sha256(archive) });
  }
  if (krew !== undefined) await writeFile(join(folder, 'etcd.yaml'), krewManifest(version, krew, packed));
  if (made.length > 0) await writeFile(join(folder, 'cli-SHA256SUMS.txt'), await sums(made));
  for (const path of [script, npm, ...made]) say(`  ${path}`);
  say('\nPut it into your PATH under the name kubectl-etcd; then: kubectl etcd --help');
  if (made.some((path) => path.includes('-darwin-')))
    say('An executable for macOS starts only after it was signed there: codesign --sign - kubectl-etcd');
  return 0;
}

async function sums(paths: readonly string[]): Promise<string> {
  const lines = await Promise.all(paths.map(async (path) => `${await sha256(path)}  ${basename(path)}\n`));
  return lines.join('');
}
