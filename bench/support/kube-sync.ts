/** Fills a cache with the Pods that match a selector; prints how long it took, what it holds, and how long the event loop was blocked. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { HttpClient } from '../../src/kube/http-client.ts';
import { identityFromKubeconfig } from '../../src/kube/kubeconfig.ts';
import { pods } from '../../src/kube/resources.ts';
import { ALL_NAMESPACES, Store } from '../../src/kube/store.ts';
import { Transport } from '../../src/kube/transport.ts';
import { watch } from '../../src/kube/watcher.ts';

const [kubeconfig = '', selector = ''] = process.argv.slice(2);
const source = identityFromKubeconfig(kubeconfig, {}, () => performance.now());
const client = new HttpClient(new Transport(source));
await client.transport.json('/version');
const heap = (): number => {
  globalThis.gc?.();
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
};
const store = new Store(pods, [], ['cluster']);
let keys = 0;
store.onChange(() => {
  keys++;
});
const before = heap();
const delay = monitorEventLoopDelay({ resolution: 1 });
delay.enable();
const started = performance.now();
await new Promise<void>((resolve) => {
  void watch({
    client,
    resource: pods,
    ...(selector !== '' && { selector }),
    signal: new AbortController().signal,
    emit: (event) => {
      store.apply(ALL_NAMESPACES, event);
      if (event.type === 'synced') resolve();
    },
    onError: (error) => process.stderr.write(`${String(error)}\n`),
    sleep: (ms) => new Promise((done) => setTimeout(done, ms)),
    random: () => 0,
  });
});
const ms = performance.now() - started;
await new Promise((done) => setTimeout(done, 50));
delay.disable();
const bytes = store.size === 0 ? 0 : (heap() - before) / store.size;
const [p99, worst] = [delay.percentile(99), delay.max].map((nanoseconds) => nanoseconds / 1e6 - 1);
process.stdout.write(JSON.stringify({ ms, size: store.size, keys, bytes, p99, worst }));
process.exit(0);
