/** Reads one object many times, 8 at a time, with our client or with @kubernetes/client-node; prints what it cost. */
import { HttpClient } from '../../src/kube/http-client.ts';
import { identityFromKubeconfig } from '../../src/kube/kubeconfig.ts';
import { pods } from '../../src/kube/resources.ts';
import { Transport } from '../../src/kube/transport.ts';

const [which = '', kubeconfig = '', count = '0'] = process.argv.slice(2);
const ref = { namespace: 'default', name: 'one' };
const AT_ONCE = 8;
const WARM_UP = 100;

async function ours(): Promise<() => Promise<unknown>> {
  const source = identityFromKubeconfig(kubeconfig, {}, () => performance.now());
  const client = new HttpClient(new Transport(source));
  return () => client.get(pods, ref);
}

async function clientNode(): Promise<() => Promise<unknown>> {
  const { CoreV1Api, KubeConfig } = await import('@kubernetes/client-node');
  const config = new KubeConfig();
  config.loadFromFile(kubeconfig);
  const api = config.makeApiClient(CoreV1Api);
  return () => api.readNamespacedPod(ref);
}

const get = await (which === 'ours' ? ours() : clientNode());
async function many(number: number): Promise<void> {
  let left = number;
  const worker = async (): Promise<void> => {
    while (left-- > 0) await get();
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}
await many(WARM_UP);
const [before, started] = [process.cpuUsage(), performance.now()];
await many(Number(count));
const { user, system } = process.cpuUsage(before);
const ms = performance.now() - started;
process.stdout.write(JSON.stringify({ cpuUs: (user + system) / Number(count), ms: ms / Number(count) }));
process.exit(0);
