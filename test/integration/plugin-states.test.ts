/** The kubectl plugin on clusters that are not at rest: as the Go operator leaves them, while they roll out, full, suspended, without a quorum; and for a user who may only read. */
import { spawn } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { EtcdDefrag } from '../../src/api/etcd-defrag.ts';
import type { EtcdSnapshotSchedule } from '../../src/api/etcd-snapshot-schedule.ts';
import { API_VERSION, CLUSTER_LABEL, clusterToken, etcdDefrags, etcdSnapshotSchedules } from '../../src/api/names.ts';
import type { ClusterReport } from '../../src/cli/assess/report.ts';
import { hexId } from '../../src/etcd/ids.ts';
import type { KubeObject, Resource } from '../../src/kube/object.ts';
import { persistentVolumeClaims, pods } from '../../src/kube/resources.ts';
import { buildScript } from '../../tools/plugin/build.ts';
import { run } from '../../tools/process.ts';
import {
  claim,
  clusterStatus,
  type Manifest,
  memberObject,
  memberPod,
  memberStatus,
  type Owner,
  peerURL,
  STORAGE,
} from '../support/journeys/go-manifests.ts';
import { removeFolder } from '../support/kubelet/pod-run.ts';
import { type Child, eventually } from '../support/servers/processes.ts';
import { clusters, members, startWorld, type World } from '../support/servers/world.ts';

const defrags: Resource<EtcdDefrag> = etcdDefrags;
const schedules: Resource<EtcdSnapshotSchedule> = etcdSnapshotSchedules;
const folder = mkdtempSync(join(tmpdir(), 'kubectl-etcd-'));
const PATIENCE_MS = 180_000;
const timeout = 2 * PATIENCE_MS;
let world: World;
let operator: Child | undefined;
let script: string;

beforeAll(async () => {
  [world, script] = await Promise.all([startWorld(), buildScript(folder)]);
  await world.forwardPorts(`${new Date().toISOString()} ready to serve client requests\n`);
}, timeout);
afterAll(async () => {
  await operator?.stop('SIGKILL');
  await world?.stop();
  removeFolder(folder);
});
afterEach((context) => {
  if (context.task.result?.state === 'fail') process.stderr.write(operator?.log().slice(-5_000) ?? '');
});

const words = (args: readonly string[]): readonly string[] => [
  script,
  '--kubeconfig',
  world.apiServer.kubeconfig,
  ...args,
];
const plugin = (...args: readonly string[]) => run(process.execPath, words(args), { allowFailure: true });
/** With the exit code that is expected: what was printed, to stdout and to stderr. */
async function exits(code: number, ...args: readonly string[]): Promise<string> {
  const ran = await plugin(...args);
  const all = ran.stdout + ran.stderr;
  expect(ran.code, `${args.join(' ')}: ${all}`).toBe(code);
  expect(all).not.toContain('\u001B');
  return all;
}
const good = (...args: readonly string[]): Promise<string> => exits(0, ...args);
const rejected = (...args: readonly string[]): Promise<string> => exits(1, ...args);
const report = async (...on: readonly string[]): Promise<ClusterReport> =>
  JSON.parse((await plugin('status', ...on, '-o', 'json')).stdout) as ClusterReport;

async function aSchedule(namespace: string): Promise<void> {
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
}

/** A command that goes on while the test does something else. */
function started(...args: readonly string[]) {
  const child = spawn(process.execPath, words(args));
  let text = '';
  child.stderr.on('data', (data: Buffer) => (text += data.toString()));
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  return { child, ended, shown: (): string => text };
}

