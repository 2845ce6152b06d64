/** The day-two commands of the kubectl plugin as a process, against a real API server, real etcd processes, agents and the operator. */
import { mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { build } from '../../local/binaries.ts';
import type { EtcdSnapshotSchedule } from '../../src/api/etcd-snapshot-schedule.ts';
import { API_VERSION, etcdSnapshotSchedules, scheduledSnapshotName } from '../../src/api/names.ts';
import type { ClusterReport } from '../../src/cli/assess/report.ts';
import type { Resource } from '../../src/kube/object.ts';
import { persistentVolumeClaims, pods } from '../../src/kube/resources.ts';
import { buildScript } from '../../tools/plugin/build.ts';
import { run } from '../../tools/process.ts';
import { removeFolder } from '../support/kubelet/pod-run.ts';
import { startConnectProxy, startPathGateway } from '../support/servers/gateways.ts';
import { type Child, eventually } from '../support/servers/processes.ts';
import { clusters, members, startWorld, type World } from '../support/servers/world.ts';

const schedules: Resource<EtcdSnapshotSchedule> = etcdSnapshotSchedules;
const folder = mkdtempSync(join(tmpdir(), 'kubectl-etcd-'));
const scratch = mkdtempSync(join(folder, 'tmp-'));
const PATIENCE_MS = 180_000;
const timeout = 3 * PATIENCE_MS;
const PASSWORD = 'secret-of-root';
const IMAGE = '--operator-image=registry.example.com/etcd-operator:test';
const LOG = `${new Date().toISOString()} {"level":"info","msg":"ready to serve client requests"}\n`;
let world: World;
let operator: Child | undefined;
let script: string;

beforeAll(async () => {
  [world, script] = await Promise.all([startWorld(), buildScript(folder)]);
  world.runAgents();
  await world.forwardPorts(LOG);
  operator = world.startOperator(IMAGE);
}, timeout);
afterAll(async () => {
  await operator?.stop('SIGKILL');
  await world?.stop();
  removeFolder(folder);
});
afterEach((context) => {
  if (context.task.result?.state === 'fail') process.stderr.write(operator?.log().slice(-5_000) ?? '');
});

const plugin = (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  run(process.execPath, [script, '--kubeconfig', world.apiServer.kubeconfig, ...args], {
    allowFailure: true,
    env: { TMPDIR: scratch, ...env },
  });
const good = async (...args: readonly string[]) => {
  const ran = await plugin(args);
  expect([ran.code, ran.stderr], args.join(' ')).toEqual([0, expect.any(String)]);
  return ran;
};
const rejected = async (...args: readonly string[]): Promise<string> => {
  const ran = await plugin(args);
  expect(ran.code, `${args.join(' ')}: ${ran.stdout}`).toBe(1);
  return ran.stderr;
};
const json = async <T>(...args: readonly string[]): Promise<T> =>
  JSON.parse((await good(...args, '-o', 'json')).stdout) as T;

const settled = (namespace: string, name = 'db') =>
  world.patiently(PATIENCE_MS).condition(namespace, name, 'Progressing', 'False', 'Reconciled');

async function aCluster(spec: Parameters<World['createCluster']>[2] = {}): Promise<string> {
  const namespace = await world.namespace();
  await world.createCluster(namespace, 'db', spec);
  await settled(namespace);
  return namespace;
}

async function secured(): Promise<string> {
  const namespace = await world.namespace();
  const data = { password: Buffer.from(PASSWORD).toString('base64') };
  await world.admin.transport.json(`/api/v1/namespaces/${namespace}/secrets`, {
    method: 'POST',
    body: { metadata: { name: 'root' }, data },
  });
  await world.createCluster(namespace, 'db', {
    replicas: 3,
    tls: { client: { managed: {} }, peer: { managed: {} } },
    auth: { enabled: true, rootCredentialsSecretRef: { name: 'root' } },
  });
  await world.patiently(PATIENCE_MS).condition(namespace, 'db', 'AuthEnabled', 'True');
  await settled(namespace);
  return namespace;
}

async function endpointOf(namespace: string, prefix = 'db-'): Promise<string> {
  const found = await world.list(pods, namespace);
  const pod = found.map(({ metadata }) => metadata.name ?? '').find((name) => name.startsWith(prefix)) ?? '';
  return `http://${world.kubelet.addressOf(namespace, pod)}:2379`;
}

describe('backups', { timeout }, () => {
  test('a snapshot is created, listed and restored into another cluster; a schedule is run, suspended and resumed', async () => {
    const namespace = await aCluster({ replicas: 1 });
    const on = ['-n', namespace];
    await world.admin.create(persistentVolumeClaims, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'backups', namespace },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    });
    const ask = { endpoint: await endpointOf(namespace), timeoutMs: 5_000 };
    expect((await world.etcd.put(ask, 'greeting', 'hello')).ok).toBe(true);

    expect(await rejected('snapshot', 'create', 'db', ...on, '--yes')).toContain('has no schedule whose store');
    expect((await good('snapshot', 'create', 'db', ...on, '--pvc', 'backups', '--dry-run')).stderr).toMatch(
      /^would create EtcdSnapshot db-\d{14} of db\n$/,
    );
    expect((await good('snapshot', 'list', ...on)).stdout).toBe('');
    const made = await good('snapshot', 'create', 'db', ...on, '--pvc', 'backups', '--name', 'first', '--yes');
    expect(made.stdout).toBe('first\n');
    expect(made.stderr).toMatch(/first: stored at .*first\.db, .* revision \d+\n$/);
    expect((await good('snapshot', 'list', ...on)).stdout).toMatch(
      /^SNAPSHOT +CLUSTER +PHASE +AGE +SIZE +REVISION\nfirst +db +Complete /,
    );

    const manifest = (await good('snapshot', 'restore', 'first', 'db2', ...on, '--dry-run')).stdout;
    expect(manifest).toContain('subPath: first.db');
    expect(await rejected('snapshot', 'restore', 'first', 'db', ...on, '--yes')).toContain('into a new one');
    const restored = await good('snapshot', 'restore', 'first', 'db2', ...on, '--yes');
    expect(restored.stderr).toMatch(/db2 is available\n$/);
    const there = { endpoint: await endpointOf(namespace, 'db2-'), timeoutMs: 5_000 };
    expect(await world.etcd.get(there, 'greeting')).toEqual({ ok: true, value: 'hello' });

    await world.admin.create(schedules, {
      apiVersion: API_VERSION,
      kind: 'EtcdSnapshotSchedule',
      metadata: { name: 'yearly', namespace },
      spec: {
        clusterRef: { name: 'db' },
        schedule: '@yearly',
        destination: { pvc: { claimName: 'backups', subPath: 'yearly' } },
      },
    });
    const ran = await good('schedule', 'run', 'yearly', ...on, '--yes');
    expect([
      scheduledSnapshotName('yearly', Date.now()),
      scheduledSnapshotName('yearly', Date.now() - 60_000),
    ]).toContain(ran.stdout.trim().slice(0, 'yearly-202601010000'.length));
    const recorded = await eventually('the schedule to count it', async () => {
      const schedule = await world.admin.get(schedules, { namespace, name: 'yearly' });
      return schedule?.status?.lastSuccessful?.name;
    });
    expect(recorded).toBe(ran.stdout.trim());
    await good('schedule', 'suspend', 'yearly', ...on, '--yes');
    expect((await good('schedule', 'list', 'db', ...on)).stdout).toMatch(/^yearly +@yearly +\S+ ago +suspended/m);
    expect((await good('schedule', 'suspend', 'yearly', ...on, '--yes')).stderr).toBe('yearly is suspended already\n');
    await good('schedule', 'resume', 'yearly', ...on, '--yes');
    expect((await world.admin.get(schedules, { namespace, name: 'yearly' }))?.spec.suspend).toBe(false);
  });
});

