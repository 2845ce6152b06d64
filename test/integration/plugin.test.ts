/** The kubectl plugin as a process, against a real API server, real etcd processes and the operator. */
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Finding } from '../../src/cli/assess/finding.ts';
import type { ClusterReport } from '../../src/cli/assess/report.ts';
import { buildExecutable, buildScript, ownPlatform } from '../../tools/plugin/build.ts';
import { run } from '../../tools/process.ts';
import { removeFolder } from '../support/kubelet/pod-run.ts';
import { type Child, eventually } from '../support/servers/processes.ts';
import { clusters, startWorld, type World } from '../support/servers/world.ts';

const folder = mkdtempSync(join(tmpdir(), 'kubectl-etcd-'));
let world: World;
let operator: Child | undefined;
let script: string;

beforeAll(async () => {
  [world, script] = await Promise.all([startWorld(), buildScript(folder)]);
  await world.forwardPorts(`authenticated with ${PASSWORD}\n${KEY}\nready to serve client requests\n`);
  operator = world.startOperator();
});
afterAll(async () => {
  await operator?.stop('SIGKILL');
  await world?.stop();
  removeFolder(folder);
});
afterEach((context) => {
  if (context.task.result?.state === 'fail') process.stderr.write(operator?.log().slice(-5_000) ?? '');
});

const PASSWORD = 'secret-of-root';
const KEY = '-----BEGIN EC PRIVATE KEY-----\nc2VjcmV0LWtleQ==\n-----END EC PRIVATE KEY-----';
const PATIENCE_MS = 120_000;

/** Without a terminal, as in a pipe. */
const plugin = (...args: readonly string[]) =>
  run(process.execPath, [script, '--kubeconfig', world.apiServer.kubeconfig, ...args], { allowFailure: true });

async function report(namespace: string, ...args: readonly string[]): Promise<ClusterReport> {
  const { stdout, stderr } = await plugin('status', 'db', '-n', namespace, '-o', 'json', ...args);
  if (stdout === '') throw new Error(stderr);
  return JSON.parse(stdout) as ClusterReport;
}

async function aCluster(spec: Parameters<World['createCluster']>[2]): Promise<string> {
  const namespace = await world.namespace();
  await world.createCluster(namespace, 'db', { replicas: 3, ...spec });
  await world.patiently(PATIENCE_MS).condition(namespace, 'db', 'Progressing', 'False', 'Reconciled');
  return namespace;
}

let securedNamespace: Promise<string> | undefined;
/** A cluster with mTLS and auth that the tests share. */
const secured = (): Promise<string> => (securedNamespace ??= aSecuredCluster());

async function aSecuredCluster(): Promise<string> {
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
  await world.patiently(PATIENCE_MS).condition(namespace, 'db', 'Progressing', 'False', 'Reconciled');
  return namespace;
}

