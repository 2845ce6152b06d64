/** The images that the local cluster itself runs, built from the compiled programs: there is no registry to pull from. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { type ImageFile, type ImageSpec, writeImage } from '../tools/image/archive.ts';
import { cacheDir } from '../tools/paths.ts';
import { run } from '../tools/process.ts';
import { Failure } from '../tools/terminal.ts';
import { build, type Part } from './binaries.ts';
import { enter } from './daemon.ts';
import { CONTAINERD_SOCKET } from './node.ts';
import type { Archive, NodeState } from './state.ts';

export const ETCD_VERSIONS = { '3.5': '3.5.35', '3.6': '3.6.16', '3.7': '3.7.3' } as const;
export type EtcdMinor = keyof typeof ETCD_VERSIONS;

export const PAUSE_IMAGE = 'localhost/pause:1';
export const BUSYBOX_IMAGE = 'localhost/busybox:1';
export const COREDNS_IMAGE = 'localhost/coredns:1.15.0';
export const PROVISIONER_IMAGE = 'localhost/local-path-provisioner:0.0.30';
export const S3_IMAGE = 'localhost/versitygw:1.8.0';
/** Tagged like the official image, which is the operator's default. */
export const etcdImage = (minor: EtcdMinor): string => `quay.io/coreos/etcd:v${ETCD_VERSIONS[minor]}`;

export const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';
const program = (path: string, file: string): ImageFile => ({ path, mode: 0o755, content: { file } });

/** An image of one built part: its programs under /usr/local/bin. The part's folder is named by its content, and so is the archive. */
async function partImage(
  part: Part,
  reference: string,
  programs: readonly string[],
  rest: Pick<ImageSpec, 'entrypoint'> = {},
): Promise<Archive> {
  const folder = (await build([part]))[part];
  const files = programs.map((name) => program(`/usr/local/bin/${name}`, join(folder, name)));
  return cached(reference, basename(folder), { files, ...rest });
}

async function cached(
  reference: string,
  content: string,
  spec: Pick<ImageSpec, 'files' | 'entrypoint'>,
): Promise<Archive> {
  const key = createHash('sha256')
    .update(JSON.stringify([reference, content, architecture]))
    .digest('hex');
  const path = join(cacheDir, 'images', `${reference.replace(/[^a-z0-9.]+/g, '-')}-${key.slice(0, 12)}.tar`);
  mkdirSync(join(cacheDir, 'images'), { recursive: true });
  if (!existsSync(path)) await writeImage({ reference, architecture, ...spec }, path);
  return { reference, path, digest: key };
}

const APPLETS = 'cat chmod mkdir mke2fs mount nslookup ping rm rmdir sh sleep truncate umount wget'.split(' ');

/** A shell for the storage provisioner's helper Pods, and for tests that inspect the cluster. */
function busyboxImage(): Promise<Archive> {
  if (!existsSync('/bin/busybox')) throw new Failure('busybox-static is not installed: run ./dev up again as root.');
  const links = APPLETS.map((name): ImageFile => ({ path: `/bin/${name}`, mode: 0o777, content: { link: 'busybox' } }));
  return cached(BUSYBOX_IMAGE, APPLETS.join(), { files: [program('/bin/busybox', '/bin/busybox'), ...links] });
}

export const baseImages = async (): Promise<readonly Archive[]> => [
  await partImage('pause', PAUSE_IMAGE, ['pause'], { entrypoint: ['/usr/local/bin/pause'] }),
  await busyboxImage(),
  await partImage('coredns', COREDNS_IMAGE, ['coredns'], { entrypoint: ['/usr/local/bin/coredns'] }),
  await partImage('local-path-provisioner', PROVISIONER_IMAGE, ['local-path-provisioner']),
];

export const s3Image = (): Promise<Archive> =>
  partImage('versitygw', S3_IMAGE, ['versitygw'], { entrypoint: ['/usr/local/bin/versitygw'] });

export const etcdImageArchive = (minor: EtcdMinor): Promise<Archive> =>
  partImage(`etcd-${minor}`, etcdImage(minor), ['etcd', 'etcdctl', 'etcdutl']);

/** Loads an archive into a node's containerd; loading an image that is there already costs next to nothing. */
export async function loadImage(node: Pick<NodeState, 'holderPid'>, archive: string): Promise<void> {
  const [command = '', ...args] = enter(node.holderPid);
  await run(command, [
    ...args,
    'ctr',
    '--address',
    CONTAINERD_SOCKET,
    '--namespace',
    'k8s.io',
    'images',
    'import',
    archive,
  ]);
}