describe('with mTLS and auth', { timeout }, () => {
  test('hashes, certificates, figures, logs and Events; etcdctl and other programs reach it, and no password is shown', async () => {
    const namespace = await secured();
    const on = ['db', '-n', namespace];
    const hashes = await json<{ readonly is: string; readonly members: readonly object[] }>('hashkv', ...on, '--check');
    expect([hashes.is, hashes.members.length]).toEqual(['same', 3]);
    const certs = await good('certs', ...on, '--check');
    expect(certs.stdout).toMatch(/^CERTIFICATE +SECRET +EXPIRES +RENEWED\nserver /);
    expect(certs.stdout).toMatch(/^client +[0-9a-f]{10} +settled$/m);
    const top = await json<readonly Readonly<Record<string, number>>[]>('top', ...on);
    expect(top.every((row) => (row['databaseBytes'] ?? 0) > 0 && (row['ranges'] ?? -1) >= 0)).toBe(true);
    const logs = await good('logs', ...on);
    expect(logs.stdout).toMatch(/^\d\d:\d\d:\d\d\.\d{3} db-\S+ +ready to serve client requests$/m);
    expect(logs.stdout).toMatch(/^\S+ event +\S+ EtcdCluster db: /m);
    expect((await good('events', ...on)).stdout).toMatch(/^AGE +TYPE +REASON +ABOUT +(COUNT +)?MESSAGE\n/);
    expect((await good('members', ...on, '-o', 'yaml')).stdout).toMatch(/^- id: [0-9a-f]+\n {2}name: db-/);

    const { 'etcd-3.6': etcd } = await build(['etcd-3.6']);
    const PATH = [etcd, process.env['PATH']].join(delimiter);
    for (const [way, args, env] of [
      ['etcdctl', [], { PATH }],
      ['builtin', ['--builtin'], {}],
    ] as const) {
      const ctl = (...words: readonly string[]) => plugin(['etcdctl', ...args, ...on, '--', ...words], env);
      expect(await ctl('put', '/a/1', way)).toMatchObject({ code: 0, stdout: 'OK\n' });
      expect((await ctl('get', '--prefix', '/a')).stdout).toBe(`/a/1\n${way}\n`);
      expect((await ctl('del', '/a/1')).stdout).toBe('1\n');
      expect((await ctl('member', 'list')).stdout.trim().split('\n')).toHaveLength(3);
    }
    const missing = await plugin(['etcdctl', ...on, '--builtin', '--', 'lease', 'list']);
    expect([missing.code, missing.stderr]).toEqual([1, expect.stringContaining('only these are understood: get, put')]);

    const used = await plugin(['port-forward', ...on, '--', join(etcd, 'etcdctl'), 'put', 'b', 'c']);
    expect(used).toMatchObject({ code: 0, stdout: 'OK\n' });
    const shown = [certs, logs, used].map(({ stdout, stderr }) => stdout + stderr).join('');
    expect(shown).not.toContain(PASSWORD);
    // Sockets, certificates and passwords are gone when the command has ended.
    expect(readdirSync(scratch)).toEqual([]);

    const measured = await json<{ readonly loads: readonly { readonly calls: number; readonly failed: number }[] }>(
      'benchmark',
      ...on,
      '--seconds',
      '1',
      '--yes',
    );
    expect(measured.loads.map(({ calls, failed }) => [calls > 0, failed])).toEqual([
      [true, 0],
      [true, 0],
      [true, 0],
    ]);
    const left = await plugin(['etcdctl', '--builtin', ...on, '--', 'get', '--prefix', 'kubectl-etcd', '--count-only']);
    expect(left.stdout).toBe('"Count" : 0\n');
  });
});