/** May read everything but Secrets, and may not forward ports. */
async function aReader(namespace: string): Promise<string> {
  const rules = [
    { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list'] },
    { apiGroups: ['etcd-operator.cozystack.io'], resources: ['*'], verbs: ['get', 'list'] },
    { apiGroups: ['events.k8s.io', 'policy'], resources: ['*'], verbs: ['get', 'list'] },
  ];
  const base = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`;
  const { transport } = world.admin;
  await transport.json(`${base}/roles`, { method: 'POST', body: { metadata: { name: 'reader' }, rules } });
  const subjects = [{ kind: 'User', name: 'reader', apiGroup: 'rbac.authorization.k8s.io' }];
  const roleRef = { kind: 'Role', name: 'reader', apiGroup: 'rbac.authorization.k8s.io' };
  const body = { metadata: { name: 'reader' }, roleRef, subjects };
  await transport.json(`${base}/rolebindings`, { method: 'POST', body });
  return 'reader';
}

describe('status', { timeout: 2 * PATIENCE_MS }, () => {
  test('of three plain members: each with what it responded', async () => {
    const namespace = await aCluster({});
    const healthy = await eventually('a healthy report', async () => {
      const found = await report(namespace);
      return found.health === 'healthy' ? found : undefined;
    });
    expect(healthy).toMatchObject({
      namespace,
      name: 'db',
      quorum: { voters: 3, needed: 2, healthy: 3, margin: 1, source: 'etcd' },
      unread: [],
    });
    expect(healthy.members.map(({ role }) => role).sort()).toEqual(['follower', 'follower', 'leader']);
    expect(
      healthy.members.every(
        ({ databaseBytes = 0, raftIndex = 0, zone }) => databaseBytes > 0 && raftIndex > 0 && zone === 'zone-a',
      ),
    ).toBe(true);
    expect(healthy.members.find(({ name }) => name === healthy.leader)?.role).toBe('leader');
    expect(healthy.events.length).toBeGreaterThan(0);
    const screen = await plugin('status', 'db', '-n', namespace, '--check');
    expect([screen.code, screen.stderr]).toEqual([0, '']);
    expect(screen.stdout).toMatch(new RegExp(`^etcd cluster ${namespace}/db +HEALTHY\n`));
    expect(screen.stdout).not.toContain('\u001B');
  });

  test('with mTLS and auth: certificates and the password are found, and what a reader may not see is named', async () => {
    const namespace = await secured();
    const full = await eventually('a healthy report', async () => {
      const found = await report(namespace);
      return found.health === 'healthy' ? found : undefined;
    });
    expect(full.quorum).toMatchObject({ healthy: 3, source: 'etcd' });
    expect(full.certificates.map(({ role }) => role)).toEqual(['server', 'operator', 'application', 'peer']);
    expect(full.certificates.every(({ notAfter, problems }) => notAfter !== undefined && problems.length === 0)).toBe(
      true,
    );

    const user = await aReader(namespace);
    const limited = await report(namespace, '--as', user);
    expect(limited).toMatchObject({ health: 'healthy', quorum: { source: 'operator' } });
    expect(limited.unread.map(({ message }) => message).join('\n')).toContain('Secrets');
    expect(limited.unread).toContainEqual({
      what: 'zones',
      message: 'you lack the permission to get nodes in the whole Kubernetes cluster',
    });
  });

  test('of a user who may not forward ports says which permission is missing', async () => {
    const namespace = await aCluster({ replicas: 1 });
    const limited = await report(namespace, '--as', await aReader(namespace));
    expect(limited.quorum?.source).toBe('operator');
    expect(limited.unread[0]?.message).toBe(
      `you lack the permission to get and create pods/portforward in namespace ${namespace}`,
    );
  });

  test('fails with a sentence: no such cluster, no permission, no such output', async () => {
    const namespace = await world.namespace();
    const missing = await plugin('status', 'nothing', '-n', namespace);
    expect([missing.code, missing.stderr]).toEqual([
      1,
      `error: there is no EtcdCluster nothing in namespace ${namespace}: choose another namespace with -n, or list all clusters with: kubectl etcd status -A\n`,
    ]);
    const refused = await plugin('status', '-A', '--as', 'anyone');
    expect([refused.code, refused.stderr]).toEqual([
      1,
      'error: you lack the permission to list etcdclusters.etcd-operator.cozystack.io in the whole Kubernetes cluster\n',
    ]);
    expect((await plugin('status', '-o', 'xml', '-n', namespace)).stderr).toBe(
      'error: -o must be json, yaml or wide, not "xml"\n',
    );
  });

  test('without a name is a table, and --check fails while a cluster is not available', async () => {
    const namespace = await world.namespace();
    await world.createCluster(namespace, 'db', { replicas: 1, tls: { client: { serverSecretRef: { name: 'late' } } } });
    await world.patiently(PATIENCE_MS).condition(namespace, 'db', 'Available', 'False', 'CertificatesInvalid');
    const table = await plugin('status', '-n', namespace, '--check');
    expect(table.code).toBe(2);
    expect(table.stdout).toMatch(/^CLUSTER +HEALTH +READY .*\ndb +unavailable +0\/1 /);
    expect((await plugin('status', 'db', '-n', namespace, '--check')).code).toBe(2);
  });
});

describe('the verbs', { timeout: 3 * PATIENCE_MS }, () => {
  /** The first column is the name of a Pod, too. */
  const memberNames = async (namespace: string): Promise<readonly string[]> =>
    (await report(namespace)).members.map(({ name }) => name);
  const good = async (...args: readonly string[]) => {
    const ran = await plugin(...args);
    expect([ran.code, ran.stderr], args.join(' ')).toEqual([0, expect.any(String)]);
    return ran;
  };

  test('on a plain cluster: members, compact, defrag, alarms and the leader, by name and by Pod', async () => {
    const namespace = await aCluster({});
    const on = ['db', '-n', namespace];
    const names = await memberNames(namespace);
    const [first = ''] = names;
    const pod = ['-n', namespace, '-p', first];
    const table = (await good('members', ...on)).stdout;
    expect(table).toMatch(/^ID +HOSTNAME +PEER URLS +CLIENT URLS +LEARNER\n/);
    for (const name of names) expect(table).toContain(`http://${name}.db.${namespace}.svc:2380`);
    expect((await good('members', ...pod)).stdout).toBe(table);
    expect((await good('status', ...pod)).stdout).toMatch(
      /^MEMBER +DB SIZE +IN USE +LEADER +RAFT INDEX +RAFT APPLIED INDEX +LEARNER +ERRORS\n[0-9a-f]{16} .* false +-\n$/,
    );

    const ask = { endpoint: `http://${world.kubelet.addressOf(namespace, first)}:2379`, timeoutMs: 5_000 };
    for (let i = 0; i < 20; i++) expect((await world.etcd.put(ask, 'k', 'x'.repeat(100_000))).ok).toBe(true);
    const refused = await plugin('compact', ...on);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('pass --yes')]);
    expect((await good('compact', ...on, '--dry-run')).stderr).toMatch(/^would compact all revisions before \d+/);
    expect((await world.etcd.kv.range(ask, { key: 'k', revision: 3n })).ok).toBe(true);
    await good('compact', ...on, '--yes');
    expect(await world.etcd.kv.range(ask, { key: 'k', revision: 3n })).toMatchObject({ error: { kind: 'compacted' } });
    const leader = (await report(namespace)).leader ?? '';
    const done = await good('defrag', ...on, '--direct', '--yes');
    const order = done.stderr
      .trim()
      .split('\n')
      .map((line) => line.split(':')[0]);
    expect(new Set(order)).toEqual(new Set(names));
    expect(order.at(-1)).toBe(leader);
    await good('defrag', ...pod);

    const to = names.find((name) => name !== leader) ?? '';
    await good('move-leader', ...on, '--to', to, '--yes');
    expect((await report(namespace)).leader).toBe(to);
    await good('forfeit-leadership', '-n', namespace, '-p', to);
    expect((await report(namespace)).leader).not.toBe(to);

    const status = await world.etcd.status(ask);
    if (!status.ok) throw new Error(status.error.message);
    await world.etcd.maintenance.activate(ask, { memberId: status.value.memberId, alarm: 'noSpace' });
    expect((await good('alarm', 'list', ...on)).stdout).toMatch(/^Alarm: NOSPACE, MemberID: [0-9a-f]{16}\n$/);
    const full = await plugin('status', ...on, '--check');
    expect([full.code, full.stdout]).toEqual([2, expect.stringContaining('etcd rejects writes')]);
    await good('alarm', 'disarm', ...on, '--yes');
    expect((await good('alarm', 'list', ...pod)).stdout).toBe('');
    expect((await world.etcd.put(ask, 'k', 'v')).ok).toBe(true);
  });

  test('the membership of a cluster is not changed without --force', async () => {
    const namespace = await aCluster({ replicas: 1 });
    const [name = ''] = await memberNames(namespace);
    for (const verb of [['leave'], ['remove-member', 'abc'], ['add-member', 'http://x:2380']]) {
      const ran = await plugin(...verb, '-n', namespace, '-p', name);
      expect([ran.code, ran.stderr]).toEqual([1, expect.stringContaining('the operator owns the membership')]);
    }
    const list = (await good('members', 'db', '-n', namespace)).stdout;
    expect(list.trim().split('\n')).toHaveLength(2);
    expect(
      (await good('add-member', 'http://x.invalid:2380', '-c', 'db', '-n', namespace, '--force', '--dry-run')).stderr,
    ).toBe('would add a voter with the peer URL http://x.invalid:2380\n');
    expect((await plugin('remove-member', 'nothex', '-n', namespace, '-p', name, '--force')).stderr).toContain(
      'hexadecimal',
    );
  });

  test('edits of the spec: scale, pause, resume and suspend, each after it was agreed to', async () => {
    const namespace = await aCluster({ replicas: 1 });
    const on = ['db', '-n', namespace];
    const spec = async () => (await world.admin.get(clusters, { namespace, name: 'db' }))?.spec;
    const asked = await plugin('scale', 'db', '3', '-n', namespace);
    expect([asked.code, asked.stderr]).toEqual([1, expect.stringContaining('scale db from 1 to 3 members')]);
    expect((await spec())?.replicas).toBe(1);
    await good('suspend', ...on, '--yes');
    expect((await spec())?.suspend).toBe(true);
    expect((await good('suspend', ...on, '--yes')).stderr).toBe('db is suspended already\n');
    await good('unsuspend', ...on, '--yes');
    expect((await spec())?.suspend).toBe(false);
    await good('pause', ...on, '--yes');
    await world.patiently(PATIENCE_MS).condition(namespace, 'db', 'Available', 'False', 'Paused');
    expect((await report(namespace)).health).toBe('paused');
    await good('resume', ...on, '--yes');
    expect((await spec())?.replicas).toBe(1);
    await world.patiently(PATIENCE_MS).condition(namespace, 'db', 'Available', 'True');
    const managed = (await world.admin.get(clusters, { namespace, name: 'db' }))?.metadata.managedFields ?? [];
    expect(managed.map(({ manager }) => manager)).toContain('kubectl-etcd');
    expect((await plugin('rotate-ca', ...on, '--yes')).stderr).toContain('the operator manages no CA of db');
    expect((await plugin('scale', 'db', 'x', '-n', namespace, '--yes')).stderr).toContain('whole number');
  });

  test('with mTLS and auth: snapshots of a member are whole files that only their owner reads', async () => {
    const namespace = await secured();
    const [name = ''] = await memberNames(namespace);
    const [one, two] = [join(folder, 'one.db'), join(folder, 'two.db')];
    await good('snapshot', 'download', 'db', one, '-n', namespace);
    await good('snapshot', two, '-n', namespace, '-p', name, '-s', 'root');
    for (const file of [one, two]) {
      const { mode, size } = statSync(file);
      expect(mode & 0o777).toBe(0o600);
      const content = readFileSync(file);
      const digest = createHash('sha256')
        .update(content.subarray(0, size - 32))
        .digest();
      expect(digest.equals(content.subarray(size - 32))).toBe(true);
    }
    expect(readdirSync(folder).filter((file) => file.endsWith('.part'))).toEqual([]);
    expect((await good('members', 'db', '-n', namespace)).stdout).toContain(name);
    const wrong = Buffer.from('wrong').toString('base64');
    await world.admin.transport.json(`/api/v1/namespaces/${namespace}/secrets`, {
      method: 'POST',
      body: { metadata: { name: 'wrong' }, data: { password: wrong } },
    });
    const refused = await plugin('members', 'db', '-n', namespace, '-s', 'wrong');
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('name a Secret')]);
  });
});

