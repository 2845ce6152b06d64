/**
 * Whether members serve the certificate in their Secret: the kubelet updates the files with a delay, and etcd reads them at every
 * handshake. The operator connects to each member until it serves the certificate, and then not again before the next one.
 */
export type ReadServed = (endpoint: string) => Promise<string | undefined>;

export interface Served {
  readonly behind: readonly string[];
  /** No handshake was possible. */
  readonly unseen: readonly string[];
}

export class ServedCertificates {
  /** By group and endpoint, the certificate that was last observed there. */
  readonly #seen = new Map<string, ReadonlyMap<string, string>>();

  /**
   * Of these endpoints, those that serve another certificate than this one (`behind`), and those without a handshake (`unseen`): the
   * latter are only behind if they were when last observed, and never count as proven.
   */
  async look(group: string, expected: string, endpoints: readonly string[], look: ReadServed): Promise<Served> {
    const before = this.#seen.get(group);
    const seen = await Promise.all(
      endpoints.map(async (endpoint) => {
        const known = before?.get(endpoint);
        return [endpoint, known === expected ? known : await look(endpoint)] as const;
      }),
    );
    // A member that last served another certificate is behind until it is observed to serve this one.
    const now = seen
      .map(([endpoint, served]) => [endpoint, served ?? before?.get(endpoint)] as const)
      .filter((entry): entry is readonly [string, string] => entry[1] !== undefined);
    this.#seen.set(group, new Map(now));
    return {
      behind: now.filter(([, served]) => served !== expected).map(([endpoint]) => endpoint),
      unseen: seen.filter(([, served]) => served === undefined).map(([endpoint]) => endpoint),
    };
  }

  forget(group: string): void {
    this.#seen.delete(group);
  }
}
