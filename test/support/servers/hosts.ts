/**
 * A cluster's DNS as a private hosts file for each Service, with the names of its namespace: members resolve each other by the names in
 * their own command lines, and those of an adopted cluster are under two Services.
 * A process sees its file through a mount namespace of its own, which ends with it; the machine's hosts file is not changed.
 */
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Addresses } from './addresses.ts';

export interface Host {
  readonly name: string;
  /** The headless Service. */
  readonly service: string;
  readonly namespace: string;
}

const MOUNT = 'mount --bind "$0" /etc/hosts && exec "$@"';
const OWN_MOUNTS = process.getuid?.() === 0 ? ['--mount'] : ['--user', '--map-root-user', '--mount'];

export class Hosts {
  readonly #folder: string;
  readonly #addresses: Addresses;
  readonly #known = new Map<string, Promise<string>>();
  /** By namespace: its files, and the lines that each of them has. */
  readonly #files = new Map<string, { readonly paths: Set<string>; readonly lines: string[] }>();

  constructor(folder: string, addresses: Addresses) {
    this.#folder = join(folder, 'hosts');
    this.#addresses = addresses;
    mkdirSync(this.#folder);
  }

  /**
   * The address of a name, constant as long as the world exists. Go caches a hosts file for five seconds: reserve a name
   * before any process could resolve it.
   */
  addressOf(host: Host): Promise<string> {
    const full = `${host.name}.${host.service}.${host.namespace}.svc`;
    const known = this.#known.get(full) ?? this.#add(host, full);
    this.#known.set(full, known);
    return known;
  }

  /** A command that can resolve this Service's names; `exec` keeps its process id. */
  around(host: Host, command: string, args: readonly string[]): readonly [string, readonly string[]] {
    return ['unshare', [...OWN_MOUNTS, '--', 'sh', '-c', MOUNT, this.#fileOf(host), command, ...args]];
  }

  async #add(host: Host, full: string): Promise<string> {
    const address = await this.#addresses.next();
    this.#fileOf(host);
    const { paths, lines } = this.#of(host);
    const line = `${address} ${full}\n`;
    lines.push(line);
    for (const path of paths) appendFileSync(path, line);
    return address;
  }

  #of({ namespace }: Host) {
    const files = this.#files.get(namespace) ?? { paths: new Set(), lines: [] };
    this.#files.set(namespace, files);
    return files;
  }

  #fileOf(host: Host): string {
    const { service, namespace } = host;
    const { paths, lines } = this.#of(host);
    const path = join(this.#folder, `${namespace}.${service}`);
    // All connections come from this address: it needs the name of a Pod, with the domain, as a cluster's DNS has it.
    const head = `127.0.0.1 localhost pod.${service}.${namespace}.svc.cluster.local\n`;
    if (!paths.has(path)) writeFileSync(path, head + lines.join(''));
    paths.add(path);
    return path;
  }
}
