/** The kubectl plugin as one file: a script for Node, or an executable with its own Node inside. */
import { chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { bundle } from '../image/bundle.ts';
import { type Platform, pinnedNode } from '../image/node.ts';
import { cacheDir, root } from '../paths.ts';
import { run } from '../process.ts';

export const PLATFORMS: readonly Platform[] = ['linux-amd64', 'linux-arm64', 'darwin-amd64', 'darwin-arm64'];

const ARCHITECTURES: Readonly<Record<string, 'amd64' | 'arm64'>> = { x64: 'amd64', arm64: 'arm64' };

/** The platform of this machine. */
export const ownPlatform = (): Platform | undefined => {
  const architecture = ARCHITECTURES[process.arch];
  const os = process.platform;
  return architecture && (os === 'linux' || os === 'darwin') ? `${os}-${architecture}` : undefined;
};

export async function packageVersion(): Promise<string> {
  return (JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { readonly version: string }).version;
}

/** A script that needs Node 26 or later in the PATH, under the name that kubectl looks for. */
export async function buildScript(folder: string): Promise<string> {
  const define = { PLUGIN_VERSION: JSON.stringify(await packageVersion()) };
  const { code } = await bundle('src/bin/kubectl-etcd.ts', 'kubectl-etcd', {
    interpreter: '/usr/bin/env node',
    define,
  });
  const path = join(folder, 'kubectl-etcd');
  await mkdir(folder, { recursive: true });
  await writeFile(path, code);
  await chmod(path, 0o755);
  return path;
}

/** An executable that needs nothing. macOS starts it only after it was signed there. */
export async function buildExecutable(script: string, platform: Platform, folder: string): Promise<string> {
  const node = await pinnedNode(platform, cacheDir);
  const output = join(folder, `kubectl-etcd-${platform}`);
  const config = `${output}.json`;
  const settings = {
    main: script,
    mainFormat: 'module',
    executable: join(node.folder, 'bin', 'node'),
    output,
    disableExperimentalSEAWarning: true,
    useCodeCache: false, // one of this machine would be refused by the Node of another platform
  };
  try {
    await writeFile(config, JSON.stringify(settings));
    await run(process.execPath, ['--build-sea', config]);
  } finally {
    await rm(config, { force: true });
  }
  return output;
}
