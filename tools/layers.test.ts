/**
 * The layers of ARCHITECTURE.md are kept by the linter. Here each rule is broken on purpose, in a folder of its own, to show
 * that the linter refuses it, and what is allowed is shown to pass: a pattern that matches nothing would look like a clean house.
 */
import { execFileSync } from 'node:child_process';
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { packageProgram, root } from './paths.ts';

interface Case {
  readonly file: string;
  readonly code: string;
}

const imports = (from: string): string => `import { x } from '${from}';\nexport const y = x;\n`;

const refused: readonly Case[] = [
  { file: 'src/lib/quantity.ts', code: imports('../api/names.ts') },
  { file: 'src/lib/quantity.ts', code: imports('../kube/client.ts') },
  { file: 'src/lib/quantity.ts', code: imports('node:fs') },
  { file: 'src/lib/quantity.ts', code: 'export const now = () => Date.now();\n' },
  { file: 'src/api/names.ts', code: imports('../kube/client.ts') },
  { file: 'src/api/names.ts', code: imports('../gen/kube.ts') },
  { file: 'src/api/names.ts', code: imports('../cluster/decide.ts') },
  { file: 'src/kube/client.ts', code: imports('../cluster/decide.ts') },
  { file: 'src/kube/client.ts', code: imports('../api/names.ts') },
  { file: 'src/kube/client.ts', code: imports('../etcd/client.ts') },
  { file: 'src/kube/client.ts', code: imports('../runtime/queue.ts') },
  { file: 'src/kube/watch/machine.ts', code: imports('../../cluster/decide.ts') },
  { file: 'src/etcd/client.ts', code: imports('../kube/client.ts') },
  { file: 'src/etcd/client.ts', code: imports('../runtime/queue.ts') },
  { file: 'src/runtime/controller.ts', code: imports('../etcd/client.ts') },
  { file: 'src/runtime/controller.ts', code: imports('../api/names.ts') },
  { file: 'src/runtime/controller.ts', code: imports('../cluster/controller.ts') },
  { file: 'src/pki/issue.ts', code: imports('../api/names.ts') },
  { file: 'src/pki/issue.ts', code: imports('../kube/client.ts') },
  { file: 'src/credentials/access.ts', code: imports('../cluster/observed.ts') },
  { file: 'src/credentials/access.ts', code: imports('../runtime/queue.ts') },
  { file: 'src/cluster/rules/certificates.ts', code: imports('../../pki/issue.ts') },
  { file: 'src/cluster/certificates.ts', code: imports('../credentials/credentials.ts') },
  { file: 'src/cluster/controller.ts', code: imports('../member/build.ts') },
  { file: 'src/cluster/controller.ts', code: imports('../bin/operator.ts') },
  { file: 'src/cluster/controller.ts', code: imports('undici') },
  { file: 'src/cluster/controller.ts', code: imports('@connectrpc/connect') },
  { file: 'src/member/observe.ts', code: imports('../cluster/observed.ts') },
  { file: 'src/cluster/gate.ts', code: 'export const now = () => Date.now();\n' },
  { file: 'src/member/evidence.ts', code: imports('../kube/client.ts') },
  { file: 'src/cluster/decide.ts', code: imports('../runtime/queue.ts') },
  { file: 'src/cluster/decide.ts', code: imports('../runtime/clock.ts') },
  { file: 'src/cluster/decide.ts', code: imports('../kube/client.ts') },
  { file: 'src/cluster/decide.ts', code: imports('../etcd/client.ts') },
  { file: 'src/cluster/decide.ts', code: imports('../member/observed.ts') },
  { file: 'src/cluster/decide.ts', code: imports('node:fs') },
  { file: 'src/cluster/decide.ts', code: imports('node:fs/promises') },
  { file: 'src/cluster/decide.ts', code: imports('undici') },
  { file: 'src/cluster/decide.ts', code: imports('./observe.ts') },
  { file: 'src/cluster/decide.ts', code: imports('./controller.ts') },
  { file: 'src/cluster/decide.ts', code: 'export const now = () => Date.now();\n' },
  { file: 'src/cluster/status.ts', code: 'export const chance = () => Math.random();\n' },
  { file: 'src/cluster/build.ts', code: "export const home = process.env['HOME'];\n" },
  { file: 'src/member/observed.ts', code: 'export const id = () => crypto.randomUUID();\n' },
  { file: 'src/cluster/rules/grow.ts', code: imports('../../member/build.ts') },
  { file: 'src/cluster/rules/grow.ts', code: imports('../../runtime/queue.ts') },
  { file: 'src/cluster/rules/grow.ts', code: imports('../observe.ts') },
  { file: 'src/cluster/rules/grow.ts', code: 'export const now = () => Date.now();\n' },
  { file: 'src/snapshot/controller.ts', code: imports('../cluster/observe.ts') },
  { file: 'src/snapshot/controller.ts', code: imports('../agent/store.ts') },
  { file: 'src/agent/s3.ts', code: imports('../kube/client.ts') },
  { file: 'src/agent/s3.ts', code: imports('../runtime/queue.ts') },
  { file: 'src/agent/s3.ts', code: imports('../snapshot/controller.ts') },
  { file: 'src/agent/pod.ts', code: imports('node:fs') },
  { file: 'src/defrag-policy/controller.ts', code: imports('../defrag/controller.ts') },
  { file: 'src/defrag/decide.ts', code: imports('../kube/client.ts') },
  { file: 'src/member/placement.ts', code: imports('../kube/client.ts') },
  { file: 'src/cluster/asked.ts', code: 'export const now = () => Date.now();\n' },
];

