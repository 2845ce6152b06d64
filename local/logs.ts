/** What a cluster leaves for people to read: `down` removes its logs, so they are copied to where they outlive it. */
import { cp, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { logsDir } from '../tools/paths.ts';
import { run } from '../tools/process.ts';
import { build } from './binaries.ts';
import { type ClusterName, clusterDir } from './state.ts';

const KINDS = ['nodes', 'pods', 'persistentvolumeclaims', 'etcdclusters', 'etcdmembers'];

/** Logs of the cluster's processes and Pods, and of a running cluster also objects and Events. What cannot be read is left out. */
export async function saveLogs(name: ClusterName, running?: { readonly kubeconfig: string }): Promise<string> {
  const from = clusterDir(name);
  const to = join(logsDir, `${name}-cluster`);
  await rm(to, { recursive: true, force: true });
  await mkdir(to, { recursive: true });
  const copy = (source: string, target: string): Promise<void> =>
    cp(source, target, { recursive: true }).catch(() => {});
  await copy(join(from, 'logs'), to);
  for (const folder of await readdir(from).catch(() => []))
    await copy(join(from, folder, 'log', 'pods'), join(to, 'pods', folder));
  if (!running) return to;
  const { kubernetes } = await build(['kubernetes']);
  const describe = async (file: string, args: readonly string[]): Promise<void> => {
    const options = { env: { KUBECONFIG: running.kubeconfig }, timeoutMs: 20_000, allowFailure: true };
    const result = await run(join(kubernetes, 'kubectl'), args, options).catch((error: unknown) => ({
      stdout: `could not be read: ${String(error)}\n`,
    }));
    await writeFile(join(to, file), result.stdout);
  };
  for (const kind of KINDS) await describe(`${kind}.yaml`, ['get', kind, '--all-namespaces', '--output=yaml']);
  await describe('events.txt', ['get', 'events', '--all-namespaces', '--sort-by=.lastTimestamp']);
  return to;
}
