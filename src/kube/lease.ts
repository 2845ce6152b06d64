/**
 * Leader election on a Lease. The holder renews every 2 s; a holder that could not renew for 10 s stops writing by
 * itself, 5 s before another replica may take over. `decideLease` is the protocol; `Leadership` is the loop around it.
 *
 * Guarantees: `held` is false 5 s before another replica may take the Lease, also in a process that was stopped and on a machine
 * that was suspended; each write asks it at the moment when it is sent (`Fence`).
 * Assumptions: clocks run at about the same speed; their times may differ.
 * Caveats: a request that is on its way may arrive up to 5 s later. A Lease that a user deletes is created again by its holder; a
 * replica that has observed a holder waits for a lease duration, one that has just started does not: preconditions of the steps
 * prevent harm.
 */
import type { Lease, LeaseSpec } from '../gen/kube.ts';
import { microTime } from '../lib/time.ts';
import type { Client } from './client.ts';
import { isConflict } from './errors.ts';
import type { Fence } from './http-client.ts';
import type { Ref } from './object.ts';
import { leases } from './resources.ts';

export const LEASE_SECONDS = 15;
export const RENEW_DEADLINE_MS = 10_000;
export const RETRY_MS = 2_000;

/** The Lease as it was observed, and since when it is unchanged (on our own clock: the holder's clock may be wrong). */
export interface Sighting {
  readonly lease: Lease | undefined;
  readonly unchangedMs: number;
  /** The last holder that was observed: it may not know yet that the Lease was deleted. */
  readonly lastHolder?: string | undefined;
}
export type LeaseMove = 'create' | 'take' | 'renew' | 'wait';

export function decideLease(identity: string, { lease, unchangedMs, lastHolder = '' }: Sighting): LeaseMove {
  if (!lease) {
    const mayBeHeld = lastHolder !== '' && lastHolder !== identity;
    return mayBeHeld && unchangedMs <= LEASE_SECONDS * 1000 ? 'wait' : 'create';
  }
  const holder = lease.spec?.holderIdentity ?? '';
  if (holder === identity) return 'renew';
  const expired = unchangedMs > (lease.spec?.leaseDurationSeconds ?? LEASE_SECONDS) * 1000;
  return holder === '' || expired ? 'take' : 'wait';
}

export interface LeadershipOptions {
  readonly client: Client;
  readonly ref: Ref;
  readonly identity: string;
  /** A monotonic clock, in milliseconds. */
  readonly monotonic: () => number;
  /** The wall clock, for people who read the Lease. */
  readonly now: () => Date;
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly onError: (error: unknown) => void;
}

/** Both clocks at one moment. */
interface Moment {
  readonly monotonic: number;
  readonly wall: number;
}

export class Leadership implements Fence {
  readonly #options: LeadershipOptions;
  #renewedAt: Moment | undefined;
  #seen: { readonly version: string; readonly at: number } | undefined;
  #lastHolder: string | undefined;

  constructor(options: LeadershipOptions) {
    this.#options = options;
  }

  get namespace(): string {
    return this.#options.ref.namespace;
  }

  /** Whether a write that is sent now is certainly covered by the Lease. */
  get held(): boolean {
    return this.remainingMs() > 0;
  }

  readonly open = (): boolean => this.held;

  /**
   * How long the Lease is certainly ours. A process that was stopped detects it on the monotonic clock; a machine that
   * was suspended detects it only on the wall clock. The more pessimistic of the two counts.
   */
  readonly remainingMs = (): number => {
    if (this.#renewedAt === undefined) return 0;
    const { monotonic, wall } = this.#moment();
    const elapsed = Math.max(monotonic - this.#renewedAt.monotonic, wall - this.#renewedAt.wall);
    return Math.max(0, RENEW_DEADLINE_MS - elapsed);
  };

  #moment(): Moment {
    return { monotonic: this.#options.monotonic(), wall: this.#options.now().getTime() };
  }

  /** Resolves when this process holds the Lease; rejects when the signal ends the wait. */
  async acquire(signal: AbortSignal): Promise<void> {
    while (!this.held) {
      signal.throwIfAborted();
      await this.#attempt(signal);
      if (!this.held) await this.#options.sleep(RETRY_MS, signal);
    }
  }

  /** Keeps renewing; resolves when the Lease is lost, or when the signal announces shutdown. */
  async keep(signal: AbortSignal): Promise<'lost' | 'leaving'> {
    while (!signal.aborted) {
      await this.#options.sleep(RETRY_MS, signal);
      if (signal.aborted) break;
      await this.#attempt(signal);
      if (!this.held) return 'lost';
    }
    return 'leaving';
  }

  /** Releases the Lease, so that the next replica becomes the leader at once and not after the Lease has expired. */
  async release(): Promise<void> {
    const { client, ref, identity } = this.#options;
    this.#renewedAt = undefined; // no write is sent from here on, not even one that is already being prepared
    const lease = await client.get(leases, ref);
    if (lease?.spec?.holderIdentity !== identity) return;
    await this.#write(lease, { holderIdentity: '', leaseDurationSeconds: 1 });
  }

  async #attempt(signal: AbortSignal): Promise<void> {
    const { client, ref, identity, onError } = this.#options;
    const limit = AbortSignal.any([signal, AbortSignal.timeout(RENEW_DEADLINE_MS / 2)]);
    const started = this.#moment(); // the Lease counts from the request, not from the response
    try {
      const lease = await client.get(leases, ref, limit);
      const version = lease?.metadata.resourceVersion ?? '';
      if (this.#seen?.version !== version) this.#seen = { version, at: started.monotonic };
      this.#lastHolder = lease ? lease.spec?.holderIdentity : this.#lastHolder;
      const unchangedMs = started.monotonic - this.#seen.at;
      const move = decideLease(identity, { lease, unchangedMs, lastHolder: this.#lastHolder });
      if (move === 'wait') {
        this.#renewedAt = undefined; // another replica holds the Lease, whatever was recorded here
        return;
      }
      const spec = this.#claim(lease, move);
      await (lease ? this.#write(lease, spec, limit) : this.#create(spec, limit));
      this.#lastHolder = identity;
      this.#renewedAt = started;
    } catch (error) {
      if (!isConflict(error) && !signal.aborted) onError(error);
    }
  }

  #claim(lease: Lease | undefined, move: LeaseMove): LeaseSpec {
    const renewTime = microTime(this.#options.now().getTime());
    const leaseTransitions = lease ? (lease.spec?.leaseTransitions ?? 0) + 1 : 0;
    return {
      holderIdentity: this.#options.identity,
      leaseDurationSeconds: LEASE_SECONDS,
      ...(move !== 'renew' && { acquireTime: renewTime, leaseTransitions }),
      renewTime,
    };
  }

  #create(spec: LeaseSpec, signal: AbortSignal): Promise<Lease> {
    const { client, ref } = this.#options;
    const metadata = { name: ref.name, namespace: ref.namespace };
    return client.create(leases, { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec }, signal);
  }

  /** With a signal: a request that hangs must not keep the holder from its next attempt. */
  #write(lease: Lease, spec: LeaseSpec, signal?: AbortSignal): Promise<Lease> {
    const { resourceVersion } = lease.metadata;
    const body = { metadata: { resourceVersion }, spec };
    return this.#options.client.patch(leases, this.#options.ref, body, signal ? { signal } : {});
  }
}
