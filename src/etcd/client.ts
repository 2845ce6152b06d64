/** The operator's etcd client: narrow ports by subject. Every call names its member, and has a time limit. */

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

/** What observing a cluster needs. */
export interface EtcdPort {
  /** The member's own status; served without a quorum too. */
  status(ask: Ask): Promise<Result<MemberStatus>>;
  /** Linearizable: confirmed by a quorum. Otherwise: as this member last knew it. */
  memberList(ask: Ask & { readonly linearizable: boolean }): Promise<Result<Membership>>;
  /** The current members of the cluster: sessions to any other are closed. */
  retain(cluster: string, endpoints: readonly string[]): void;
  /** A Pod of the cluster has changed: members that were not called because of failures are called again. */
  reset(cluster: string): void;
  /** The cluster was deleted. */
  forget(cluster: string): void;
}

/** All ports, by subject. */
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
  /** For a process that polls: members that fail are called with pauses. Without it, every call is made. */
  readonly backoff?: BackoffOptions;
  /** Milliseconds since 1970, for reports about members that fail. */
  readonly now?: () => number;
  /** Called after every call. */
  readonly onCall?: (report: CallReport) => void;
}

/** Longer than the requeue interval of a healthy cluster: an idle one opens no connection. */
const IDLE_MS = 10 * 60_000;
/**
 * A kept session costs about 45 KiB, 24 of them in HTTP/2: 53 MiB for all members of 400 clusters; with more clusters,
 * some members are dialled again.
 */
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

  /** A Pod of the cluster has changed: none of its members is paused any longer. */
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
