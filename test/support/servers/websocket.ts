/** The server's side of a WebSocket, as far as tests of port-forwarding need it: short binary frames. */
import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';

/** One binary frame, not masked. */
export const frame = (content: Uint8Array): Buffer => {
  const head = content.length < 126 ? [0x82, content.length] : [0x82, 126, content.length >> 8, content.length & 255];
  return Buffer.concat([Buffer.from(head), content]);
};

export const message = (channel: number, text: string): Buffer =>
  frame(Buffer.concat([Buffer.from([channel]), Buffer.from(text)]));

/** The content of the binary frames that a client sent; clients always mask. */
export function unmask(bytes: Buffer): Buffer[] {
  const found: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const long = (bytes[at + 1] ?? 0) - 128 === 126;
    const length = long ? bytes.readUInt16BE(at + 2) : (bytes[at + 1] ?? 0) & 127;
    const mask = bytes.subarray(at + (long ? 4 : 2), at + (long ? 8 : 6));
    const from = at + (long ? 8 : 6);
    if ((bytes[at] ?? 0) % 16 === 2)
      found.push(Buffer.from(bytes.subarray(from, from + length).map((byte, i) => byte ^ (mask[i % 4] ?? 0))));
    at = from + length;
  }
  return found;
}

/** A port of a Pod that echoes in capitals, in the channel protocol. */
export function acceptPort(incoming: IncomingMessage, socket: Duplex): void {
  const { 'sec-websocket-key': key, 'sec-websocket-protocol': protocol } = incoming.headers;
  const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
  const head = [
    'HTTP/1.1 101 Switching Protocols',
    'Upgrade: websocket',
    'Connection: Upgrade',
    `Sec-WebSocket-Accept: ${accept}`,
    `Sec-WebSocket-Protocol: ${protocol}`,
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n`);
  for (const channel of [0, 1]) socket.write(frame(Buffer.from([channel, 0x4b, 0x09])));
  socket.on('error', () => socket.destroy());
  socket.on('data', (bytes: Buffer) => {
    for (const content of unmask(bytes))
      socket.write(message(content[0] ?? 9, content.subarray(1).toString().toUpperCase()));
  });
}
