/** A store in memory, for tests of what agents do in thousands of histories. */
import { randomUUID } from 'node:crypto';
import { AgentFailure } from '../../../src/agent/failure.ts';
import type { Deletion, Download, PutOptions, Store, StoredObject } from '../../../src/agent/stores/store.ts';

export interface Held {
  readonly bytes: Buffer;
  readonly uid?: string;
  readonly schedule?: string | undefined;
  readonly upload: string;
}

export class MemoryStore implements Store {
  readonly objects = new Map<string, Held>();
  /** The agent is killed before this deletion. */
  diesBefore = Number.POSITIVE_INFINITY;
  readonly #name: string;

  constructor(name: string) {
    this.#name = name;
  }

  async head(key: string): Promise<StoredObject | undefined> {
    const held = this.objects.get(key);
    if (!held) return undefined;
    const { bytes, uid, schedule, upload } = held;
    return {
      key,
      size: bytes.length,
      upload,
      ...(uid !== undefined && { uid }),
      ...(schedule !== undefined && { schedule }),
    };
  }

  async put(key: string, body: AsyncIterable<Uint8Array>, { uid, schedule, replace }: PutOptions): Promise<void> {
    const bytes = Buffer.concat(await Array.fromAsync(body));
    const held = this.objects.get(key);
    if (held && !(replace && held.uid === uid)) throw new AgentFailure('ObjectExists', `${key} exists`);
    this.objects.set(key, { bytes, uid, schedule, upload: randomUUID() });
  }

  async get(key: string): Promise<Download> {
    const held = this.objects.get(key);
    if (!held) throw new AgentFailure('ObjectNotFound', `there is no ${key}`);
    const { bytes } = held;
    async function* body(): AsyncGenerator<Uint8Array> {
      yield bytes;
    }
    return { size: bytes.length, body: body() };
  }

  async *list(prefix: string): AsyncGenerator<StoredObject> {
    for (const key of [...this.objects.keys()].filter((each) => each.startsWith(prefix)).sort())
      yield { key, size: this.objects.get(key)?.bytes.length ?? 0 };
  }

  async delete(key: string): Promise<Deletion> {
    if (this.diesBefore-- <= 0) throw new AgentFailure('StoreUnreachable', 'the agent was killed');
    this.objects.delete(key);
    return 'deleted';
  }

  removeUnfinished = async (): Promise<number> => 0;

  uri(key: string): string {
    return `${this.#name}${key}`;
  }
}
