/**
 * An agent in a process of its own: puts an object of the given size, or an endless one, and reports how much memory it took.
 * Arguments: the place and the secrets as JSON, the key, the uid, the size in MiB.
 */
import { openStore } from '../../../src/agent/stores/store.ts';

const [place = '', secrets = '', key = '', uid = '', mebibytes = ''] = process.argv.slice(2);
const files = JSON.parse(secrets) as Record<string, string>;
// Not with the helper of stores.ts: it would load the libraries of all stores into this process.
const store = await openStore(JSON.parse(place), async (mount, name) => Buffer.from(files[`${mount}/${name}`] ?? ''));

async function* body(): AsyncGenerator<Uint8Array> {
  const chunk = Buffer.alloc(32 * 1024, 7); // as etcd sends them
  for (let n = 0; n < Number(mebibytes) * 32; n++) yield Buffer.from(chunk);
}

let peak = 0;
const watch = setInterval(() => {
  peak = Math.max(peak, process.memoryUsage.rss());
}, 20);
await store.put(key, body(), { uid, replace: true, signal: new AbortController().signal });
clearInterval(watch);
process.stdout.write(`peak ${Math.round(peak / 2 ** 20)} MiB\n`);
