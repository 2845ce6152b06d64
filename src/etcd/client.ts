/** What we ask of etcd: narrow ports by subject. Every call names the member that it asks, and has a time limit. */

import type { BackoffOptions } from '../lib/backoff.ts';
import { type AuthPort, authPort } from './auth.ts';
import { type Ask, Caller, type CallReport } from './call.ts';
import type { Result } from './errors.ts';
import { type KvPort, kvPort } from './kv.ts';
import { type MaintenancePort, type MemberStatus, maintenancePort } from './maintenance.ts';
import { type Membership, type MembersPort, membersPort } from './members.ts';
import { Pool, type SessionCounts } from './pool.ts';
import { type OpenSession, openSession } from './transport.ts';

export type { Access, Ask, CallReport } from './call.ts';
export type { MemberStatus } from './maintenance.ts';
export type { MemberEntry, Membership } from './members.ts';

/** What a look at a cluster needs. */
export interface EtcdPort {
  /** The member about itself; answers without a quorum too. */
  status(ask: Ask): Promise<Result<MemberStatus>>;
  /** Linearizable: agreed with a quorum now. Otherwise: as this member last heard. */
  memberList(ask: Ask & { readonly linearizable: boolean }): Promise<Result<Membership>>;
  /** These are the cluster's members now: sessions to any other are closed. */
  retain(cluster: string, endpoints: readonly string[]): void;
  /** Something about the cluster's members has changed: whoever was given up on is asked again. */
  reset(cluster: string): void;
  /** The cluster is gone. */
  forget(cluster: string): void;
}

/** Everything, by subject. */
export interface Etcd extends EtcdPort {
  readonly members: MembersPort;
  readonly maintenance: MaintenancePort;
  readonly kv: KvPort;
  readonly auth: AuthPort;
}

export interface ClientOptions {
  readonly open?: OpenSession;
  /** Sessions are closed after this time without a call. */
  readonly idleMs?: number;
  /** For a process that asks again and again: members that fail are asked with pauses. Without it, every call is made. */
  readonly backoff?: BackoffOptions;
  /** Milliseconds since 1970, for what is told about members that fail. */
  readonly now?: () => number;
  /** Told about every call when it has ended. */
  readonly onCall?: (report: CallReport) => void;
}

/** Longer than the operator waits before it looks at a healthy cluster again: an idle one opens no connection. */
const IDLE_MS = 10 * 60_000;
/** A waiting session costs about 45 KiB, 24 of them in HTTP/2: 53 MiB for all members of 400 clusters; with more, some are dialled. */
const WAITING = 1_200;

export class EtcdClient implements Etcd {
  readonly members: MembersPort;
  readonly maintenance: MaintenancePort;
  readonly kv: KvPort;
  readonly auth: AuthPort;
  readonly #pool: Pool;
  protected readonly caller: Caller;

  constructor(monotonic: () => number, options: ClientOptions = {}) {
    const { open = openSession, idleMs = IDLE_MS, now = Date.now, backoff, onCall } = options;
    this.#pool = new Pool({
      monotonic,
      now,
      open: (target) => open(target),
      idleMs,
      waiting: WAITING,
      backoff,
    });
    this.caller = new Caller({ monotonic, pool: this.#pool, onCall });
    this.members = membersPort(this.caller);
    this.maintenance = maintenancePort(this.caller);
    this.kv = kvPort(this.caller);
    this.auth = authPort(this.caller);
  }

  status(ask: Ask): Promise<Result<MemberStatus>> {
    return this.maintenance.status(ask);
  }

  memberList(ask: Ask & { readonly linearizable: boolean }): Promise<Result<Membership>> {
    return this.members.list(ask, ask);
  }

  retain(cluster: string, endpoints: readonly string[]): void {
    this.#pool.retain(cluster, endpoints);
  }

  forget(cluster: string): void {
    this.caller.forget(cluster);
  }

  /** A Pod of the cluster has changed: none of its members is spared any longer. */
  reset(cluster: string): void {
    this.#pool.reset(cluster);
  }

  sessions(): SessionCounts {
    return this.#pool.counts();
  }

  close(): void {
    this.#pool.close();
  }
}
