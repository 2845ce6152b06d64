/** The hashes of members' data, and when they were asked for: etcd applies no write while it hashes, and every event causes a reconcile. */
import { HASH_INTERVAL_MS } from '../../domain/timing.ts';
import type { MemberHash } from './observed.ts';

interface Asked {
  readonly at: number;
  readonly about: string;
  readonly hashes: readonly MemberHash[];
}

export class HashLedger {
  readonly #asked = new Map<string, Asked>();

  /** The last hashes, or new ones if those are of other members or old. `about`: whose data is compared, and for what. */
  async hashes(
    key: string,
    about: string,
    now: number,
    ask: () => Promise<readonly MemberHash[]>,
  ): Promise<readonly MemberHash[]> {
    const last = this.#asked.get(key);
    if (last?.about === about && Math.abs(now - last.at) < HASH_INTERVAL_MS) return last.hashes;
    this.#asked.set(key, { at: now, about, hashes: [] }); // members that were asked in vain have hashed all the same
    const hashes = await ask();
    this.#asked.set(key, { at: now, about, hashes });
    return hashes;
  }

  forget(key: string): void {
    this.#asked.delete(key);
  }
}