/** One member, without any operator. */
async function asGoOperator(namespace: string): Promise<string> {
  const [name, member] = ['db', 'db-go1'];
  const cluster = { name, members: [member] };
  const created = await world.createCluster(namespace, name, {
    replicas: 1,
    storage: { size: STORAGE.size, medium: '' },
  });
  const ownerOf = (kind: string, { metadata }: KubeObject): Owner => {
    const { name: of = '', uid = '' } = metadata;
    const reference = { apiVersion: API_VERSION, kind, name: of, uid, controller: true, blockOwnerDeletion: true };
    return { uid, references: [reference] };
  };
  const owner = ownerOf('EtcdCluster', created);
  const token = clusterToken(namespace, name, owner.uid);
  const initialCluster = `${member}=${peerURL(namespace, cluster, member)}`;
  const parts = { member, owner, token, initialCluster, isSeed: true };
  const create = <T extends KubeObject>(resource: Resource<T>, manifest: Manifest): Promise<T> =>
    world.admin.create(resource, manifest as unknown as T);
  const object = await create(members, memberObject(namespace, cluster, parts));
  const own = ownerOf('EtcdMember', object);
  await create(persistentVolumeClaims, claim(namespace, cluster, member, own));
  const pod = await create(pods, memberPod(namespace, cluster, { ...parts, owner: own }));
  const state = await eventually('etcd to respond', async () => {
    const endpoint = `http://${world.kubelet.addressOf(namespace, member)}:2379`;
    const list = await world.etcd.memberList({ endpoint, timeoutMs: 2_000, linearizable: true });
    return list.ok ? list.value : undefined;
  });
  const memberID = hexId(state.members[0]?.id ?? 0n);
  const report = (of: string, resource: Resource, status: Manifest) =>
    world.admin.patch(resource, { namespace, name: of }, { status }, { subresource: 'status' });
  await report(member, members, memberStatus(cluster, member, memberID, pod.metadata.uid ?? ''));
  await report(name, clusters, clusterStatus(cluster, token, hexId(state.clusterId)));
  return member;
}

test('as the Go operator leaves it, without any operator: what needs none works, and what needs one says so', {
  timeout,
}, async () => {
  const namespace = await world.namespace();
  const member = await asGoOperator(namespace);
  const on = ['db', '-n', namespace];
  expect(await report(...on)).toMatchObject({ health: 'healthy', quorum: { voters: 1, healthy: 1, source: 'etcd' } });
  expect(await good('members', ...on)).toContain(member);
  expect(await good('hashkv', ...on, '--check')).toContain('there is one member');
  expect(await good('certs', ...on)).toBe('db has no TLS: neither clients nor peers are encrypted\n');
  expect(await good('events', ...on)).toContain('there is no Event of db');
  expect(await good('top', ...on)).toContain(member);
  expect(await good('logs', ...on)).toContain('ready to serve client requests');
  expect(await good('explain', ...on)).toContain(`${member}: voter; Pod ready`);
  expect(await rejected('restart', ...on, '--yes')).toContain('Check that this operator runs');
  expect(await rejected('upgrade', ...on, '--to', '3.7.3', '--yes')).toContain('Check that this operator runs');
  const waits = await rejected('defrag', ...on, '--yes', '--timeout', '2s');
  expect(waits).toMatch(/^db-\d{14}\ndb-\d{14}: Pending\n\nthe time of --timeout is over, and the operator goes on:/);
  expect(waits).toContain('kubectl delete etcddefrag');
  expect((await report(...on)).defragmentations).toMatchObject([{ phase: 'Pending', done: 0 }]);
  expect(await good('defrag', ...on, '--direct', '--yes')).toMatch(/^db-go1: .* before, .* now\n$/);
  await good('snapshot', 'create', ...on, '--pvc', 'backups', '--name', 'first', '--no-wait', '--yes');
  expect(await good('snapshot', 'list', ...on)).toMatch(/^first +Pending /m);
  expect(await rejected('snapshot', 'restore', 'first', 'db2', '-n', namespace, '--yes')).toMatch(/first/);
  await aSchedule(namespace);
  expect(await rejected('schedule', 'run', 'yearly', '-n', namespace, '--yes', '--timeout', '1s')).toContain('Pending');
  await good('schedule', 'suspend', 'yearly', '-n', namespace, '--yes');
  await good('schedule', 'resume', 'yearly', '-n', namespace, '--yes');
  await good('snapshot', 'download', 'db', join(folder, 'go.db'), '-n', namespace);
});

