/** The kubectl plugin through the whole of Kubernetes, called by kubectl itself as a user does. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { build } from '../../local/binaries.ts';
import type { ClusterReport } from '../../src/cli/assess/report.ts';
import { buildScript } from '../../tools/plugin/build.ts';
import { run } from '../../tools/process.ts';
import { aTenant, becomes } from '../support/journeys/journey.ts';

test('kubectl etcd shows three members with TLS on three nodes, and moves their leader', async () => {
  const tenant = await aTenant();
  await tenant.create('shown', { replicas: 3, tls: { client: { managed: {} }, peer: { managed: {} } } });
  const folder = mkdtempSync(join(tmpdir(), 'kubectl-etcd-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const [script, { kubernetes }] = await Promise.all([buildScript(folder), build(['kubernetes'])]);
  const path = [dirname(script), dirname(process.execPath), process.env['PATH']].join(delimiter);
  const env = { KUBECONFIG: tenant.cluster.kubeconfig, PATH: path };
  const etcd = (...args: readonly string[]) =>
    run(join(kubernetes, 'kubectl'), ['etcd', ...args, '-n', tenant.namespace], { env, allowFailure: true });

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
