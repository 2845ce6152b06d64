/** A leader that was suspended past its Lease and is resumed writes nothing more; an operator that cannot start reports why. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Identity } from '../../src/kube/identity.ts';
import { eventually, freePort, pause } from '../support/servers/processes.ts';
import { clusters, members, startWorld, type World } from '../support/servers/world.ts';

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(async () => {
  await world?.stop();
});

const LEASE = '/apis/coordination.k8s.io/v1/namespaces/default/leases/aa20b3a9.etcd-operator.cozystack.io';
const holder = async (): Promise<string | undefined> => {
  const { spec } = await world.admin.transport.json<{ spec: { holderIdentity: string } }>(LEASE);
  return spec.holderIdentity || undefined;
};

test('a leader that was suspended during a reconcile past its Lease and is resumed writes nothing more, and ends', async () => {
  const namespace = await world.namespace();
  const flags = ['--leader-elect', '--namespace=default', `--watch-namespace=${namespace}`];
  const proxy = await world.faultProxy();
  const stopped = world.startOperator(...proxy.flags, ...flags);
  const first = await eventually('a holder', holder);
  // The reconcile is held at a read: everything that it is about to write depends on the response.
  const letGo = proxy.fault({ verb: 'get', resource: 'services' }, { do: 'hold' });
  await world.createCluster(namespace, 'db');
  await eventually('a pass that reads', () => proxy.calls.find((c) => c.verb === 'get' && c.resource === 'services'));
  process.kill(stopped.pid, 'SIGSTOP');
  const other = world.startOperator(...flags);
  await eventually('another holder', async () => ((await holder()) === first ? undefined : true), {
    timeoutMs: 60_000, // the other process has to start, and to see the Lease unchanged for 15 s
  });
  await world.condition(namespace, 'db', 'Available', 'True');
  const before = proxy.calls.length;
  letGo();
  await pause(200); // the response that the suspended process was waiting for has arrived when it is resumed
  process.kill(stopped.pid, 'SIGCONT');
  expect(await stopped.ended, stopped.log()).toBe(1);
  const written = proxy.calls.slice(before).filter((c) => ['create', 'patch', 'update', 'delete'].includes(c.verb));
  expect(written.map((c) => `${c.verb} ${c.resource}`)).toEqual([]);
  expect((await world.list(members, namespace)).length).toBe(1);
  await world.admin.get(clusters, { namespace, name: 'db' });
  await other.stop('SIGTERM');
  expect(await other.ended).toBe(0);
  expect(await holder()).toBeUndefined(); // left behind for the next one
}, 180_000);

test.each([
  ['no configuration', [], 'this is not a Pod'],
  ['a kubeconfig that is not there', ['--kubeconfig=/nowhere/config'], 'cannot read the kubeconfig /nowhere/config'],
])('an operator with %s reports it and ends', async (_what, flags, sentence) => {
  const operator = world.startOperator('--kubeconfig=', ...flags);
  expect(await operator.ended).toBe(2);
  expect(operator.log()).toContain(sentence);
});

test('probes and metrics reflect the state', async () => {
  const namespace = await world.namespace();
  const proxy = await world.faultProxy();
  const letGo = proxy.fault({ verb: 'watch', resource: 'pods' }, { do: 'hold' });
  const [health, metrics] = [await freePort(), await freePort()];
  const operator = world.startOperator(
    ...proxy.flags,
    `--watch-namespace=${namespace}`,
    `--health-probe-bind-address=127.0.0.1:${health}`,
    `--metrics-bind-address=127.0.0.1:${metrics}`,
  );
  const page = async (port: number, path: string) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`);
    return { code: answer.status, text: await answer.text() };
  };
  const notReady = await eventually('a page', () => page(health, '/readyz'));
  expect(notReady).toMatchObject({ code: 503 });
  await eventually('only Pods are missing', async () => {
    const { text } = await page(health, '/readyz');
    return text === 'the cache of Pod is not synced yet\n' ? true : undefined;
  });
  expect(await page(health, '/healthz')).toEqual({ code: 200, text: 'ok\n' });
  letGo();
  await eventually('ready', async () => ((await page(health, '/readyz')).code === 200 ? true : undefined));
  await world.createCluster(namespace, 'db');
  await world.condition(namespace, 'db', 'Available', 'True');
  proxy.cut();
  const has = (line: RegExp) =>
    eventually(String(line), async () => line.exec((await page(metrics, '/metrics')).text) ?? undefined);
  await has(/etcd_operator_watch_restarts_total\{kind="Pod",how="resumed"\} [1-9]/);
  await has(/etcd_operator_api_requests_total\{verb="create",resource="etcdmembers",code="201"\} 1/);
  await has(/etcd_operator_cache_objects\{kind="EtcdMember"\} 1/);
  await has(/etcd_operator_queue_depth\{controller="cluster"\} 0/);
  await has(/etcd_operator_queue_wait_seconds_count\{controller="member"\} [1-9]/);
  await has(/etcd_operator_reconcile_total\{controller="cluster",rule="bootstrap",result="ok"\} 1/);
  await has(/etcd_operator_reconcile_duration_seconds_count\{controller="cluster"\} [1-9]/);
  await has(/etcd_operator_etcd_calls_total\{method="[A-Za-z/]+",outcome="ok"\} [1-9]/);
  await has(/etcd_operator_leader 1/);
  await operator.stop('SIGTERM');
  expect(await operator.ended).toBe(0);
});

test('token and CA are replaced while the operator runs, and it keeps working', async () => {
  const namespace = await world.namespace();
  const proxy = await world.faultProxy();
  const folder = mkdtempSync(join(tmpdir(), 'rotation-'));
  const keep = ({ ca = '', token = '' }: Identity): void => {
    writeFileSync(join(folder, 'ca.crt'), ca);
    writeFileSync(join(folder, 'token'), token);
  };
  keep(proxy.identity);
  const config = {
    'current-context': 'c',
    contexts: [{ name: 'c', context: { cluster: 'k', user: 'u' } }],
    clusters: [{ name: 'k', cluster: { server: proxy.identity.server, 'certificate-authority': 'ca.crt' } }],
    users: [{ name: 'u', user: { tokenFile: 'token' } }],
  };
  writeFileSync(join(folder, 'config'), JSON.stringify(config));
  const operator = world.startOperator(`--kubeconfig=${join(folder, 'config')}`, `--watch-namespace=${namespace}`);
  await world.createCluster(namespace, 'before');
  await world.condition(namespace, 'before', 'Available', 'True');
  const lists = () => proxy.calls.filter((c) => c.path.includes('sendInitialEvents') && c.code === 200).length;
  const listed = lists();
  const next = await proxy.rotate(); // the files are a little late, as they are in a Pod
  await pause(1_500);
  keep(next);
  await world.createCluster(namespace, 'after');
  await world.condition(namespace, 'after', 'Available', 'True');
  expect(lists()).toBe(listed);
  await operator.stop('SIGTERM');
  expect(await operator.ended, operator.log()).toBe(0);
  rmSync(folder, { recursive: true });
}, 90_000);
