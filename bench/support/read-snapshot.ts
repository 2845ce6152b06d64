/** Reads one snapshot to nowhere, in its own process so that its memory can be measured; prints the cost as JSON. */
import { EtcdClient } from '../../src/etcd/client.ts';

const endpoint = process.argv[2];
if (endpoint === undefined) throw new Error('the endpoint of a member is needed');
const client = new EtcdClient(() => performance.now());
const started = performance.now();
const snapshot = client.maintenance.snapshot({ endpoint, timeoutMs: 0 });
for await (const _ of snapshot);
const ms = performance.now() - started;
const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage();
const cpuMs = (userCPUTime + systemCPUTime) / 1000;
process.stdout.write(JSON.stringify({ bytes: snapshot.receivedBytes, ms, cpuMs, peakMiB: maxRSS / 1024 }));
client.close();
