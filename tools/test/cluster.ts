/** The end-to-end level: brings up the tests' own cluster, runs against it, keeps its logs when something fails, takes it down. */
import { cp, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { wasInterrupted, withUndo } from '../interrupt.ts';
import { logsDir, stateDir } from '../paths.ts';
import { run } from '../process.ts';
import { say } from '../terminal.ts';
import type { Outcome } from './vitest.ts';

const keep = (): boolean => process.env['DEV_KEEP'] === '1';

export async function withTestCluster(
  work: (env: Readonly<Record<string, string>>) => Promise<Outcome>,
): Promise<Outcome> {
  const { requireNodesHost } = await import('../../local/host.ts');
  await requireNodesHost();
  const local = await import('../../local/cluster.ts');
  const { withLock } = await import('../../local/lock.ts');
  const undo = async (): Promise<void> => {
    if (!keep()) {
      // the tests of up and down make another, and may be cut short
      const results = await Promise.allSettled([local.down('scratch'), local.down('test')]);
      for (const result of results) if (result.status === 'rejected') throw result.reason;
      return;
    }
    say('The test cluster is kept: DEV_CLUSTER=test ./dev kubectl … looks into it, ./dev down test removes it.');
  };
  const upAndWork = async (): Promise<Outcome> => {
    try {
      const cluster = await local.up('test', { s3: true });
      return await work({ KUBECONFIG: cluster.kubeconfig, DEV_CLUSTER: 'test' });
    } catch (error) {
      if (!wasInterrupted()) await keepLogs();
      throw error;
    }
  };
  // One run at a time: the first to end would take the other's cluster down.
  return withLock('test run', () => withUndo(undo, upAndWork));
}

/** Taking the cluster down removes its logs, so they are copied first. What cannot be had must not hide the failure itself. */
async function keepLogs(): Promise<void> {
  const from = join(stateDir, 'test');
  const to = join(logsDir, 'test-cluster');
  await rm(to, { recursive: true, force: true });
  await mkdir(to, { recursive: true });
  const copy = (source: string, target: string): Promise<void> =>
    cp(source, target, { recursive: true }).catch(() => {});
  await copy(join(from, 'logs'), to);
  for (const folder of await readdir(from).catch(() => []))
    await copy(join(from, folder, 'log', 'pods'), join(to, 'pods', folder));
  const kinds = ['nodes', 'pods', 'persistentvolumeclaims', 'etcdclusters', 'etcdmembers'];
  for (const kind of kinds) await describe(to, `${kind}.yaml`, ['get', kind, '--all-namespaces', '--output=yaml']);
  await describe(to, 'events.txt', ['get', 'events', '--all-namespaces', '--sort-by=.lastTimestamp']);
  say(`The logs of the test cluster are in ${to}.`);
}

async function describe(folder: string, file: string, args: readonly string[]): Promise<void> {
  try {
    const local = await import('../../local/cluster.ts');
    const cluster = await local.running('test');
    if (!cluster) return;
    const { build } = await import('../../local/binaries.ts');
    const { kubernetes } = await build(['kubernetes']);
    const env = { KUBECONFIG: cluster.kubeconfig };
    const { stdout } = await run(join(kubernetes, 'kubectl'), args, { env, timeoutMs: 20_000, allowFailure: true });
    await writeFile(join(folder, file), stdout);
  } catch (error) {
    say(`${file} could not be had: ${String(error)}`);
  }
}
