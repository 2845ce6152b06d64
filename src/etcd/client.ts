/** What the operator asks of etcd: a narrow port. Every call names the member that it asks, and has a time limit. */
import { type Client, createClient, type Transport } from '@connectrpc/connect';
import { Cluster, KV, Maintenance, type Member } from '../gen/etcd/rpc_pb.ts';
import { type Answer, classify } from './errors.ts';
import { openSession, type Session } from './transport.ts';

export interface Ask {
  /** `http://address:port` of one member. */
  readonly endpoint: string;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

export interface MemberStatus {
  readonly clusterId: bigint;
  readonly memberId: bigint;
  readonly version: string;
  readonly leader: bigint;
  readonly isLearner: boolean;
  readonly errors: readonly string[];
}

export interface MemberEntry {
  readonly id: bigint;
  /** Empty until the member has started. */
  readonly name: string;
  readonly peerURLs: readonly string[];
  readonly isLearner: boolean;
}

export interface Membership {
  readonly clusterId: bigint;
  readonly members: readonly MemberEntry[];
}

export interface EtcdPort {
  /** The member about itself; answers without a quorum too. */
  status(ask: Ask): Promise<Answer<MemberStatus>>;
  /** Linearizable: agreed with a quorum now. Otherwise: as this member last heard. */
  memberList(ask: Ask & { readonly linearizable: boolean }): Promise<Answer<Membership>>;
  put(ask: Ask, key: string, value: string): Promise<Answer<bigint>>;
  get(ask: Ask, key: string): Promise<Answer<string | undefined>>;
}

interface Stubs {
  readonly session: Session;
  readonly cluster: Client<typeof Cluster>;
  readonly maintenance: Client<typeof Maintenance>;
  readonly kv: Client<typeof KV>;
  usedAt: number;
}

const FORGET_AFTER_MS = 15 * 60_000;
const entry = (m: Member): MemberEntry => ({ id: m.ID, name: m.name, peerURLs: m.peerURLs, isLearner: m.isLearner });

export class EtcdClient implements EtcdPort {
  readonly #stubs = new Map<string, Stubs>();
  readonly #monotonic: () => number;
  readonly #open: (endpoint: string) => Session;

  constructor(monotonic: () => number, open: (endpoint: string) => Session = openSession) {
    this.#monotonic = monotonic;
    this.#open = open;
  }

  status(ask: Ask): Promise<Answer<MemberStatus>> {
    return this.#call(ask, async (stubs, options) => {
      const s = await stubs.maintenance.status({}, options);
      const { clusterId = 0n, memberId = 0n } = s.header ?? {};
      const { version, leader, isLearner, errors } = s;
      return { clusterId, memberId, version, leader, isLearner, errors };
    });
  }

  memberList(ask: Ask & { readonly linearizable: boolean }): Promise<Answer<Membership>> {
    return this.#call(ask, async (stubs, options) => {
      const list = await stubs.cluster.memberList({ linearizable: ask.linearizable }, options);
      return { clusterId: list.header?.clusterId ?? 0n, members: list.members.map(entry) };
    });
  }

  put(ask: Ask, key: string, value: string): Promise<Answer<bigint>> {
    return this.#call(ask, async (stubs, options) => {
      const answer = await stubs.kv.put({ key: bytes(key), value: bytes(value) }, options);
      return answer.header?.revision ?? 0n;
    });
  }

  get(ask: Ask, key: string): Promise<Answer<string | undefined>> {
    return this.#call(ask, async (stubs, options) => {
      const [found] = (await stubs.kv.range({ key: bytes(key) }, options)).kvs;
      return found && new TextDecoder().decode(found.value);
    });
  }

  close(): void {
    for (const stubs of this.#stubs.values()) stubs.session.close();
    this.#stubs.clear();
  }

  async #call<T>(
    ask: Ask,
    call: (stubs: Stubs, options: { timeoutMs: number; signal?: AbortSignal }) => Promise<T>,
  ): Promise<Answer<T>> {
    try {
      const options = { timeoutMs: ask.timeoutMs, ...(ask.signal && { signal: ask.signal }) };
      return { ok: true, value: await call(this.#stubsFor(ask.endpoint), options) };
    } catch (error) {
      return { ok: false, error: classify(error) };
    }
  }

  /** One session per member, kept between passes. Addresses of Pods that are gone are let go after a while. */
  #stubsFor(endpoint: string): Stubs {
    const now = this.#monotonic();
    const known = this.#stubs.get(endpoint);
    if (known) {
      known.usedAt = now;
      return known;
    }
    for (const [old, stubs] of this.#stubs)
      if (now - stubs.usedAt > FORGET_AFTER_MS) {
        stubs.session.close();
        this.#stubs.delete(old);
      }
    const stubs = { ...stubsOn(this.#open(endpoint)), usedAt: now };
    this.#stubs.set(endpoint, stubs);
    return stubs;
  }
}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

const stubsOn = (session: Session): Omit<Stubs, 'usedAt'> => {
  const { transport }: { readonly transport: Transport } = session;
  return {
    session,
    cluster: createClient(Cluster, transport),
    maintenance: createClient(Maintenance, transport),
    kv: createClient(KV, transport),
  };
};

/** The address of a Pod as a URL. */
export const endpointOf = (ip: string, port: number): string => `http://${ip.includes(':') ? `[${ip}]` : ip}:${port}`;
