/**
 * The network of a local cluster: a switch, the control plane and each node in a network namespace of its own, joined by veth pairs.
 * The namespaces have no names; each is held by a process. When that process ends, the kernel removes its links, routes and rules.
 */
import { run } from '../tools/process.ts';
import { Failure } from '../tools/terminal.ts';
import { enter } from './daemon.ts';

/** A cluster has its own /16: hosts in the first /24, Pods of node N in the Nth, Services from .128 on. */
export interface Range {
  readonly octet: number;
}
const FIRST_OCTET = 200;
const OCTETS = 50;

export const hostIp = (r: Range): string => `10.${r.octet}.0.1`;
export const controlPlaneIp = (r: Range): string => `10.${r.octet}.0.2`;
export const nodeIp = (r: Range, index: number): string => `10.${r.octet}.0.${10 + index}`;
export const podCidr = (r: Range, index: number): string => `10.${r.octet}.${index}.0/24`;
export const serviceCidr = (r: Range): string => `10.${r.octet}.128.0/20`;
export const kubernetesIp = (r: Range): string => `10.${r.octet}.128.1`;
export const dnsIp = (r: Range): string => `10.${r.octet}.128.10`;

/** A /16 that nothing on this machine uses; the search starts at an offset derived from the cluster, so that two clusters seldom collide. */
export async function freeRange(seed: number): Promise<Range> {
  const routes = await run('ip', ['-json', 'route', 'show', 'table', 'all']);
  const taken = (JSON.parse(routes.stdout) as readonly { readonly dst?: string }[])
    .map((route) => /^10\.(\d+)\./.exec(route.dst ?? '')?.[1])
    .filter((octet) => octet !== undefined)
    .map(Number);
  for (let i = 0; i < OCTETS; i++) {
    const octet = FIRST_OCTET + ((seed + i) % OCTETS);
    if (!taken.includes(octet)) return { octet };
  }
  throw new Failure(
    `All address ranges from 10.${FIRST_OCTET}.0.0/16 to 10.${FIRST_OCTET + OCTETS - 1}.0.0/16 are in use on this machine: stop another local cluster with ./dev down in its checkout.`,
  );
}

const inside = (pid: number, script: string): Promise<unknown> =>
  run(enter(pid)[0]!, [...enter(pid).slice(1), 'sh', '-ec', script]);

/** The bridge to which all machines are connected, and this machine's own end of it. */
export async function makeSwitch(switchPid: number, link: string, r: Range): Promise<void> {
  await inside(switchPid, 'ip link set lo up; ip link add br0 type bridge; ip link set br0 up');
  await run('ip', ['link', 'add', link, 'type', 'veth', 'peer', 'name', 'host', 'netns', String(switchPid)]);
  await inside(switchPid, 'ip link set host master br0 up');
  await run('sh', [
    '-ec',
    `ip addr add ${hostIp(r)}/24 dev ${link}; ip link set ${link} up; ip route add ${serviceCidr(r)} via ${nodeIp(r, 1)}`,
  ]);
}

/** Plugs a namespace into the switch. `port` names its end in the switch: what a test takes down to cut the machine off. */
export async function plugIn(switchPid: number, pid: number, port: string, address: string): Promise<void> {
  await inside(pid, 'ip link set lo up; sysctl -qw net.ipv4.ip_forward=1');
  // created in its final namespace in one step: a kill cannot leave it in this machine's own namespace
  await inside(
    switchPid,
    `ip link add name ${port} type veth peer name eth0 netns ${pid}; ip link set ${port} master br0 up`,
  );
  await inside(pid, `ip addr add ${address}/24 dev eth0; ip link set eth0 up`);
}

/** Removes this machine's end of the cable, and the routes over it. */
export const unplugHost = (link: string): Promise<unknown> => run('ip', ['link', 'delete', link]);

/** Adds the route to another node's Pods to a namespace (or, without one, to this machine). */
export async function routePods(from: number | undefined, r: Range, index: number): Promise<void> {
  const command = `ip route replace ${podCidr(r, index)} via ${nodeIp(r, index)}`;
  await (from === undefined ? run('sh', ['-ec', command]) : inside(from, command));
}

/** Services seen from a machine without kube-proxy (the control plane calling a webhook, a test on this machine) go through node 1. */
export const routeServices = (from: number, r: Range): Promise<unknown> =>
  inside(from, `ip route replace ${serviceCidr(r)} via ${nodeIp(r, 1)}`);

export const setPort = (switchPid: number, port: string, state: 'up' | 'down'): Promise<unknown> =>
  inside(switchPid, `ip link set ${port} ${state}`);
