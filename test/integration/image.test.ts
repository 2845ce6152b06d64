/** The operator's image: the build is reproducible, it is complete for both architectures, and it contains nothing that it does not need. */
import { cp, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { HOPELESS_EXIT, parseResult } from '../../src/domain/agent-result.ts';
import { TRIPLET } from '../../tools/image/debian.ts';
import { type Architecture, readElf } from '../../tools/image/elf.ts';
import { buildOperatorImage, type OperatorImage } from '../../tools/image/operator.ts';
import { cacheDir, root } from '../../tools/paths.ts';
import { run } from '../../tools/process.ts';
import { permutations } from '../support/permutations.ts';

const own: Architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';
const DOWNLOADS_MS = 300_000;

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'image-'));
  await cp(join(root, 'src'), join(dir, 'src'), { recursive: true });
  await symlink(join(root, 'node_modules'), join(dir, 'node_modules'));
});
afterAll(() => rm(dir, { recursive: true, force: true }));

/** From a copy of the sources and with its own revision: a file that is saved or a commit during the test would change the image. */
const buildIn = (cache: string, architecture: Architecture): Promise<OperatorImage> =>
  buildOperatorImage({ architecture, cache, programs: join(dir, 'src/bin'), revision: 'test' });

const buildFromNothing = async (architecture: Architecture): Promise<OperatorImage> =>
  buildIn(await mkdtemp(join(dir, 'cache-')), architecture);

/** With the packages that other builds have downloaded, and not over their image. */
async function buildFromDownloads(architecture: Architecture): Promise<OperatorImage> {
  const cache = await mkdtemp(join(dir, 'cache-'));
  for (const downloads of ['debian', 'node']) {
    await mkdir(join(cacheDir, downloads), { recursive: true });
    await symlink(join(cacheDir, downloads), join(cache, downloads));
  }
  return buildIn(cache, architecture);
}

const built = new Map<Architecture, Promise<OperatorImage>>();
const image = (architecture: Architecture): Promise<OperatorImage> =>
  built.getOrInsertComputed(architecture, buildFromDownloads);

interface Config {
  readonly architecture: string;
  readonly config: Readonly<Record<string, unknown>> & { readonly Labels: Readonly<Record<string, string>> };
}

async function unpack({ path }: OperatorImage): Promise<{ readonly config: Config; readonly rootfs: string }> {
  const layout = await mkdtemp(join(dir, 'layout-'));
  const rootfs = await mkdtemp(join(dir, 'rootfs-'));
  await run('tar', ['-xf', path, '-C', layout]);
  const [docker] = JSON.parse(await readFile(join(layout, 'manifest.json'), 'utf8')) as [
    { readonly Config: string; readonly Layers: [string] },
  ];
  await run('tar', ['--no-same-owner', '-xpf', join(layout, docker.Layers[0]), '-C', rootfs]);
  return { config: JSON.parse(await readFile(join(layout, docker.Config), 'utf8')) as Config, rootfs };
}

const filesIn = async (rootfs: string): Promise<string[]> =>
  (await readdir(rootfs, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

test.runIf(process.env['DEV_TEST_ALL'])(
  'built twice, from nothing, it is the same image',
  async () => {
    const { digest, size } = await image(own);
    expect(await buildFromNothing(own)).toMatchObject({ digest, size });
  },
  DOWNLOADS_MS,
);

const architectures: readonly Architecture[] = [own, own === 'amd64' ? 'arm64' : 'amd64'];

describe.each(permutations(1, architectures))('for %s', (architecture) => {
  let config: Config;
  let rootfs: string;
  beforeAll(async () => {
    ({ config, rootfs } = await unpack(await image(architecture)));
  }, DOWNLOADS_MS);

  test('every program and library is for this architecture and finds its dependencies inside', async () => {
    const folder = `/lib/${TRIPLET[architecture]}`;
    const present = await readdir(join(rootfs, folder));
    const programs: string[] = [];
    for (const path of await filesIn(rootfs)) {
      const elf = readElf(await readFile(path));
      if (!elf) continue;
      programs.push(basename(path));
      expect(elf.machine, path).toBe(architecture);
      expect(present, path).toEqual(expect.arrayContaining([...elf.needed]));
      if (elf.interpreter !== undefined)
        expect((await stat(join(rootfs, elf.interpreter))).mode & 0o111, path).not.toBe(0);
    }
    expect(programs).toEqual(expect.arrayContaining(['node', 'libc.so.6', 'libstdc++.so.6']));
  });

  test('S15: there is nothing else to run, and nothing that other users may change', async () => {
    const runnable: string[] = [];
    for (const path of await filesIn(rootfs)) {
      const { mode } = await stat(path);
      if (mode & 0o111) runnable.push(path.slice(rootfs.length));
      expect(mode & 0o7022, path).toBe(0);
    }
    expect(runnable.filter((path) => !path.includes('/ld-linux-')).toSorted()).toEqual([
      '/agent.mjs',
      '/manager.mjs',
      '/usr/local/bin/node',
    ]);
  });

  test('it has its labels and runs as a user without a name', () => {
    expect(config.architecture).toBe(architecture);
    expect(config.config).toMatchObject({ User: '65532:65532', Entrypoint: ['/usr/local/bin/node', '/manager.mjs'] });
    expect(config.config.Labels).toMatchObject({
      'org.opencontainers.image.title': 'etcd-operator',
      'org.opencontainers.image.licenses': 'Apache-2.0',
      'org.opencontainers.image.revision': 'test',
    });
  });

  test.runIf(architecture === own && process.platform === 'linux')(
    'the operator and the agent start in it with no library of this machine',
    async () => {
      const node = join(rootfs, 'usr/local/bin/node');
      const loader = join(rootfs, readElf(await readFile(node))?.interpreter ?? '');
      const inside = ['--library-path', join(rootfs, 'lib', TRIPLET[architecture])];
      const { stdout } = await run(loader, ['--list', ...inside, node]);
      const resolved = [...stdout.matchAll(/=> (\/\S+)/g)].map((match) => match[1] ?? '');
      expect(resolved.length).toBeGreaterThan(4);
      expect(resolved.filter((path) => !path.startsWith(rootfs))).toEqual([]);
      const help = await run(loader, [...inside, node, join(rootfs, 'manager.mjs'), '--help']);
      expect(help.stdout).toContain('--leader-elect');
      const result = join(dir, `result-${architecture}`);
      const env = { AGENT_RESULT: result, AGENT_TASK: '{"task":"restore"}' };
      const agent = [...inside, node, join(rootfs, 'agent.mjs'), 'snapshot'];
      expect((await run(loader, agent, { env, allowFailure: true })).code).toBe(HOPELESS_EXIT);
      expect(parseResult(await readFile(result, 'utf8'))).toMatchObject({ ok: false, reason: 'Misconfigured' });
    },
  );

  test('the licence of everything that was bundled is there', async () => {
    const licenses = await readFile(join(rootfs, 'usr/share/doc/etcd-operator/LICENSES'), 'utf8');
    for (const name of ['undici', 'typebox', '@aws-sdk/client-s3', '@azure/storage-blob', 'google-auth-library'])
      expect(licenses).toContain(`==== ${name} `);
  });
});
