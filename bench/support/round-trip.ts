/** How long a small request takes, in microseconds, in its own process so that it can be sent from elsewhere. */
import { EtcdClient } from '../../src/etcd/client.ts';

const endpoint = process.argv[2];
if (endpoint === undefined) throw new Error('the endpoint of a member is needed');
const client = new EtcdClient(() => performance.now());
const samples: number[] = [];
for (let i = 0; i < 100; i++) {
  const started = performance.now();
  const answer = await client.status({ endpoint, timeoutMs: 5_000 });
  if (!answer.ok) throw new Error(answer.error.message);
  samples.push((performance.now() - started) * 1000);
}
process.stdout.write(JSON.stringify(samples.toSorted((a, b) => a - b)[50]));
client.close();
