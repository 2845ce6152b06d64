/**
 * The layers of ARCHITECTURE.md, as one table: what each folder of `src` may import. Imports are read from the syntax tree of
 * every file. Each rule is also broken on purpose: a table that allows everything would pass otherwise.
 */
import { execFileSync } from 'node:child_process';
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, posix } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { packageProgram, root } from './paths.ts';
import { nodesOf } from './syntax-tree.ts';

/** Every folder may import its own files; a new folder needs a row. */
const LAYERS: Readonly<Record<string, readonly string[]>> = {
  gen: [],
  lib: [],
  api: ['gen', 'lib'],
  domain: ['api', 'gen', 'lib'],
  pki: ['gen', 'lib'],
  kube: ['gen', 'lib'],
  etcd: ['gen', 'lib'],
  runtime: ['kube', 'gen', 'lib'],
  access: ['domain', 'api', 'runtime', 'kube', 'etcd', 'pki', 'gen', 'lib'],
  /** They run in Pods without permissions at the API server. */
  agent: ['domain', 'api', 'etcd', 'gen', 'lib'],
  /** And of controllers only their own folder: controllers meet in Kubernetes objects. */
  controllers: ['domain', 'api', 'access', 'runtime', 'kube', 'etcd', 'pki', 'gen', 'lib'],
  /** The kubectl plugin: it sees what users see, and shares with controllers only what they agree on in `domain`. */
  cli: ['domain', 'api', 'access', 'kube', 'etcd', 'pki', 'gen', 'lib'],
  bin: ['controllers', 'agent', 'cli', 'domain', 'api', 'access', 'runtime', 'kube', 'etcd', 'pki', 'gen', 'lib'],
};

/** What pure files may import besides pure files of their own folder. */
const PURE_MAY_IMPORT =
  /^src\/(api|domain|gen|lib|access\/evaluate)\/|^src\/(runtime\/(plan|compose)|pki\/findings)\.ts$/;
/** `access/evaluate` reads certificates; the other pure folders do not. */
const EVALUATE_MAY_IMPORT = /^src\/pki\//;
const PURE_PACKAGES = ['typebox'];
const PURE_CRYPTO = ['createHash', 'X509Certificate'];
/** Only kube opens connections to the API server, only etcd uses gRPC, and only agents connect to stores. */
const WIRES: Readonly<Record<string, readonly string[]>> = {
  undici: ['kube', 'agent'],
  '@connectrpc/connect': ['etcd'],
  '@connectrpc/connect-node': ['etcd'],
};

const IO_FILE = /^(observe|controller|observe-.*|execute.*)\.ts$/;

