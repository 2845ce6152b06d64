/**
 * The programs of the local cluster and of tests, built from the modules in `local/build` and kept by the hash of their sources.
 * They are in Go, but for those that come as npm packages with a lock file of their own.
 * A build goes to a temporary folder and is renamed at its end: a later build never takes half of a killed one for a whole one.
 */
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  symlinkSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fetching } from '../tools/fetching.ts';
import { withUndo } from '../tools/interrupt.ts';
import { cacheDir, root } from '../tools/paths.ts';
import { run } from '../tools/process.ts';
import { Failure, type Progress, step } from '../tools/terminal.ts';
import { isAlive } from './daemon.ts';

interface Program {
  readonly package: string;
  readonly name: string;
  /** Further names of the same program. */
  readonly links?: readonly string[];
}

const KUBERNETES = 'v1.36.3';
const etcd: readonly Program[] = [
  { package: 'go.etcd.io/etcd/server/v3', name: 'etcd' },
  { package: 'go.etcd.io/etcd/etcdctl/v3', name: 'etcdctl' },
  { package: 'go.etcd.io/etcd/etcdutl/v3', name: 'etcdutl' },
];

/** Not a dependency of the project: it and what it needs are more than all the others together. */
const NPM = 'npm';

const PARTS = {
  azurite: NPM,
  kubernetes: [
    {
      package: '.',
      name: 'kubernetes',
      links: ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kubelet', 'kube-proxy', 'kubectl'],
    },
  ],
  'etcd-3.5': etcd,
  /** The last version without /readyz; only for the test of the readiness probe that replaces it. */
  'etcd-3.5.10': [{ package: 'go.etcd.io/etcd/server/v3', name: 'etcd' }],
  'etcd-3.6': etcd,
  'etcd-3.7': etcd,
  'cert-manager': [{ package: '.', name: 'cert-manager' }],
  coredns: [{ package: 'github.com/coredns/coredns', name: 'coredns' }],
  'fake-gcs-server': [{ package: 'github.com/fsouza/fake-gcs-server', name: 'fake-gcs-server' }],
  helm: [{ package: 'helm.sh/helm/v4/cmd/helm', name: 'helm' }],
  'local-path-provisioner': [{ package: 'github.com/rancher/local-path-provisioner', name: 'local-path-provisioner' }],
  'long-wire': [{ package: '.', name: 'long-wire' }],
  pause: [{ package: '.', name: 'pause' }],
  versitygw: [{ package: 'github.com/versity/versitygw/cmd/versitygw', name: 'versitygw' }],
} as const satisfies Record<string, readonly Program[] | typeof NPM>;

export type Part = keyof typeof PARTS;

const BIN = join(cacheDir, 'bin');
const BUILDING = '.building-';

const LDFLAGS = `-s -w -X k8s.io/component-base/version.gitVersion=${KUBERNETES}`; // without it nodes report v0.0.0-master
const MIN_GO = [1, 26] as const;
/** What a first build of each part writes to the disk, Go's caches included, in MiB as measured. */
const NEEDS_MIB: Readonly<Record<Part, number>> = {
  azurite: 500,
  kubernetes: 4500,
  'cert-manager': 1500,
  coredns: 1200,
  'fake-gcs-server': 1000,
  helm: 1200,
  'local-path-provisioner': 700,
  versitygw: 700,
  'etcd-3.5': 400,
  'etcd-3.5.10': 400,
  'etcd-3.6': 400,
  'etcd-3.7': 400,
  'long-wire': 100,
  pause: 100,
};

/** Builds the missing parts, one after the other (a Go build fills every core by itself); returns each part's folder. */
export async function build<P extends Part>(parts: readonly P[]): Promise<Record<P, string>> {
  const missing = parts.filter((part) => !existsSync(folder(part)));
  if (missing.length > 0) {
    await requireGo();
    await requireSpace(missing);
    for (const [i, part] of missing.entries())
      await step(`build ${part} (${i + 1} of ${missing.length})`, (progress) => buildPart(part, progress));
  }
  return Object.fromEntries(parts.map((part) => [part, folder(part)])) as Record<P, string>;
}

/** The folder of a built part, named by its content: a changed go.sum gets another folder. */
function folder(part: Part): string {
  const source = join(root, 'local', 'build', part);
  const hash = createHash('sha256').update(LDFLAGS).update(JSON.stringify(PARTS[part]));
  for (const file of readdirSync(source).sort()) hash.update(file).update(readFileSync(join(source, file)));
  return join(BIN, `${part}-${hash.digest('hex').slice(0, 16)}`);
}

