/**
 * Whether members show the certificate that was given to them: Kubernetes brings it to their files in its own time, and etcd
 * reads them at every handshake. Each member is looked at until it does, and then no more until there is another one.
 */
export type Look = (endpoint: string) => Promise<string | undefined>;

export class Shown {
  /** By cluster and endpoint, the certificate that was last seen there. */
  readonly #seen = new Map<string, ReadonlyMap<string, string>>();

  /** Endpoints that show another certificate than this one. One that cannot be looked at is not accused. */
  async behind(
    cluster: string,
    expected: string,
    endpoints: readonly string[],
    look: Look,
  ): Promise<readonly string[]> {
    const before = this.#seen.get(cluster);
    const seen = await Promise.all(
      endpoints.map(async (endpoint) => {
        const known = before?.get(endpoint);
        return [endpoint, known === expected ? known : await look(endpoint)] as const;
      }),
    );
    const now = seen.filter((entry): entry is readonly [string, string] => entry[1] !== undefined);
    this.#seen.set(cluster, new Map(now));
    return now.filter(([, shown]) => shown !== expected).map(([endpoint]) => endpoint);
  }

  forget(cluster: string): void {
    this.#seen.delete(cluster);
  }
}
