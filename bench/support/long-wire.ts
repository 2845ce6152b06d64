/**
 * A network namespace that reaches this machine over a long wire: every packet is delayed, each way. Namespace, devices and
 * addresses belong to one process and end with it, however it ends.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { build } from '../../local/binaries.ts';
import { freeRange } from '../../local/network.ts';
import { run } from '../../tools/process.ts';
import { Failure } from '../../tools/terminal.ts';

export interface LongWire {
  /** The address of this machine, as seen from the far end. */
  readonly address: string;
  /** The prefix of a command that is to be run at the far end. */
  readonly farEnd: readonly [string, ...string[]];
  close(): Promise<void>;
}

/** As large as a packet on loopback. */
const MTU = 65_535;

/** Why there can be no long wire here, or undefined when there can. */
export function whyNoWire(): string | undefined {
  if (process.platform !== 'linux')
    return `A network with latency is made from Linux network namespaces, and this machine runs ${process.platform}.`;
  if (process.getuid?.() !== 0) return 'A network with latency is made from network namespaces, which needs root.';
  if (!existsSync('/dev/net/tun')) return 'A network with latency needs /dev/net/tun, and this machine has none.';
  return undefined;
}

export async function startLongWire(oneWayMs: number): Promise<LongWire> {
  const message = whyNoWire();
  if (message) throw new Failure(message);
  const { 'long-wire': folder } = await build(['long-wire']);
  const { octet } = await freeRange(process.pid);
  const [here, there] = [`10.${octet}.0.1`, `10.${octet}.0.2`];
  const name = `wire${process.pid % 100_000_000}`;
  const command = ['--net', join(folder, 'long-wire'), name, 'wire', `${oneWayMs}ms`];
  const child = spawn('unshare', command, { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  const close = async (): Promise<void> => {
    child.kill();
    await ended;
  };
  try {
    await Promise.race([
      once(child.stdout, 'data'),
      ended.then(() => Promise.reject(new Failure('The long wire ended before it was up.'))),
    ]);
    const farEnd = ['nsenter', '--net', '--target', String(child.pid)] as const;
    const inside = `ip link set lo up; ip link set wire mtu ${MTU} up; ip addr add ${there}/30 dev wire; ip link set ${name} netns ${process.pid}`;
    await run(farEnd[0], [...farEnd.slice(1), 'sh', '-ec', inside]);
    await run('sh', ['-ec', `ip link set ${name} mtu ${MTU} up; ip addr add ${here}/30 dev ${name}`]);
    return { address: here, farEnd, close };
  } catch (error) {
    await close();
    throw error;
  }
}