/** Purity is a folder rule: inside `controllers` it follows from the name of the file. */
function isPure(file: string): boolean {
  if (/^src\/(lib|api|domain|access\/evaluate|cli\/(assess|render))\//.test(file)) return true;
  if (!file.startsWith('src/controllers/')) return false;
  return !IO_FILE.test(posix.basename(file)) && !file.includes('/observe/');
}

interface Import {
  readonly from: string;
  readonly names: readonly string[];
}

function importsOf(source: string): readonly Import[] {
  return nodesOf(source).flatMap(({ node }): readonly Import[] => {
    const from = (node['source'] as { readonly value?: unknown } | null | undefined)?.value;
    if (typeof from !== 'string' || !/^(Import|Export)/.test(node.type)) return [];
    const specifiers = (node['specifiers'] ?? []) as readonly { readonly imported?: { readonly name?: string } }[];
    return [{ from, names: specifiers.map(({ imported }) => imported?.name ?? '*') }];
  });
}

const folderOf = (file: string): string => file.split('/')[1] ?? '';
/** `controllers/cluster` of `src/controllers/cluster/rules/growth.ts`. */
const controllerOf = (file: string): string => file.split('/').slice(1, 3).join('/');
const isRule = (file: string): boolean => file.includes('/rules/');

const CHAIN = 'src/controllers/cluster/credentials/';

/** What the rest of the cluster controller and the credentials chain know of each other. */
function chainRefusal(file: string, target: string): string | undefined {
  if (/\/cluster\/(rules|rollout)\//.test(file) && target.startsWith(CHAIN) && target !== `${CHAIN}state.ts`)
    return 'of credentials, rules know the value in state.ts only';
  return file.startsWith(CHAIN) && isPure(file) && target.includes('/cluster/') && !target.startsWith(CHAIN)
    ? 'the credentials chain decides on its own facts only'
    : undefined;
}

/** The reason why this import is refused; `undefined` when it is allowed. */
function refusal(file: string, { from, names }: Import): string | undefined {
  if (!from.startsWith('.')) return packageRefusal(file, from, names);
  const target = posix.normalize(posix.join(posix.dirname(file), from));
  if (!target.startsWith('src/')) return `${target} is not in src`;
  const [own, other] = [folderOf(file), folderOf(target)];
  if (own !== other && !LAYERS[own]?.includes(other)) return `${own} may not import ${other}`;
  if (own === 'controllers' && other === own && controllerOf(file) !== controllerOf(target))
    return 'controllers never import each other: they meet in Kubernetes objects';
  if (isRule(target) && (isRule(file) || !['decide.ts', 'controller.ts'].includes(posix.basename(file))))
    return 'only decide.ts imports rules: what two rules share stands in a pure file beside them';
  const chain = chainRefusal(file, target);
  if (chain !== undefined) return chain;
  if (!isPure(file) || isPure(target) || PURE_MAY_IMPORT.test(target)) return undefined;
  if (file.startsWith('src/access/evaluate/') && EVALUATE_MAY_IMPORT.test(target)) return undefined;
  return `${file} is pure and ${target} is not`;
}

function packageRefusal(file: string, from: string, names: readonly string[]): string | undefined {
  const wire = WIRES[from];
  if (wire && !wire.includes(folderOf(file))) return `only ${wire.join(' and ')} may import ${from}`;
  if (!isPure(file) || PURE_PACKAGES.includes(from.split('/')[0] ?? '')) return undefined;
  if (from === 'node:crypto' && names.every((name) => PURE_CRYPTO.includes(name))) return undefined;
  return `${file} is pure: it may not import ${from}`;
}

const refusals = (file: string, source: string): readonly string[] =>
  importsOf(source).flatMap((each) => refusal(file, each) ?? []);

const sources = globSync('src/**/*.ts', { cwd: root })
  .filter((file) => !file.endsWith('.test.ts') && !file.startsWith('src/gen/'))
  .sort();

test.each(sources)('%s imports only what its layer may', (file) => {
  expect(refusals(file, readFileSync(join(root, file), 'utf8'))).toEqual([]);
});

test.each(sources.filter(isPure))('%s is synchronous and does not read the clock', (file) => {
  const code = readFileSync(join(root, file), 'utf8').replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*/g, '');
  expect(code).not.toMatch(/\basync\b|\bawait\b|\bPromise\b|\bnew Date\(\)/);
});

test('the intervals and deadlines of controllers stand in domain/timing.ts', () => {
  const declared = sources
    .filter((file) => /^src\/(controllers|domain|access)\//.test(file))
    .filter((file) => /^(export )?const [A-Z_]+_(MS|SECONDS) = /m.test(readFileSync(join(root, file), 'utf8')));
  expect(declared).toEqual(['src/domain/timing.ts']);
});

test('every folder of src has a row, and every row a folder', () => {
  const folders = new Set(globSync('src/*/**/*.ts', { cwd: root }).map(folderOf));
  expect([...folders].sort()).toEqual(Object.keys(LAYERS).sort());
});

const imports = (from: string, name = 'x'): string => `import { ${name} } from '${from}';\nexport const y = ${name};\n`;

describe.each<[file: string, from: string, name?: string]>([
  ['src/lib/quantity.ts', '../api/names.ts'],
  ['src/lib/quantity.ts', 'node:fs'],
  ['src/lib/hash.ts', 'node:crypto', 'randomBytes'],
  ['src/api/names.ts', '../kube/object.ts'],
  ['src/api/names.ts', '../domain/ownership.ts'],
  ['src/domain/ownership.ts', '../kube/client.ts'],
  ['src/domain/ownership.ts', '../pki/findings.ts'],
  ['src/domain/agent-pod.ts', 'node:fs'],
  ['src/kube/client.ts', '../api/names.ts'],
  ['src/kube/client.ts', '../etcd/client.ts'],
  ['src/kube/client.ts', '../runtime/queue.ts'],
  ['src/kube/client.ts', '@connectrpc/connect'],
  ['src/etcd/client.ts', '../kube/client.ts'],
  ['src/etcd/client.ts', 'undici'],
  ['src/pki/issue.ts', '../domain/ownership.ts'],
  ['src/runtime/controller.ts', '../etcd/client.ts'],
  ['src/runtime/controller.ts', '../api/names.ts'],
  ['src/runtime/controller.ts', '../controllers/cluster/controller.ts'],
  ['src/access/secret-cache.ts', '../controllers/cluster/observed.ts'],
  ['src/access/evaluate/view.ts', '../secret-cache.ts'],
  ['src/access/evaluate/view.ts', '../../kube/store.ts'],
  ['src/access/evaluate/view.ts', 'node:crypto', 'randomBytes'],
  ['src/agent/stores/s3.ts', '../../kube/client.ts'],
  ['src/agent/stores/s3.ts', '../../runtime/queue.ts'],
  ['src/agent/stores/s3.ts', '../../controllers/snapshot/controller.ts'],
  ['src/controllers/cluster/controller.ts', '../member/build.ts'],
  ['src/controllers/cluster/controller.ts', '../../bin/operator.ts'],
  ['src/controllers/cluster/controller.ts', '../../agent/stores/store.ts'],
  ['src/controllers/cluster/controller.ts', 'undici'],
  ['src/controllers/member/observe.ts', '../cluster/observed.ts'],
  ['src/controllers/cluster/decide.ts', '../../runtime/queue.ts'],
  ['src/controllers/cluster/decide.ts', '../../kube/client.ts'],
  ['src/controllers/cluster/decide.ts', './observe.ts'],
  ['src/controllers/cluster/decide.ts', './controller.ts'],
  ['src/controllers/cluster/decide.ts', './observe/members.ts'],
  ['src/controllers/cluster/decide.ts', 'node:fs'],
  ['src/controllers/cluster/build.ts', './execute-etcd-call.ts'],
  ['src/controllers/cluster/credentials/certificates.ts', '../../../access/secret-cache.ts'],
  ['src/controllers/cluster/credentials/rules/certificates.ts', '../../../../pki/issue.ts'],
  ['src/controllers/cluster/rules/growth.ts', './shrink.ts'],
  ['src/controllers/cluster/rules/growth.ts', '../credentials/rules/auth.ts'],
  ['src/controllers/cluster/rules/growth.ts', '../credentials/certificates.ts'],
  ['src/controllers/cluster/rollout/reasons.ts', '../credentials/ca-rotation.ts'],
  ['src/controllers/cluster/credentials/auth.ts', '../observed.ts'],
  ['src/controllers/cluster/status.ts', './rules/loss.ts'],
  ['src/cli/gather/cluster.ts', '../../controllers/cluster/quorum.ts'],
  ['src/cli/gather/cluster.ts', '../../agent/stores/store.ts'],
  ['src/cli/gather/cluster.ts', '../../runtime/queue.ts'],
  ['src/cli/assess/health.ts', '../gather/cluster.ts'],
  ['src/cli/render/cluster.ts', '../context.ts'],
  ['src/cli/render/cluster.ts', 'node:fs'],
])('refused: %s imports %s', (file, from, name) => {
  test(name ?? 'x', () => expect(refusals(file, imports(from, name))).toHaveLength(1));
});

describe.each<[file: string, from: string, name?: string]>([
  ['src/lib/hash.ts', 'node:crypto', 'createHash'],
  ['src/api/names.ts', '../lib/quantity.ts'],
  ['src/api/names.ts', 'typebox'],
  ['src/api/meta.ts', '../gen/kube.ts'],
  ['src/domain/agent-pod.ts', '../gen/kube.ts'],
  ['src/kube/client.ts', 'undici'],
  ['src/etcd/client.ts', '@connectrpc/connect'],
  ['src/runtime/controller.ts', '../kube/client.ts'],
  ['src/access/evaluate/view.ts', '../../pki/examine.ts'],
  ['src/access/secret-cache.ts', './evaluate/view.ts'],
  ['src/agent/tasks/source.ts', '../../etcd/client.ts'],
  ['src/controllers/cluster/controller.ts', '../../etcd/client.ts'],
  ['src/controllers/cluster/decide.ts', './rules/growth.ts'],
  ['src/controllers/cluster/decide.ts', '../../runtime/plan.ts'],
  ['src/controllers/cluster/credentials/rules/certificates.ts', '../../../../pki/findings.ts'],
  ['src/controllers/cluster/rules/growth.ts', '../observed.ts'],
  ['src/controllers/cluster/rollout/reasons.ts', '../credentials/state.ts'],
  ['src/controllers/cluster/credentials/observe.ts', '../observed.ts'],
  ['src/controllers/cluster/observe-members.ts', '../../kube/store.ts'],
  ['src/controllers/cluster/execute-etcd-call.ts', '../../etcd/client.ts'],
  ['src/bin/operator.ts', '../controllers/cluster/controller.ts'],
  ['src/bin/kubectl-etcd.ts', '../cli/main.ts'],
  ['src/cli/gather/cluster.ts', '../../kube/client.ts'],
  ['src/cli/assess/quorum.ts', '../../domain/quorum.ts'],
  ['src/cli/render/cluster.ts', '../assess/report.ts'],
])('accepted: %s imports %s', (file, from, name) => {
  test(name ?? 'x', () => expect(refusals(file, imports(from, name))).toEqual([]));
});

/** The linter refuses globals by the same patterns; each case is a small repository of its own. */
describe('globals of the clock, of random numbers and of the process', () => {
  const now = 'export const now = () => Date.now();\n';
  const cases: readonly (readonly [file: string, code: string, refused: boolean])[] = [
    ['src/lib/quantity.ts', now, true],
    ['src/domain/disruption.ts', now, true],
    ['src/access/evaluate/view.ts', now, true],
    ['src/controllers/cluster/rules/growth.ts', now, true],
    ['src/controllers/cluster/observed.ts', now, true],
    ['src/controllers/cluster/status.ts', 'export const random = () => Math.random();\n', true],
    ['src/controllers/cluster/build.ts', "export const home = process.env['HOME'];\n", true],
    ['src/controllers/member/observed.ts', 'export const id = () => crypto.randomUUID();\n', true],
    ['src/cli/render/units.ts', now, true],
    ['src/cli/commands/status.ts', now, false],
    ['src/controllers/cluster/observe.ts', now, false],
    ['src/controllers/cluster/credentials/observe-auth.ts', now, false],
    ['src/controllers/cluster/execute-etcd-call.ts', now, false],
    ['src/runtime/clock.ts', now, false],
  ];
  let folder: string;
  const refused = new Set<string>();
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'etcd-operator-layers-'));
    const config = JSON.parse(readFileSync(join(root, '.oxlintrc.json'), 'utf8')) as { options?: unknown };
    delete config.options; // types are not needed here, and there is no tsconfig
    for (const [index, [file, code]] of cases.entries()) {
      const path = join(folder, String(index), file);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, code);
      writeFileSync(join(folder, String(index), '.oxlintrc.json'), JSON.stringify(config));
    }
    for (const { filename } of lint(folder)) refused.add(filename.split('/')[0] ?? '');
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  test.each(cases.map(([file, , is], index) => [file, is ? 'refused' : 'accepted', index] as const))(
    '%s: %s',
    (_, expected, index) => expect(refused.has(String(index)) ? 'refused' : 'accepted').toBe(expected),
  );
});

function lint(cwd: string): readonly { readonly filename: string }[] {
  try {
    execFileSync(process.execPath, [packageProgram('oxlint'), '--format=json', '.'], { cwd, stdio: 'pipe' });
    return [];
  } catch (error) {
    const { stdout } = error as { readonly stdout: Buffer };
    return (JSON.parse(stdout.toString()) as { diagnostics: { filename: string }[] }).diagnostics;
  }
}
