/** `./dev up`, `down`, `kubectl` and `helm`: the local Kubernetes by hand. */
import { existsSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { cgroupExists } from '../../local/cgroup.ts';
import { CLUSTER_NAMES, type ClusterName, clusterCgroup, clusterDir } from '../../local/state.ts';
import { cacheDir } from '../paths.ts';
import { handOver } from '../process.ts';
import { Failure, say, UsageFailure } from '../terminal.ts';

const list = new Intl.ListFormat('en-GB');

function parseName(text: string, from: string): ClusterName {
  const name = CLUSTER_NAMES.find((candidate) => candidate === text);
  if (!name) throw new UsageFailure(`${from} names no local cluster; there are ${list.format(CLUSTER_NAMES)}.`);
  return name;
}

/** Without a cluster to remove, `down` does not need root. */
function requireRootToTakeDown(names: readonly ClusterName[]): void {
  const present = names.filter((name) => cgroupExists(clusterCgroup(name)) || existsSync(clusterDir(name)));
  if (present.length > 0 && process.getuid?.() !== 0)
    throw new Failure(`taking the ${list.format(present)} cluster down needs root: sudo ./dev down`);
}

function refuseArguments(command: string, args: readonly string[]): void {
  if (args.length > 0) throw new UsageFailure(`./dev ${command} takes no arguments, and got "${args.join(' ')}".`);
}

export async function up(args: readonly string[]): Promise<number> {
  refuseArguments('up', args);
  const local = await import('../../local/cluster.ts');
  const cluster = await local.up('demo', { s3: true, etcd: ['3.5', '3.6', '3.7'] });
  say(
    'The local Kubernetes is running, with images of etcd 3.5, 3.6 and 3.7 and an S3 server at http://s3.s3.svc:7070.',
  );
  say(`  ./dev kubectl get nodes      or, with your own kubectl: export KUBECONFIG=${cluster.kubeconfig}`);
  say('  ./dev down                   stops it and removes every trace');
  return 0;
}

export async function down(args: readonly string[]): Promise<number> {
  const [name, ...rest] = args;
  refuseArguments(`down ${CLUSTER_NAMES.join('|')}`, rest);
  const wanted = name === undefined ? undefined : parseName(name, `"${name}"`);
  requireRootToTakeDown(wanted ? [wanted] : CLUSTER_NAMES);
  const local = await import('../../local/cluster.ts');
  await local.down(wanted);
  say(
    name === undefined
      ? 'No local cluster of this checkout is running now.'
      : `The ${name} cluster is not running now.`,
  );
  return 0;
}

/** `./dev kubectl etcd …` runs the plugin of this checkout: kubectl looks for it in the PATH. */
export async function kubectl(args: readonly string[]): Promise<number> {
  if (args[0] !== 'etcd') return withCluster('kubernetes', 'kubectl', args);
  const { buildScript } = await import('../plugin/build.ts');
  const folder = dirname(await buildScript(join(cacheDir, 'plugin')));
  return withCluster('kubernetes', 'kubectl', args, { PATH: [folder, process.env['PATH']].join(delimiter) });
}

export const helm = (args: readonly string[]): Promise<number> => withCluster('helm', 'helm', args);

async function withCluster(
  part: 'kubernetes' | 'helm',
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<number> {
  const wanted = process.env['DEV_CLUSTER'];
  const name = wanted ? parseName(wanted, `DEV_CLUSTER=${wanted}`) : 'demo';
  const local = await import('../../local/cluster.ts');
  const cluster = await local.running(name);
  if (!cluster) {
    const hint = name === 'demo' ? './dev up starts one' : 'DEV_KEEP=1 ./dev test e2e leaves one behind';
    throw new Failure(`no local cluster is running: ${hint}.`);
  }
  const { build } = await import('../../local/binaries.ts');
  const folders = await build([part]);
  return handOver(join(folders[part], program), args, { env: { KUBECONFIG: cluster.kubeconfig, ...env } });
}
