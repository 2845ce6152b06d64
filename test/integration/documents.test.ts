/** What documents show to users, against the real programs: manifests are accepted, flags exist, own certificates work. */
import { globSync, mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { build } from '../../local/binaries.ts';
import { API_VERSION } from '../../src/api/names.ts';
import { examine, type Requirements, type TlsSecret } from '../../src/pki/examine.ts';
import { manifestsOf, objectsIn } from '../../tools/documents/manifests.ts';
import { pages, read } from '../../tools/documents/pages.ts';
import { ownWords, unknownFlags } from '../../tools/documents/program-flags.ts';
import { typed } from '../../tools/documents/shell.ts';
import { chartDir, root } from '../../tools/paths.ts';
import { run } from '../../tools/process.ts';
import { removeFolder } from '../support/kubelet/pod-run.ts';
import { type Api, startApi } from '../support/servers/api-server.ts';

const folder = mkdtempSync(join(tmpdir(), 'etcd-operator-documents-'));
let api: Api;
let namespace: string;
let [kubectl, helm, etcdctl] = ['', '', ''];
beforeAll(async () => {
  const parts = await build(['kubernetes', 'helm', 'etcd-3.6']);
  kubectl = join(parts.kubernetes, 'kubectl');
  helm = join(parts.helm, 'helm');
  etcdctl = join(parts['etcd-3.6'], 'etcdctl');
  api = await startApi();
  namespace = await api.namespace();
}, 600_000);
afterAll(async () => {
  await api?.stop();
  removeFolder(folder);
});

/** Of programs that no test installs: see the comment of each example. */
const OF_OTHERS = ['monitoring.coreos.com/', 'kamaji.clastix.io/', 'cert-manager.io/'];

type Object_ = Readonly<Record<string, unknown>>;
const isServed = (object: Object_): boolean =>
  !OF_OTHERS.some((group) => String(object['apiVersion']).startsWith(group));

/** The API server's answer to `kubectl apply`, without changing anything. */
async function refusal(objects: readonly Object_[]): Promise<string> {
  if (objects.length === 0) return ''; // kubectl calls that an error
  const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects });
  const apply = ['apply', '--dry-run=server', '--validate=strict', '--kubeconfig', api.kubeconfig, '-n', namespace];
  return (await run(kubectl, [...apply, '-f', '-'], { input: list, allowFailure: true })).stderr;
}

const examples = globSync('docs/examples/*.yaml', { cwd: root }).sort();

describe('every example', () => {
  test.each(examples)('%s is accepted as it stands', async (file) => {
    expect(await refusal(objectsIn(read(file)).filter(isServed))).toBe('');
  });
  test('is found, and a wrong one is refused', async () => {
    expect(examples.length).toBeGreaterThan(25);
    const wrong = { apiVersion: API_VERSION, kind: 'EtcdCluster', metadata: { name: 'db' }, spec: { version: 'x' } };
    expect(await refusal([wrong])).toContain('spec.version');
  });
});

const whole = ({ object }: { readonly object: Object_ }): boolean =>
  'kind' in object && isServed(object) && !JSON.stringify(object).includes('…');

test.each(pages)('manifests of %s are accepted', async (page) => {
  // Namespaces of a journey do not exist here: nothing but the objects is judged.
  const objects = manifestsOf(read(page)).filter(whole);
  const inDefault = objects.map(({ object }) => ({
    ...object,
    metadata: { ...(object['metadata'] as object), namespace: undefined },
  }));
  if (inDefault.length > 0) expect(await refusal(inDefault)).toBe('');
});

describe('values of the chart', () => {
  test.each(globSync('docs/examples/values/*.yaml', { cwd: root }).sort())('%s can be rendered', async (file) => {
    const { code, stderr } = await run(helm, ['template', 'x', chartDir, '-f', join(root, file)], {
      allowFailure: true,
    });
    expect([code, stderr]).toEqual([0, '']);
  });
});

/** Every line that a person is asked to type, of one program. */
const lines = (...program: readonly string[]): readonly (readonly string[])[] =>
  pages.flatMap((page) => typed(read(page), ...program).map(({ words }) => words));

const KUBECTL = [
  'get describe logs exec apply create delete patch annotate label wait port-forward cordon uncordon drain taint top debug run edit scale auth',
]
  .flatMap((words) => words.split(' '))
  .concat('create secret generic', 'create namespace', 'rollout status', 'rollout restart', 'auth can-i');