const accepted: readonly Case[] = [
  { file: 'src/lib/quantity.ts', code: imports('./decimal.ts') },
  { file: 'src/api/names.ts', code: imports('../lib/quantity.ts') },
  { file: 'src/api/names.ts', code: imports('typebox') },
  { file: 'src/kube/client.ts', code: imports('../gen/kube.ts') },
  { file: 'src/kube/client.ts', code: imports('../lib/quantity.ts') },
  { file: 'src/kube/client.ts', code: imports('undici') },
  { file: 'src/kube/client.ts', code: imports('node:fs/promises') },
  { file: 'src/etcd/client.ts', code: imports('../gen/etcd/kv_pb.ts') },
  { file: 'src/etcd/client.ts', code: imports('@connectrpc/connect') },
  { file: 'src/runtime/controller.ts', code: imports('../kube/client.ts') },
  { file: 'src/runtime/controller.ts', code: imports('../lib/backoff.ts') },
  { file: 'src/runtime/clock.ts', code: 'export const now = () => Date.now();\n' },
  { file: 'src/credentials/access.ts', code: imports('../pki/examine.ts') },
  { file: 'src/cluster/rules/certificates.ts', code: imports('../../pki/findings.ts') },
  { file: 'src/cluster/controller.ts', code: imports('../credentials/credentials.ts') },
  { file: 'src/cluster/controller.ts', code: imports('../runtime/controller.ts') },
  { file: 'src/cluster/controller.ts', code: imports('../etcd/client.ts') },
  { file: 'src/cluster/controller.ts', code: imports('./decide.ts') },
  { file: 'src/cluster/decide.ts', code: imports('../runtime/plan.ts') },
  { file: 'src/cluster/decide.ts', code: imports('../api/etcd-cluster.ts') },
  { file: 'src/cluster/decide.ts', code: imports('../gen/kube.ts') },
  { file: 'src/cluster/decide.ts', code: imports('../lib/semver.ts') },
  { file: 'src/cluster/decide.ts', code: imports('./rules/grow.ts') },
  { file: 'src/cluster/rules/grow.ts', code: imports('../observed.ts') },
  { file: 'src/cluster/rules/grow.ts', code: imports('../../runtime/plan.ts') },
  { file: 'src/cluster/rules/grow.test.ts', code: imports('../../../test/support/builders.ts') },
  { file: 'src/kube/client.test.ts', code: imports('../../test/support/builders.ts') },
  { file: 'src/bin/operator.ts', code: imports('../cluster/controller.ts') },
  { file: 'src/bin/agent.ts', code: imports('../agent/tasks.ts') },
  { file: 'src/agent/s3.ts', code: imports('@aws-sdk/client-s3') },
  { file: 'src/agent/source.ts', code: imports('../etcd/client.ts') },
  { file: 'src/agent/s3.ts', code: imports('../api/agent-task.ts') },
  { file: 'src/snapshot/build.ts', code: imports('../agent/pod.ts') },
];

let folder: string;
const place = (kind: string, index: number): string => `${kind}-${index}`;
const complaints = new Map<string, string[]>();

/** Every case is a small repository of its own; one run of the linter reads them all. */
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'etcd-operator-layers-'));
  const config = JSON.parse(readFileSync(join(root, '.oxlintrc.json'), 'utf8')) as { options?: unknown };
  delete config.options; // types are not needed here, and there is no tsconfig
  for (const [kind, cases] of Object.entries({ refused, accepted })) {
    for (const [index, { file, code }] of cases.entries()) {
      const path = join(folder, place(kind, index), file);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, code);
      writeFileSync(join(folder, place(kind, index), '.oxlintrc.json'), JSON.stringify(config));
    }
  }
  for (const { filename, code } of lint())
    complaints.set(filename.split('/')[0] ?? '', [...(complaints.get(filename.split('/')[0] ?? '') ?? []), code]);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function lint(): readonly { readonly filename: string; readonly code: string }[] {
  try {
    execFileSync(process.execPath, [packageProgram('oxlint'), '--format=json', '.'], { cwd: folder, stdio: 'pipe' });
    return [];
  } catch (error) {
    const { stdout } = error as { readonly stdout: Buffer };
    return (JSON.parse(stdout.toString()) as { diagnostics: { filename: string; code: string }[] }).diagnostics;
  }
}

const label = ({ file, code }: Case): string => `${file}: ${code.split('\n')[0]}`;

test.each(refused.map((each, index) => [label(each), index] as const))('refused: %s', (_, index) => {
  expect(complaints.get(place('refused', index))).toEqual([expect.stringMatching(/no-restricted-/)]);
});

test.each(accepted.map((each, index) => [label(each), index] as const))('accepted: %s', (_, index) => {
  expect(complaints.get(place('accepted', index))).toBeUndefined();
});

interface Rules {
  readonly overrides: readonly { readonly files: readonly string[] }[];
}
const { overrides } = JSON.parse(readFileSync(join(root, '.oxlintrc.json'), 'utf8')) as Rules;
const pure = overrides.map(({ files }) => files).find((files) => files.includes('src/*/decide.ts'));
if (!pure) throw new Error('.oxlintrc.json does not say any more which files are pure');

test.each(pure)('%s, which the linter holds to be pure, is there', (pattern) => {
  expect(globSync(pattern, { cwd: root })).not.toEqual([]);
});

const files = globSync([...pure, 'src/lib/**/*.ts'], { cwd: root });

test.each(files.filter((file) => file.endsWith('.ts') && !file.includes('.test.')))(
  '%s is synchronous and does not read the clock',
  (file) => {
    const code = readFileSync(join(root, file), 'utf8').replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*/g, '');
    expect(code).not.toMatch(/\basync\b|\bawait\b|\bPromise\b|\bnew Date\(\)/);
  },
);
