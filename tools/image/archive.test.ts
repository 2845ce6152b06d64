import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, readlink, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { run } from '../process.ts';
import { fullReference, type ImageFile, type ImageSpec, layerEntries, writeImage } from './archive.ts';

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'archive-'));
});
afterAll(() => rm(dir, { recursive: true, force: true }));

const text = (path: string, content = path, mode = 0o644): ImageFile => ({ path, mode, content: Buffer.from(content) });
const image = (files: readonly ImageFile[]): ImageSpec => ({
  reference: 'example.org/thing:v1',
  architecture: 'amd64',
  files,
});

/** Unpacks an archive with the system's tar, then its layer, as a container runtime would. */
async function unpack(archive: string): Promise<{ layout: string; rootfs: string; listing: string }> {
  const layout = await mkdtemp(join(dir, 'layout-'));
  const rootfs = await mkdtemp(join(dir, 'rootfs-'));
  await run('tar', ['-xf', archive, '-C', layout]);
  const [docker] = JSON.parse(await readFile(join(layout, 'manifest.json'), 'utf8')) as [{ Layers: [string] }];
  const layer = join(layout, docker.Layers[0]);
  await run('tar', ['--no-same-owner', '-xpf', layer, '-C', rootfs]);
  const { stdout } = await run('tar', ['--numeric-owner', '--full-time', '--utc', '-tvf', layer]);
  return { layout, rootfs, listing: stdout };
}

describe('an image archive', () => {
  const long = `${'folder/'.repeat(20)}file`;
  const longer = `${'a-rather-long-name-of-a-folder/'.repeat(20)}${'n'.repeat(200)}`;

  test('has the same bytes when it is written again, in any order of the files', async () => {
    const files = [text('b'), text('a/x'), text(longer), { path: 'l', mode: 0o777, content: { link: 'b' } }];
    const env = { B: '2', A: '1' };
    const one = await writeImage({ ...image(files), env }, join(dir, 'one.tar'));
    const two = await writeImage({ ...image(files.toReversed()), env: { A: '1', B: '2' } }, join(dir, 'two.tar'));
    expect(two).toEqual(one);
    expect(await readFile(join(dir, 'two.tar'))).toEqual(await readFile(join(dir, 'one.tar')));
    expect(one.size).toBe((await stat(join(dir, 'one.tar'))).size);
  });

  test.each([
    ['a short path', 'file'],
    ['exactly 100 bytes', 'n'.repeat(100)],
    ['101 bytes without a slash', 'n'.repeat(101)],
    ['a path that fits when cut in two', long],
    ['a path that does not fit even so', longer],
    ['a path that is not ASCII', 'größe/ключ'],
  ])('keeps %s', async (_name, path) => {
    const out = join(dir, 'path.tar');
    await writeImage(image([text(path, 'content')]), out);
    const { rootfs } = await unpack(out);
    expect(await readFile(join(rootfs, path), 'utf8')).toBe('content');
  });

  test.each([['b'], ['../some/where'], ['x'.repeat(150)], ['ключ']])('keeps a symbolic link to %s', async (link) => {
    const out = join(dir, 'link.tar');
    await writeImage(image([{ path: 'etc/l', mode: 0o777, content: { link } }]), out);
    const { rootfs } = await unpack(out);
    expect(await readlink(join(rootfs, 'etc/l'))).toBe(link);
  });

  test('copies a file of any size with the mode it is given, not the one it has', async () => {
    const bytes = Buffer.alloc(2 * 1024 * 1024 + 77, 'etcd');
    await writeFile(join(dir, 'source'), bytes, { mode: 0o600 });
    const out = join(dir, 'file.tar');
    await writeImage(image([{ path: '/bin/etcd', mode: 0o755, content: { file: join(dir, 'source') } }]), out);
    const { rootfs } = await unpack(out);
    expect((await readFile(join(rootfs, 'bin/etcd'))).equals(bytes)).toBe(true);
    expect((await stat(join(rootfs, 'bin/etcd'))).mode & 0o7777).toBe(0o755);
  });

  test('has numeric owners and no time of the host', async () => {
    const out = join(dir, 'owner.tar');
    const folder: ImageFile = { path: 'data/', mode: 0o1777, content: Buffer.alloc(0) };
    await writeImage(image([{ ...text('home/x'), uid: 65532, gid: 65533 }, folder]), out);
    const { listing } = await unpack(out);
    expect(listing.trimEnd().split('\n')).toEqual([
      'drwxrwxrwt 0/0               0 1970-01-01 00:00:00 data/',
      'drwxr-xr-x 0/0               0 1970-01-01 00:00:00 home/',
      '-rw-r--r-- 65532/65533       6 1970-01-01 00:00:00 home/x',
    ]);
  });

  test('describes itself to OCI and to Docker with digests that are right', async () => {
    const out = join(dir, 'described.tar');
    const written = await writeImage(
      { ...image([text('x')]), entrypoint: ['/x'], user: '1:2', labels: { l: 'v' } },
      out,
    );
    const { layout } = await unpack(out);
    const read = async (path: string): Promise<unknown> => JSON.parse(await readFile(join(layout, path), 'utf8'));
    for (const name of await readdir(join(layout, 'blobs/sha256')))
      expect(
        createHash('sha256')
          .update(await readFile(join(layout, 'blobs/sha256', name)))
          .digest('hex'),
      ).toBe(name);
    expect(await read('oci-layout')).toEqual({ imageLayoutVersion: '1.0.0' });
    expect(await read('index.json')).toMatchObject({
      manifests: [{ digest: written.digest, annotations: { 'io.containerd.image.name': 'example.org/thing:v1' } }],
    });
    const [docker] = (await read('manifest.json')) as [{ Config: string; RepoTags: string[]; Layers: [string] }];
    expect(docker.RepoTags).toEqual(['example.org/thing:v1']);
    expect(await read(docker.Config)).toMatchObject({
      architecture: 'amd64',
      config: { Entrypoint: ['/x'], User: '1:2', Labels: { l: 'v' } },
      rootfs: { diff_ids: [docker.Layers[0].replace('blobs/sha256/', 'sha256:')] },
    });
  });

  test('does not exist when writing it fails, nor does a part of it', async () => {
    const empty = join(dir, 'failed');
    await mkdir(empty);
    const missing = { path: 'x', mode: 0o644, content: { file: join(dir, 'missing') } };
    await expect(writeImage(image([text('a'), missing]), join(empty, 'out.tar'))).rejects.toThrow('ENOENT');
    expect(await readdir(empty)).toEqual([]);
  });
});

test.each([
  ['climbs out', [text('a/../b')], 'not a path'],
  ['has no name', [text('/')], 'not a path'],
  ['comes twice', [text('a'), text('/a')], 'twice'],
  ['lies below a link', [text('lib/x'), { path: 'lib', mode: 0o777, content: { link: 'usr' } }], 'not a folder'],
])('a file that %s is refused', (_name, files: readonly ImageFile[], message) => {
  expect(() => layerEntries(files)).toThrow(message);
});

test.each([
  ['busybox', 'docker.io/library/busybox:latest'],
  ['busybox:1.37', 'docker.io/library/busybox:1.37'],
  ['coredns/coredns:1.15.0', 'docker.io/coredns/coredns:1.15.0'],
  ['quay.io/coreos/etcd:v3.6.16', 'quay.io/coreos/etcd:v3.6.16'],
  ['localhost/etcd-operator:1', 'localhost/etcd-operator:1'],
  ['localhost:5000/x', 'localhost:5000/x:latest'],
])('%s is %s in full', (short, full) => {
  expect(fullReference(short)).toBe(full);
});
