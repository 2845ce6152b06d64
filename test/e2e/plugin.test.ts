/** The kubectl plugin through the whole of Kubernetes, called by kubectl itself as a user does. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { build } from '../../local/binaries.ts';
import { ETCD_VERSIONS, etcdImageArchive } from '../../local/images.ts';
import type { ClusterReport } from '../../src/cli/assess/report.ts';
import { buildScript } from '../../tools/plugin/build.ts';
import { run } from '../../tools/process.ts';
import { aTenant, becomes, KIND, type Tenant } from '../support/journeys/journey.ts';

/** kubectl with the plugin in its PATH, in the namespace of a tenant. */
async function pluginOf(tenant: Tenant, folder: string) {
  const [script, { kubernetes }] = await Promise.all([buildScript(folder), build(['kubernetes'])]);
  const path = [dirname(script), dirname(process.execPath), process.env['PATH']].join(delimiter);
  const env = { KUBECONFIG: tenant.cluster.kubeconfig, PATH: path };
  return (...args: readonly string[]) =>
    run(join(kubernetes, 'kubectl'), ['etcd', ...args, '-n', tenant.namespace], { env, allowFailure: true });
}

function aFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'kubectl-etcd-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test('kubectl etcd shows three members with TLS on three nodes, and moves their leader', async () => {
  const tenant = await aTenant();
  await tenant.create('shown', { replicas: 3, tls: { client: { managed: {} }, peer: { managed: {} } } });
  const folder = aFolder();
  const etcd = await pluginOf(tenant, folder);

  const report = await becomes('a healthy report', async () => {
    const { stdout, stderr } = await etcd('status', 'shown', '-o', 'json');
    if (stdout === '') throw new Error(stderr);
    const found = JSON.parse(stdout) as ClusterReport;
    expect(found).toMatchObject({ health: 'healthy', quorum: { voters: 3, healthy: 3, source: 'etcd' }, unread: [] });
    return found;
  });
  expect(new Set(report.members.map(({ node }) => node)).size).toBe(3);
  expect((await etcd('status', 'shown', '--check')).code).toBe(0);
  const to = report.members.find(({ name }) => name !== report.leader)?.name ?? '';
  expect((await etcd('move-leader', 'shown', '--to', to, '--yes')).stderr).toContain(`${to} is the leader now`);
  const log = (await etcd('report', 'shown', '--out', join(folder, 'report.tar.gz'))).stderr;
  expect(log).toContain('Values of Secrets');
  const all = (await run('tar', ['-xzOf', join(folder, 'report.tar.gz')])).stdout;
  expect(all).toContain('ready to serve client requests');
  expect(all).not.toContain('PRIVATE KEY');
});

test('kubectl etcd upgrade sets the next minor, and waits until all members run it', { timeout: 900_000 }, async () => {
  const tenant = await aTenant();
  const version = ETCD_VERSIONS['3.7'];
  await tenant.cluster.load([await etcdImageArchive('3.7')]);
  await tenant.create('climbs', { replicas: 3, version: ETCD_VERSIONS['3.6'] });
  const etcd = await pluginOf(tenant, aFolder());
  await becomes('a healthy cluster', async () => expect((await etcd('status', 'climbs', '--check')).code).toBe(0));

  const upgrade = await etcd('upgrade', 'climbs', '--to', version, '--yes');
  const passed = [...upgrade.stderr.matchAll(/^(\S+): all 3 members run it$/gm)].map(([, each]) => each);
  expect([upgrade.code, passed], upgrade.stdout + upgrade.stderr).toEqual([0, [version]]);
  expect(upgrade.stderr).toMatch(/^3\.7\.\d+: [12] of 3 members have version 3\.7/m);
  const { status } = await tenant.get(KIND, 'climbs');
  expect(status).toMatchObject({ version, clusterVersion: '3.7.0', readyMembers: 3 });
  expect((await etcd('upgrade', 'climbs', '--to', version, '--yes')).stderr).toContain('already');
});