describe('members', { timeout }, () => {
  test('one is replaced by a new one; without a quorum that would remain, it is refused', async () => {
    const namespace = await aCluster({ replicas: 3 });
    const on = ['-n', namespace];
    const names = async () => (await json<ClusterReport>('status', 'db', ...on)).members.map(({ name }) => name);
    const [first = '', second = ''] = await names();
    const why = (await good('explain', 'db', ...on)).stdout;
    expect(why).toContain('Decision now: steady: All members are ready');
    expect(why).toMatch(/^membership +none of its \d+ rules applies$/m);
    expect(why).toMatch(/^ {2}db-\S+: voter; Pod ready; etcd \S+ responds, follows a leader$/m);
    expect((await good('replace', first, ...on, '--dry-run')).stderr).toMatch(/^would replace db-/);
    await good('replace', first, ...on, '--yes');
    const after = await names();
    expect(after).toHaveLength(3);
    expect(after).not.toContain(first);
    expect(after).toContain(second);
    await world.admin.patch(clusters, { namespace, name: 'db' }, { spec: { suspend: true } });
    expect(await rejected('replace', second, ...on, '--yes')).toContain('suspended');
    expect((await good('explain', 'db', ...on)).stdout).toMatch(/^stop +suspended: /m);
    expect(await world.list(members, namespace)).toHaveLength(3);
  });
});

