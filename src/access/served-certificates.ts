/**
 * Whether members show the certificate that was given to them: Kubernetes brings it to their files in its own time, and etcd
 * reads them at every handshake. Each member is looked at until it does, and then no more until there is another one.
 */
export type ReadServed = (endpoint: string) => Promise<string | undefined>;

export class ServedCertificates {
  /** By group and endpoint, the certificate that was last seen there. */
  readonly #seen = new Map<string, ReadonlyMap<string, string>>();

  /**
   * Of these endpoints, those that show another certificate than this one, and those that could not be looked at: they are not
   * accused of anything that was not seen before, and prove nothing.
   */
  async look(
    group: string,
    expected: string,
    endpoints: readonly string[],
    look: ReadServed,
  ): Promise<{ readonly behind: readonly string[]; readonly unseen: readonly string[] }> {
    const before = this.#seen.get(group);
    const seen = await Promise.all(
      endpoints.map(async (endpoint) => {
        const known = before?.get(endpoint);
        return [endpoint, known === expected ? known : await look(endpoint)] as const;
      }),
    );
    // One that showed another when it was last seen is behind until it is seen to show this one.
    const now = seen
      .map(([endpoint, shown]) => [endpoint, shown ?? before?.get(endpoint)] as const)
      .filter((entry): entry is readonly [string, string] => entry[1] !== undefined);
    this.#seen.set(group, new Map(now));
    return {
      behind: now.filter(([, shown]) => shown !== expected).map(([endpoint]) => endpoint),
      unseen: seen.filter(([, shown]) => shown === undefined).map(([endpoint]) => endpoint),
    };
  }

  forget(group: string): void {
    this.#seen.delete(group);
  }
}
