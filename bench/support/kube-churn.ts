/** Behaves like a busy operator: caches that follow, objects that are created, changed and deleted, calls that are aborted. Prints its heap. */
import { FIELD_MANAGER } from '../../src/kube/client.ts';
import { HttpClient } from '../../src/kube/http-client.ts';
import { identityFromKubeconfig } from '../../src/kube/kubeconfig.ts';
import type { KubeObject, Resource } from '../../src/kube/object.ts';
import { ALL_NAMESPACES, Store } from '../../src/kube/store.ts';
import { Transport } from '../../src/kube/transport.ts';
import { watch } from '../../src/kube/watcher.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { Queue } from '../../src/runtime/queue.ts';

type ConfigMap = KubeObject & { readonly data?: Readonly<Record<string, string>> };
const configMaps: Resource<ConfigMap> = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap' };

const [kubeconfig = '', milliseconds = '0'] = process.argv.slice(2);
const SAMPLES = 10;
const OBJECTS = 50;
const stop = new AbortController();
const source = identityFromKubeconfig(kubeconfig, {}, () => performance.now());
const client = new HttpClient(new Transport(source));
const store = new Store(configMaps, [], ['soak']);
let passes = 0;
let failures = 0;
const queue = new Queue({
  clock: systemClock,
  concurrency: 64,
  slowAfterMs: 1_000,
  maxRunning: 64,
  backoff: { firstMs: 10, maxMs: 200 },
  work: async (key) => {
    passes++;
    const [namespace = '', name = ''] = key.split('/');
    const deadline = AbortSignal.any([stop.signal, AbortSignal.timeout(5_000)]);
    const now = await client.get(configMaps, { namespace, name }, deadline);
    if (now) await store.waitForVersion(namespace, now.metadata.resourceVersion ?? '', deadline);
    return undefined;
  },
});
store.onChange((before, after) => {
  const { namespace, name } = (after ?? before)?.metadata ?? {};
  queue.add(`${namespace}/${name}`);
});
void watch({
  client,
  resource: configMaps,
  selector: 'soak',
  signal: stop.signal,
  emit: (event) => store.apply(ALL_NAMESPACES, event),
  onError: () => undefined,
  sleep: (ms) => new Promise((done) => setTimeout(done, ms)),
  random: Math.random,
});

async function churn(n: number): Promise<void> {
  const ref = { namespace: 'default', name: `soak-${n}` };
  const labels = { soak: String(n % 5) };
  for (let round = 0; !stop.signal.aborted; round++)
    try {
      const aborted = AbortSignal.timeout(3);
      if (round % 10 === 0) await client.get(configMaps, ref, aborted).catch(() => undefined); // aborted on the way
      const object = {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { ...ref, labels },
        data: { big: 'x'.repeat(2_000) },
      };
      const made = (await client.get(configMaps, ref)) ?? (await client.create(configMaps, object));
      await client.patch(configMaps, ref, { data: { round: `${FIELD_MANAGER} ${round}` } });
      await client.delete(configMaps, ref, { uid: made.metadata.uid ?? '' });
    } catch {
      failures++;
      await new Promise((done) => setTimeout(done, 50));
    }
}

const heap = (): number => {
  globalThis.gc?.();
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
};
for (let n = 0; n < OBJECTS; n++) void churn(n);
const samples: number[] = [];
for (let n = 0; n < SAMPLES; n++) {
  await new Promise((done) => setTimeout(done, Number(milliseconds) / SAMPLES));
  samples.push(heap());
}
process.stdout.write(JSON.stringify({ samples, passes, failures, rss: process.memoryUsage().rss }));
process.exit(0);