test('a full database: status says what to do, a benchmark is refused, and the alarm is listed and disarmed', {
  timeout,
}, async () => {
  const namespace = await aCluster({ replicas: 1 });
  const on = ['db', '-n', namespace];
  const ask = { endpoint: await endpointOf(namespace), timeoutMs: 5_000 };
  const status = await world.etcd.status(ask);
  if (!status.ok) throw new Error(status.error.message);
  const { memberId } = status.value;
  expect((await world.etcd.maintenance.activate(ask, { memberId, alarm: 'noSpace' })).ok).toBe(true);
  const shown = await plugin(['status', ...on, '--check']);
  expect([shown.code, shown.stdout]).toEqual([2, expect.stringContaining('etcd rejects writes')]);
  expect((await good('alarm', 'list', ...on)).stdout).toMatch(/^Alarm: NOSPACE, MemberID: [0-9a-f]{16}\n$/);
  expect(await rejected('benchmark', ...on, '--yes')).toContain('an alarm is active');
  await good('alarm', 'disarm', ...on, '--yes');
  expect((await good('alarm', 'list', ...on)).stderr).toBe('no alarm is active\n');
});

test('names of clusters are completed, in any shell that kubectl completes', { timeout }, async () => {
  const namespace = await world.namespace();
  await world.createCluster(namespace, 'orders', { replicas: 0 });
  const asked = await run(process.execPath, [
    script,
    '__complete',
    '-k',
    world.apiServer.kubeconfig,
    '-n',
    namespace,
    'status',
    'or',
  ]);
  expect(asked.stdout).toBe('orders\n:4\n');
  expect((await good('completion', 'kubectl')).stdout).toContain('kubectl-etcd __complete "$@"');
  const completion = join(folder, 'completion.bash');
  writeFileSync(completion, (await good('completion', 'bash')).stdout);
  const PATH = [folder, dirname(process.execPath), process.env['PATH']].join(delimiter);
  const inBash = async (...typed: readonly string[]) => {
    const completes = `source ${completion}; COMP_WORDS=(kubectl-etcd "$@"); COMP_CWORD=$#; _kubectl_etcd; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const env = { PATH, KUBECONFIG: world.apiServer.kubeconfig };
    return (await run('bash', ['-c', completes, 'bash', ...typed], { env })).stdout.trim().split('\n');
  };
  expect(await inBash('-n', namespace, 'status', 'or')).toEqual(['orders']);
  expect(await inBash('--namespace', '=', namespace, 'upgrade', '')).toEqual(['orders']);
  expect(await inBash('schedule', 'r')).toEqual(['run', 'resume']);
  expect(await inBash('status', '--output', '=', 'y')).toEqual(['yaml']);
});

describe('connection', { timeout }, () => {
  /** A kubeconfig of the administrator, with another way to the API server. */
  async function kubeconfig(name: string, cluster: object): Promise<string> {
    const { server, ca = '', token = '' } = await world.admin.transport.identity();
    const path = join(folder, `${name}.json`);
    const data = Buffer.from(ca).toString('base64');
    const config = {
      'current-context': 'c',
      contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
      clusters: [{ name: 'c', cluster: { server, 'certificate-authority-data': data, ...cluster } }],
      users: [{ name: 'u', user: { token } }],
    };
    writeFileSync(path, JSON.stringify(config));
    return path;
  }
  const healthOf = async (namespace: string, config: string): Promise<unknown> => {
    const args = [script, '-k', config, 'status', 'db', '-n', namespace, '-o', 'json'];
    const { stdout, stderr } = await run(process.execPath, args, { allowFailure: true });
    if (stdout === '') throw new Error(stderr);
    return (JSON.parse(stdout) as ClusterReport).quorum;
  };

  test('through a proxy, and through a gateway that serves the API server below a path, members are reached', async () => {
    const namespace = await aCluster({ replicas: 1 });
    const proxy = await startConnectProxy();
    const gateway = await startPathGateway(await world.admin.transport.identity(), '/clusters/one');
    try {
      const reached = { voters: 1, needed: 1, healthy: 1, margin: 0, source: 'etcd' };
      expect(await healthOf(namespace, await kubeconfig('proxy', { 'proxy-url': proxy.url }))).toEqual(reached);
      expect(proxy.seen.length).toBeGreaterThan(1);
      expect(await healthOf(namespace, await kubeconfig('path', { server: gateway.url }))).toEqual(reached);
      expect(gateway.seen.some((path) => /^\/clusters\/one\/api\/v1\/.*\/portforward/.test(path))).toBe(true);
    } finally {
      proxy.close();
      gateway.close();
    }
  });
});
