/** The kubelet's side of port-forwarding: the API server connects to it, and it connects to the process of the Pod. */
import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { createServer } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { createCA } from '../../../local/pki.ts';
import type { Kubelet } from './kubelet.ts';

interface KubeletApi {
  readonly port: number;
  close(): void;
}

/** Makes the API server forward ports of the Pods of a kubelet. */
export class PortForwarding {
  readonly #kubelet: Kubelet;
  #api: KubeletApi | undefined;

  constructor(kubelet: Kubelet) {
    this.#kubelet = kubelet;
  }

  async start(log = ''): Promise<void> {
    this.#api ??= await serveKubeletApi((namespace, pod) => this.#kubelet.addressOf(namespace, pod), log);
    await this.#kubelet.announce(this.#api.port);
  }

  stop(): void {
    this.#api?.close();
  }
}

/** `addressOf`: where the process of a Pod listens. `log`: of every container. */
async function serveKubeletApi(
  addressOf: (namespace: string, pod: string) => string | undefined,
  log: string,
): Promise<KubeletApi> {
  const own = await (await createCA()).issue({ user: 'kubelet' }, ['127.0.0.1']);
  const server = createServer({ key: own.key, cert: own.cert }, ({ url = '' }, outgoing) => {
    if (url.startsWith('/containerLogs/')) outgoing.end(log);
    else outgoing.writeHead(404).end();
  });
  server.on('upgrade', (incoming, socket) => {
    const url = new URL(incoming.url ?? '', 'https://kubelet');
    const [, , namespace = '', pod = ''] = url.pathname.split('/');
    const port = Number(url.searchParams.get('ports') ?? url.searchParams.get('port'));
    forward(incoming, socket, port, addressOf(namespace, pod));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  return { port: (server.address() as AddressInfo).port, close };
}

function forward(incoming: IncomingMessage, socket: Duplex, port: number, address: string | undefined): void {
  const { 'sec-websocket-key': key, 'sec-websocket-protocol': protocol } = incoming.headers;
  const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\nSec-WebSocket-Protocol: ${protocol}\r\n\r\n`,
  );
  const greeting = Buffer.from([port & 255, port >> 8]);
  for (const channel of [0, 1]) socket.write(frame(channel, greeting));
  const fail = (error: Error): void => void socket.end(frame(1, Buffer.from(error.message)));
  if (address === undefined) return fail(new Error('the Pod does not run'));
  const remote = connect(port, address);
  const frames = new Frames();
  remote.on('data', (bytes: Buffer) => socket.write(frame(0, bytes)));
  remote.on('error', fail);
  remote.on('close', () => socket.end());
  socket.on('data', (bytes: Buffer) => {
    for (const { opcode, content } of frames.read(bytes)) {
      if (opcode === 8) remote.destroy();
      else if (opcode === 2 && content[0] === 0) remote.write(content.subarray(1));
    }
  });
  socket.on('close', () => remote.destroy());
  socket.on('error', () => remote.destroy());
}

function frame(channel: number, content: Uint8Array): Buffer {
  const length = content.length + 1;
  const head = length < 126 ? Buffer.from([0x82, length]) : Buffer.alloc(10);
  if (length >= 126) {
    head.set([0x82, 127]);
    head.writeBigUInt64BE(BigInt(length), 2);
  }
  return Buffer.concat([head, Buffer.from([channel]), content]);
}

/** Masked frames of a client, which may be received in pieces. */
class Frames {
  #rest = Buffer.alloc(0);

  *read(bytes: Buffer): Generator<{ readonly opcode: number; readonly content: Buffer }> {
    this.#rest = Buffer.concat([this.#rest, bytes]);
    for (;;) {
      const all = this.#rest;
      const short = (all[1] ?? 0) & 127;
      const from = 2 + (short === 126 ? 2 : short === 127 ? 8 : 0);
      if (all.length < from + 4) return;
      const length = short === 126 ? all.readUInt16BE(2) : short === 127 ? Number(all.readBigUInt64BE(2)) : short;
      const end = from + 4 + length;
      if (all.length < end) return;
      const mask = all.subarray(from, from + 4);
      const content = Buffer.from(all.subarray(from + 4, end).map((byte, index) => byte ^ (mask[index % 4] ?? 0)));
      this.#rest = all.subarray(end);
      yield { opcode: (all[0] ?? 0) & 15, content };
    }
  }
}