const LOOK = ['hashkv', 'events', 'top', 'logs', 'explain', 'certs', 'doctor', 'members', 'status'] as const;

describe('of three members', { timeout }, () => {
  let namespace = '';
  let on: readonly string[] = [];
  beforeAll(async () => {
    operator = world.startOperator('--operator-image=registry.example.com/etcd-operator:test');
    namespace = await world.namespace();
    on = ['db', '-n', namespace];
    await world.createCluster(namespace, 'db', { replicas: 3 });
    await settled();
    await aSchedule(namespace);
  }, timeout);
  const settled = () => world.patiently(PATIENCE_MS).condition(namespace, 'db', 'Progressing', 'False', 'Reconciled');
  /** Agents of the schedule have Pods, too. */
  const memberPods = async () =>
    (await world.list(pods, namespace)).filter(({ metadata }) => metadata.labels?.[CLUSTER_LABEL] === 'db');
  const podUids = async () => (await memberPods()).map(({ metadata }) => metadata.uid ?? '').toSorted();
  const endpointOf = (pod: string) => ({
    endpoint: `http://${world.kubelet.addressOf(namespace, pod)}:2379`,
    timeoutMs: 5_000,
  });

  test('a restart shows its progress until every Pod is another one, and meanwhile everything else works', async () => {
    const before = await podUids();
    expect(await good('restart', ...on, '--dry-run')).toBe(
      'would restart every member of db, one after the other, the leader last\n',
    );
    expect(await rejected('restart', ...on)).toContain('pass --yes');
    expect(await podUids()).toEqual(before);
    const { shown, ended } = started('restart', ...on, '--yes');
    await eventually('progress', () =>
      Promise.resolve(/[01] of 3 members have the requested restart/.test(shown()) || undefined),
    );
    for (const command of LOOK) await good(command, ...on);
    expect([await ended, shown()]).toEqual([0, expect.stringMatching(/3 of 3 members have restarted\n$/)]);
    const after = await podUids();
    expect([after.length, after.filter((uid) => before.includes(uid))]).toEqual([3, []]);
  });

  test('an upgrade is refused, or shown with the checks of the operator', async () => {
    expect(await rejected('upgrade', ...on)).toContain("required option '--to <version>' not specified");
    expect(await rejected('upgrade', ...on, '--to', 'v3')).toContain('--to must be a version such as 3.6.16');
    expect(await rejected('upgrade', ...on, '--to', '3.5.35', '--yes')).toContain('pass --downgrade');
    expect(await rejected('upgrade', ...on, '--to', '3.9.0', '--yes')).toContain('one minor at a time');
    expect(await rejected('upgrade', ...on, '--to', '3.8.0', '--yes', '--no-wait')).toContain('3.7.3, then 3.8.0');
    expect(await good('upgrade', ...on, '--to', '3.6.16', '--yes')).toBe('all members of db run 3.6.16 already\n');
    const plan = await good('upgrade', ...on, '--to', '3.8.0', '--dry-run');
    expect(plan).toMatch(/^ {2}3\.7\.3 +3\.6\.16 +next minor\n {2}3\.8\.0 +3\.7\.3 +next minor$/m);
    expect(plan).toContain('the operator does this first: waiting until all members have hashed');
    expect(plan).toMatch(/would change db from etcd 3\.6\.16 to 3\.7\.3, then 3\.8\.0: every member restarts 2 times/);
    expect((await world.admin.get(clusters, { namespace, name: 'db' }))?.spec.version).toBe('3.6.16');
  });

  test('a full one: what reads works, an upgrade would wait; a defragmentation frees the space and disarms the alarm', async () => {
    const { members: rows } = await report(...on);
    const pod = rows[0]?.name ?? '';
    for (let i = 0; i < 20; i++)
      expect((await world.etcd.put(endpointOf(pod), 'k', 'x'.repeat(100_000))).ok).toBe(true);
    await good('compact', ...on, '--yes');
    const memberId = BigInt(`0x${rows[0]?.id}`);
    expect((await world.etcd.maintenance.activate(endpointOf(pod), { memberId, alarm: 'noSpace' })).ok).toBe(true);
    expect(await exits(2, 'status', ...on, '--check')).toContain('kubectl etcd defrag, which disarms the alarm');
    for (const command of LOOK) await good(command, ...on);
    expect(await good('upgrade', ...on, '--to', '3.7.3', '--dry-run')).toContain('! AlarmRaised: etcd has the alarm');
    const done = await good('defrag', ...on, '--yes');
    expect(done.match(/^db-\S+: Defragmented \(\d+\.\d MiB before, \d+\.\d MiB now\)$/gm)).toHaveLength(3);
    expect(done).toMatch(/3 of 3 members defragmented, \d+\.\d MiB freed\n$/);
    expect(await good('alarm', 'list', ...on)).toBe('no alarm is active\n');
    expect((await report(...on)).defragmentations).toMatchObject([{ phase: 'Complete', done: 3, members: 3 }]);
    const { child, shown, ended } = started('defrag', ...on, '--yes', '--free-space-above', '1Gi');
    await eventually('it to be created', () => Promise.resolve(/^db-\d{14}: /m.test(shown()) || undefined));
    child.kill('SIGINT');
    expect([await ended, shown()]).toEqual([
      130,
      expect.stringContaining('this command no longer waits, and the operator goes on: kubectl etcd status db'),
    ]);
    await eventually('the operator to go on', async () =>
      (await report(...on)).defragmentations.every(({ phase }) => phase === 'Complete') ? true : undefined,
    );
    expect(await rejected('defrag', ...on, '--yes', '--free-space-above', 'much')).toMatch(/freeSpaceAbove/);
    expect(await world.list(defrags, namespace)).toHaveLength(2);
  });

  test('a user who may only read sees what there is, and which verb on what is missing', async () => {
    const rules = [
      { apiGroups: ['', 'events.k8s.io', 'policy'], resources: ['*'], verbs: ['get', 'list'] },
      { apiGroups: ['etcd-operator.cozystack.io'], resources: ['*'], verbs: ['get', 'list'] },
    ];
    const base = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`;
    const { transport } = world.admin;
    await transport.json(`${base}/roles`, { method: 'POST', body: { metadata: { name: 'reader' }, rules } });
    const subjects = [{ kind: 'User', name: 'reader', apiGroup: 'rbac.authorization.k8s.io' }];
    const roleRef = { kind: 'Role', name: 'reader', apiGroup: 'rbac.authorization.k8s.io' };
    await transport.json(`${base}/rolebindings`, {
      method: 'POST',
      body: { metadata: { name: 'reader' }, roleRef, subjects },
    });
    const reader = ['--as', 'reader', '-n', namespace];
    for (const command of ['events', 'logs', 'certs', 'status', 'explain', 'doctor'])
      await good(command, 'db', ...reader);
    for (const list of ['snapshot', 'schedule']) await good(list, 'list', 'db', ...reader);
    const lacks = (verb: string, what: string): string => `you lack the permission to ${verb} ${what}`;
    const group = 'etcd-operator.cozystack.io';
    for (const [args, missing] of [
      [['hashkv', 'db'], lacks('create', 'pods/portforward')],
      [['top', 'db'], 'get and create on pods/portforward'],
      [['members', 'db'], lacks('create', 'pods/portforward')],
      [['snapshot', 'create', 'db', '--pvc', 'x', '--yes'], lacks('create', `etcdsnapshots.${group}`)],
      [['schedule', 'run', 'yearly', '--yes'], lacks('create', `etcdsnapshots.${group}`)],
      [['schedule', 'suspend', 'yearly', '--yes'], lacks('patch', `etcdsnapshotschedules.${group}`)],
      [['restart', 'db', '--yes'], lacks('patch', `etcdclusters.${group}`)],
      [['upgrade', 'db', '--to', '3.7.3', '--yes'], lacks('patch', `etcdclusters.${group}`)],
      [['defrag', 'db', '--yes'], lacks('create', `etcddefrags.${group}`)],
      [['scale', 'db', '5', '--yes'], lacks('patch', `etcdclusters.${group}`)],
    ] as const)
      expect(await rejected(...args, ...reader), args.join(' ')).toContain(missing);
    expect(await good('upgrade', 'db', '--to', '3.7.3', '--dry-run', ...reader)).toContain('Not checked: ');
    expect(await rejected('events', 'db', '--as', 'anyone', '-n', namespace)).toContain(
      lacks('get', `etcdclusters.${group}`),
    );
  });

  test('suspended and without a quorum: what can be seen is shown, and nothing starts that would wait for ever', async () => {
    await good('suspend', ...on, '--yes');
    await world.patiently(PATIENCE_MS).condition(namespace, 'db', 'Suspended', 'True');
    for (const command of LOOK) await good(command, ...on);
    expect(await rejected('restart', ...on, '--yes')).toContain('kubectl etcd unsuspend db');
    expect(await rejected('upgrade', ...on, '--to', '3.7.3', '--yes')).toContain('kubectl etcd unsuspend db');
    expect(await rejected('defrag', ...on, '--yes')).toContain('unsuspend it');
    const url = 'http://192.0.2.1:2380';
    const forced = ['-c', 'db', '-n', namespace, '--force', '--yes'];
    const listed = async () =>
      JSON.parse((await plugin('members', ...on, '-o', 'json')).stdout) as readonly {
        readonly id: string;
        readonly peerURLs: readonly string[];
      }[];
    await good('add-member', url, ...forced);
    const added = (await listed()).find(({ peerURLs }) => peerURLs.includes(url));
    expect(await listed()).toHaveLength(4);
    expect(await exits(2, 'hashkv', ...on, '--check')).toMatch(/its Pod is not running/);
    await good('remove-member', added?.id ?? '', ...forced);
    expect(await listed()).toHaveLength(3);
    const [first, second, left] = await memberPods();
    for (const pod of [first, second]) {
      const { name = '', uid = '' } = pod?.metadata ?? {};
      await world.admin.delete(pods, { namespace, name }, { uid });
    }
    await eventually('the quorum to be lost', async () =>
      (await report(...on)).health === 'unavailable' ? true : undefined,
    );
    expect(await exits(2, 'status', ...on, '--check')).toMatch(/^etcd cluster .* UNAVAILABLE\n/);
    for (const command of ['events', 'logs', 'certs', 'explain', 'top', 'doctor']) await good(command, ...on);
    const name = left?.metadata.name ?? '';
    expect(await exits(2, 'hashkv', ...on, '--check')).toContain(name);
    expect(await rejected('members', ...on)).toContain(name);
    expect(await good('snapshot', 'download', 'db', join(folder, 'x.db'), '-n', namespace)).toContain(
      'the last writes may be missing',
    );
    const args = ['snapshot', 'create', ...on, '--pvc', 'backups', '--name', 'lost', '--yes', '--timeout', '2s'];
    expect(await rejected(...args)).toContain('the operator goes on');
    await good('unsuspend', ...on, '--yes');
    await world.patiently(PATIENCE_MS).condition(namespace, 'db', 'Available', 'True', 'QuorumHealthy');
    expect((await report(...on)).quorum).toMatchObject({ voters: 3, healthy: 3 });
  });
});
