/** The kubectl plugin: `kubectl etcd` runs the program of this name in PATH. */
import { main } from '../cli/main.ts';

/** The build replaces it by the version of the package. */
declare const PLUGIN_VERSION: string | undefined;

if (import.meta.main) {
  const stop = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stop.abort());
  // A reader such as `head` that ends early is no error.
  process.stdout.on('error', () => process.exit(0));
  const { env, stdin, stdout, stderr } = process;
  const version = typeof PLUGIN_VERSION === 'string' ? PLUGIN_VERSION : 'development';
  process.exitCode = await main(process.argv.slice(2), { env, stdin, stdout, stderr, signal: stop.signal }, version);
}