function buildPart(part: Part, progress: Progress): Promise<void> {
  sweep();
  const temporary = join(BIN, `${BUILDING}${process.pid}-${part}`);
  const remove = async (): Promise<void> => rmSync(temporary, { recursive: true, force: true });
  return withUndo(remove, async () => {
    const [out, goTemporary] = [join(temporary, 'out'), join(temporary, 'tmp')];
    for (const made of [out, goTemporary]) mkdirSync(made, { recursive: true });
    const programs: readonly Program[] | typeof NPM = PARTS[part];
    if (programs === NPM) await installPackages(part, out);
    else await compile(part, programs, { out, goTemporary, progress });
    publish(out, folder(part));
  });
}

async function compile(
  part: Part,
  programs: readonly Program[],
  { out, goTemporary, progress }: { readonly out: string; readonly goTemporary: string; readonly progress: Progress },
): Promise<void> {
  let compiled = 0;
  for (const program of programs) {
    const target = ['-o', join(out, program.name), program.package];
    const options = {
      cwd: join(root, 'local', 'build', part),
      env: { CGO_ENABLED: '0', GOFLAGS: '-mod=readonly', GOTOOLCHAIN: 'local', GOTMPDIR: goTemporary },
      onLine: (line: string) => {
        if (line.startsWith('go: downloading')) progress(line.slice('go: '.length));
        else progress(`${++compiled} packages compiled`);
      },
    };
    await fetching(() => run('go', ['build', '-v', '-trimpath', '-ldflags', LDFLAGS, ...target], options));
    for (const link of program.links ?? []) symlinkSync(program.name, join(out, link));
  }
}

/** Installs what the lock file pins; no script of it runs. */
async function installPackages(part: Part, out: string): Promise<void> {
  for (const file of ['package.json', 'package-lock.json'])
    copyFileSync(join(root, 'local', 'build', part, file), join(out, file));
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  await fetching(() => run('npm', args, { cwd: out }));
}

/** Removes what a killed build left behind. */
function sweep(): void {
  mkdirSync(BIN, { recursive: true });
  for (const name of readdirSync(BIN).filter((entry) => entry.startsWith(BUILDING)))
    if (!isAlive(Number.parseInt(name.slice(BUILDING.length), 10)))
      rmSync(join(BIN, name), { recursive: true, force: true });
}

/** Another build of the same part may have finished first; its result is the same. */
function publish(temporary: string, target: string): void {
  try {
    renameSync(temporary, target);
  } catch (error) {
    if (!existsSync(target)) throw error;
  }
}

async function requireGo(): Promise<void> {
  const needed = `Go ${MIN_GO.join('.')} or later is needed to build the local Kubernetes`;
  const version = await run('go', ['env', 'GOVERSION']).catch(() => {
    throw new Failure(
      `${needed}, and there is no go command on the PATH: install it, then run this again. (sudo has a PATH of its own, often without /usr/local/go/bin.)`,
    );
  });
  const [major = 0, minor = 0] = version.stdout.trim().replace(/^go/, '').split('.').map(Number);
  if (major < MIN_GO[0] || (major === MIN_GO[0] && minor < MIN_GO[1]))
    throw new Failure(
      `${needed}, and this machine has ${version.stdout.trim()}: install a newer one, then run this again.`,
    );
}

/** Go's caches take more of the space than the checkout. */
async function requireSpace(parts: readonly Part[]): Promise<void> {
  const needed = parts.reduce((sum, part) => sum + NEEDS_MIB[part], 0);
  const folders = (await run('go', ['env', 'GOCACHE', 'GOMODCACHE'])).stdout.trim().split('\n');
  for (const folder of [root, ...folders]) {
    const { bavail, bsize } = statfsSync(existing(folder));
    const free = (bavail * bsize) / 1024 ** 2;
    if (free < needed)
      throw new Failure(
        `Building ${parts.join(', ')} takes up to ${(needed / 1024).toFixed(1)} GiB of disk, and ${folder} has ${(free / 1024).toFixed(1)} GiB left: free some space, then run this again.`,
      );
  }
}

const existing = (folder: string): string => (existsSync(folder) ? folder : existing(dirname(folder)));