describe('flags in the documents exist', () => {
  const helpOf =
    (program: () => string, ...further: readonly string[]) =>
    async (words: readonly string[]): Promise<string> => {
      const outputs = [[...words, '--help'], ...further.map((word) => [word])];
      const all = await Promise.all(outputs.map((args) => run(program(), args)));
      return all.map(({ stdout }) => stdout).join('\n');
    };
  const wrongIn = async (
    found: readonly (readonly string[])[],
    subcommands: readonly string[],
    help: (words: readonly string[]) => Promise<string>,
  ): Promise<readonly string[]> => {
    const known = new Map<string, Promise<string>>();
    const cached = (words: readonly string[]): Promise<string> => {
      const key = words.join(' ');
      const answer = known.get(key) ?? help(words);
      known.set(key, answer);
      return answer;
    };
    return (await Promise.all(found.map((words) => unknownFlags(words, subcommands, cached)))).flat();
  };

  test('of kubectl', async () => {
    const own = lines('kubectl').filter(([, verb]) => verb !== undefined && verb !== 'etcd');
    const local = lines('./dev', 'kubectl').filter(
      ([, , verb]) => verb !== 'etcd' && verb !== undefined && verb !== '…',
    );
    const found = [...own, ...local.map((words) => words.slice(1))];
    expect(found.length).toBeGreaterThan(50);
    expect(
      await wrongIn(
        found,
        KUBECTL,
        helpOf(() => kubectl, 'options'),
      ),
    ).toEqual([]);
  });

  test('of Helm', async () => {
    const found = lines('helm').filter((words) => words.length > 1);
    expect(found.length).toBeGreaterThan(5);
    expect(
      await wrongIn(
        found,
        ['install', 'upgrade', 'rollback', 'uninstall', 'template', 'list'],
        helpOf(() => helm),
      ),
    ).toEqual([]);
  });

  const ETCDCTL =
    'get put del|member list|member remove|endpoint health|endpoint status|endpoint hashkv|alarm list|alarm disarm|compact|compaction|defrag|user add|user passwd|user grant-role|role add|role grant-permission|auth disable|snapshot save|move-leader'
      .split('|')
      .flatMap((words) => (words.startsWith('get ') ? words.split(' ') : [words]));
  test('of etcdctl, also inside a Pod and through the plugin', async () => {
    const inside = [...lines('kubectl'), ...lines('./dev', 'kubectl')].flatMap((words) => {
      const after = words.slice(words.indexOf('--') + 1);
      if (!words.includes('--')) return [];
      if (ownWords(words).includes('etcdctl')) return [['etcdctl', ...after]];
      return after[0] === 'etcdctl' ? [after] : [];
    });
    const found = [...lines('etcdctl').filter((words) => words.length > 1), ...inside];
    expect(found.length).toBeGreaterThan(10);
    expect(
      await wrongIn(
        found,
        ETCDCTL,
        helpOf(() => etcdctl),
      ),
    ).toEqual([]);
  });
});

describe('own-certificates.sh makes certificates that the operator accepts', () => {
  const at = join(folder, 'own');
  const [host, service] = ['*.own.default.svc', 'own-client.default.svc'];
  const secret = (name: string): TlsSecret => ({
    secret: name,
    data: Object.fromEntries(
      ['tls.crt', 'tls.key', 'ca.crt'].map((key) => [key, readFileSync(join(at, name, key), 'utf8')]),
    ),
  });
  beforeAll(async () => {
    await run('sh', [join(root, 'docs/examples/own-certificates.sh'), 'own', 'default', at]);
  });
  test.each<[string, Requirements]>([
    ['server', { role: 'server', memberNames: [host], clientNames: [service], mutual: true }],
    ['peer', { role: 'peer', memberNames: [host, `${host}.cluster.local`], clientNames: [], mutual: true }],
    ['operator', { role: 'operator', memberNames: [], clientNames: [], mutual: true }],
    ['application', { role: 'application', memberNames: [], clientNames: [], mutual: true }],
  ])('%s', (name, demands) => {
    const { findings, notAfter = 0 } = examine(secret(name), name, demands, Date.now());
    expect(findings).toEqual([]);
    expect(notAfter).toBeGreaterThan(Date.now() + 360 * 86_400_000);
  });
  test('and clients are no peers', () => {
    expect(secret('peer').data['ca.crt']).not.toBe(secret('server').data['ca.crt']);
    expect(basename(at)).toBe('own');
  });
});
