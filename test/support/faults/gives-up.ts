/** A program: cancels calls to an API server whose bodies are not sent yet, and exits with 0 when the connection survives. */
import { once } from 'node:events';
import { createSecureServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { createCA } from '../../../local/pki.ts';
import { Transport } from '../../../src/kube/transport.ts';
import { eventually } from '../servers/processes.ts';

const CALLS = 5;
const ca = await createCA();
const { key, cert } = await ca.issue({ user: 'api-server' }, ['127.0.0.1']);
const codes: number[] = [];
const server = createSecureServer({ key, cert });
server.on('stream', (stream) => {
  stream.on('error', () => undefined);
  stream.on('close', () => codes.push(stream.rstCode)); // nothing is read, so that no more than one flow-control window arrives
});
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const { port } = server.address() as AddressInfo;
const transport = new Transport(() => Promise.resolve({ server: `https://127.0.0.1:${port}`, ca: ca.cert }));

for (let call = 0; call < CALLS; call++) {
  const stop = new AbortController();
  const body = { text: 'x'.repeat(1_000_000) };
  const arrived = once(server, 'stream');
  const answer = transport.json('/', { method: 'POST', body, signal: stop.signal }).catch(() => undefined);
  await arrived;
  stop.abort();
  await answer;
}
await eventually('the end of each', () => codes.length === CALLS || undefined);
process.stdout.write(JSON.stringify(codes));
process.exit(0);
