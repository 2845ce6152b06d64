/**
 * A cluster's DNS as a private hosts file for each Service: members resolve each other by the names in their own command lines.
 * A process sees its file through a mount namespace of its own, which ends with it; the machine's hosts file is not changed.
 */
import { appendFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
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
    appendFileSync(this.#fileOf(host), `${address} ${full}\n`);
    return address;
  }

  #fileOf({ service, namespace }: Host): string {
    const path = join(this.#folder, `${namespace}.${service}`);
    // All connections come from this address: it needs the name of a Pod, with the domain, as a cluster's DNS has it.
    if (!existsSync(path)) writeFileSync(path, `127.0.0.1 localhost pod.${service}.${namespace}.svc.cluster.local\n`);
    return path;
  }
}