test.runIf(process.env['DEV_TEST_ALL'])(
  'the executable for this machine needs no Node',
  { timeout: 600_000 },
  async () => {
    const platform = ownPlatform();
    if (!platform) throw new Error('there is no executable for this machine');
    const executable = await buildExecutable(script, platform, folder);
    const ran = await run(executable, ['status', '-A', '--kubeconfig', world.apiServer.kubeconfig], {
      env: { PATH: '' },
    });
    expect(ran.stdout).toMatch(/^NAMESPACE +CLUSTER +HEALTH /);
  },
);

describe('support', { timeout: 2 * PATIENCE_MS }, () => {
  test('doctor: members on one node, no backup, and the latencies that the members measure themselves', async () => {
    const namespace = await secured();
    const ran = await plugin('doctor', 'db', '-n', namespace, '-o', 'json', '--check');
    expect(ran.code).toBe(2);
    const findings = JSON.parse(ran.stdout) as readonly Finding[];
    const levelOf = (subject: string) => findings.find((each) => each.subject === subject)?.level;
    expect([levelOf('backups'), levelOf('spread'), levelOf('certificates')]).toEqual(['problem', 'advice', 'ok']);
    expect(levelOf('disk')).not.toBe('unknown');
  });

  test('report: objects, logs and checks in one file, and no password and no key in it', async () => {
    const namespace = await secured();
    const file = join(folder, 'report.tar.gz');
    const ran = await plugin('report', 'db', '-n', namespace, '--out', file);
    expect([ran.code, ran.stdout]).toEqual([0, `${file}\n`]);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const names = (await run('tar', ['-tzf', file])).stdout.trim().split('\n');
    expect(names).toEqual(
      expect.arrayContaining(['status.txt', 'doctor.txt', 'cluster.yaml', 'secrets.yaml', 'not-included.txt']),
    );
    expect(names.filter((name) => /^logs\/db-.*\.log$/.test(name))).toHaveLength(3);
    const all = (await run('tar', ['-xzOf', file])).stdout;
    expect(all).toContain('ready to serve client requests');
    expect(all).toContain('db-root-applied');
    for (const secret of [PASSWORD, Buffer.from(PASSWORD).toString('base64'), 'PRIVATE KEY', 'c2VjcmV0LWtleQ'])
      expect(all, secret).not.toContain(secret);
  });

  test('report of a user who may not read Secrets says whose values are not recognised', async () => {
    const namespace = await aCluster({ replicas: 1, tls: { client: { managed: {} }, peer: { managed: {} } } });
    const file = join(folder, 'limited.tar.gz');
    const ran = await plugin('report', 'db', '-n', namespace, '--out', file, '--as', await aReader(namespace));
    expect(ran.code).toBe(0);
    const missing = (await run('tar', ['-xzOf', file, 'not-included.txt'])).stdout;
    expect(missing).toMatch(/^Secret db-server-mounted: .*; its values are not recognised in other files$/m);
    expect(missing).toMatch(/^logs\/db-.*\.log: you lack the permission to get pods\/log /m);
  });
});
