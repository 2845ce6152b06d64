/** The kubectl plugin: `kubectl etcd` runs the program of this name in PATH. */
import type { OperatorRules } from '../cli/flags.ts';
import { main } from '../cli/main.ts';

/** The build replaces it by the version of the package. */
declare const PLUGIN_VERSION: string | undefined;

/** Loaded when they are asked: they are the whole cluster controller. */
const load = () => import('./explain.ts');
const rules: OperatorRules = {
  explain: async (context, cluster) => (await load()).explainCluster(context, cluster),
  checkVersion: async (context, cluster, to) => (await load()).checkVersion(context, cluster, to),
};

if (import.meta.main) {
  const stop = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stop.abort());
  // A reader such as `head` that ends early is no error.
  process.stdout.on('error', () => process.exit(0));
  const { env, stdin, stdout, stderr } = process;
  const version = typeof PLUGIN_VERSION === 'string' ? PLUGIN_VERSION : 'development';
  const io = { env, stdin, stdout, stderr, signal: stop.signal };
  process.exitCode = await main(process.argv.slice(2), io, version, rules);
}
