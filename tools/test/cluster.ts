/** The end-to-end level: starts the tests' own cluster, runs against it, keeps its logs when something fails, removes it. */
import { wasInterrupted, withUndo } from '../interrupt.ts';
import { say } from '../terminal.ts';
import type { Outcome } from './vitest.ts';

const keep = (): boolean => process.env['DEV_KEEP'] === '1';

export async function withTestCluster(
  work: (env: Readonly<Record<string, string>>, keepLogs: () => Promise<void>) => Promise<Outcome>,
): Promise<Outcome> {
  const local = await import('../../local/cluster.ts');
  const { withLock } = await import('../../local/lock.ts');
  const { saveLogs } = await import('../../local/logs.ts');
  const undo = async (): Promise<void> => {
    if (!keep()) {
      // the tests of up and down start another cluster, and may be cut short
      const results = await Promise.allSettled([local.down('scratch'), local.down('test')]);
      for (const result of results) if (result.status === 'rejected') throw result.reason;
      return;
    }
    say('The test cluster is kept: DEV_CLUSTER=test ./dev kubectl … inspects it, ./dev down test removes it.');
  };
  const keepLogs = async (): Promise<void> => {
    const cluster = wasInterrupted() ? undefined : await local.running('test');
    if (cluster) say(`The logs of the test cluster are in ${await saveLogs('test', cluster)}.`);
  };
  const upAndWork = async (): Promise<Outcome> => {
    try {
      const cluster = await local.up('test', { s3: true });
      return await work({ KUBECONFIG: cluster.kubeconfig, DEV_CLUSTER: 'test' }, keepLogs);
    } catch (error) {
      await keepLogs(); // a cluster that did not start has reported where its logs are
      throw error;
    }
  };
  // One run at a time: the first to end would remove the other's cluster.
  return withLock('test run', () => withUndo(undo, upAndWork));
}
