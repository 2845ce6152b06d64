/** What package managers take: a manifest for krew with an archive per platform, and a folder for npm. */
import { createHash } from 'node:crypto';
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { stringify } from 'yaml';
import type { Platform } from '../image/node.ts';
import { END_OF_ARCHIVE, padding, tarHeader } from '../image/tar.ts';
import { root } from '../paths.ts';

const ABOUT = 'Shows the state of etcd clusters, and operates them';

export const sha256 = async (path: string): Promise<string> =>
  createHash('sha256')
    .update(await readFile(path))
    .digest('hex');

/** The executable under the name that kubectl looks for, and the licence, which krew demands. */
export async function packForKrew(executable: string, platform: Platform, folder: string): Promise<string> {
  const files = [
    { path: 'kubectl-etcd', mode: 0o755, content: await readFile(executable) },
    { path: 'LICENSE', mode: 0o644, content: await readFile(join(root, 'LICENSE')) },
  ];
  const parts = files.flatMap(({ path, mode, content }) => [
    tarHeader({ path, kind: 'file', mode, size: content.length, uid: 0, gid: 0 }),
    content,
    padding(content.length),
  ]);
  const archive = join(folder, `kubectl-etcd-${platform}.tar.gz`);
  await writeFile(archive, gzipSync(Buffer.concat([...parts, END_OF_ARCHIVE])));
  return archive;
}

export interface Packed {
  readonly platform: Platform;
  readonly sha256: string;
}

/** `url`: of the folder that the archives are published in. */
export function krewManifest(version: string, url: string, packed: readonly Packed[]): string {
  return stringify({
    apiVersion: 'krew.googlecontainertools.github.com/v1alpha2',
    kind: 'Plugin',
    metadata: { name: 'etcd' },
    spec: {
      version: `v${version}`,
      shortDescription: ABOUT,
      description:
        'One screen that answers whether an etcd cluster of etcd-operator is all right, and if not, what to do; and commands to operate it: kubectl etcd --help.',
      platforms: packed.map(({ platform, sha256: digest }) => {
        const [os, arch] = platform.split('-');
        return {
          selector: { matchLabels: { os, arch } },
          uri: `${url.replace(/\/+$/, '')}/kubectl-etcd-${platform}.tar.gz`,
          sha256: digest,
          bin: 'kubectl-etcd',
        };
      }),
    },
  });
}

/** A folder for `npm publish` or `npm install --global`: the script, which needs Node. */
export async function npmPackage(script: string, version: string, folder: string): Promise<string> {
  const path = join(folder, 'npm');
  await mkdir(path, { recursive: true });
  const manifest = {
    name: 'kubectl-etcd',
    version,
    description: ABOUT,
    license: 'Apache-2.0',
    type: 'module',
    bin: { 'kubectl-etcd': 'kubectl-etcd.js' },
    files: ['kubectl-etcd.js', 'LICENSE'],
    engines: { node: '>=26' },
  };
  await writeFile(join(path, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  await copyFile(script, join(path, 'kubectl-etcd.js'));
  await copyFile(join(root, 'LICENSE'), join(path, 'LICENSE'));
  return path;
}
