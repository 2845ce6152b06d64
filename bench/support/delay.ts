/**
 * A long wire: passes TCP on and lets every byte arrive a millisecond later, each way, however many there are. In a process
 * of its own; prints its port. Stands in for a network with latency on machines whose kernel cannot delay packets.
 */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

const [host, port, oneWayMs] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
/** More than any client has on the way at once: the wire must not be what is full. */
const ON_THE_WAY_BYTES = 64 * 1024 ** 2;

const SLACK_MS = 0.5;

function pass(from: Socket, to: Socket): void {
  const queue: { readonly due: number; readonly data: Buffer }[] = [];
  let waiting = false;
  let held = 0;
  const deliver = (): void => {
    waiting = false;
    const now = performance.now();
    to.cork();
    for (let first = queue[0]; first && first.due <= now + SLACK_MS; first = queue[0]) {
      queue.shift();
      held -= first.data.length;
      to.write(first.data);
    }
    to.uncork();
    if (held < ON_THE_WAY_BYTES && from.isPaused()) from.resume();
    wait();
  };
  const wait = (): void => {
    const [first] = queue;
    if (!first || waiting) return;
    waiting = true;
    setTimeout(deliver, oneWayMs); // late by a little, so what is nearly due goes with it; waiting busily would take a core
  };
  from.on('data', (data: Buffer) => {
    queue.push({ due: performance.now() + oneWayMs, data });
    held += data.length;
    if (held > ON_THE_WAY_BYTES) from.pause();
    wait();
  });
  from.on('close', () => to.destroy()).on('error', () => to.destroy());
}

const server = createServer({ noDelay: true }, (near) => {
  const far = connect({ host: host ?? '127.0.0.1', port, noDelay: true });
  pass(near, far);
  pass(far, near);
});
server.listen(0, '127.0.0.1', () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`));
