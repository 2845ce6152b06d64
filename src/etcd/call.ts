/** One call to one member: session, time limit, authentication, and every failure as a value. */
import type {
  DescMessage,
  DescMethod,
  DescMethodStreaming,
  DescMethodUnary,
  MessageInitShape,
  MessageShape,
} from '@bufbuild/protobuf';
import { Auth } from '../gen/etcd/auth_pb.ts';
import type { ResponseHeader } from '../gen/etcd/header_pb.ts';
import { type Account, AuthTokens, type Refused, type Token } from './auth-tokens.ts';
import { classify, type EtcdError, type EtcdErrorKind, EtcdFailure, failure, type Result } from './errors.ts';
import type { Pool, Taken } from './pool.ts';
import type { TlsMaterial } from './transport.ts';

/** How the members of one cluster are reached. */
export interface Access {
  /** Sessions and the auth token are shared under this name. */
  readonly cluster: string;
  /** Called before every call: certificates may change, and new sessions use the new ones. */
  readonly tls?: (endpoint: string) => TlsMaterial;
  /** Called before every call, too: the first account that etcd accepts is used. Empty: calls do not authenticate. */
  readonly passwords?: () => readonly Account[];
  /** A response from any other cluster is refused. */
  readonly clusterId?: bigint;
}

export interface Ask {
  /** `http://address:port` or `https://address:port` of one member. */
  readonly endpoint: string;
  /** For the whole call, authentication included. It is sent to etcd, which then stops, too. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  readonly access?: Access;
  /** Asked when the request leaves: dialling and authentication may take seconds. */
  readonly mayLeave?: () => boolean;
}

export interface CallReport {
  /** Such as `Cluster/MemberAdd`. */
  readonly method: string;
  readonly outcome: 'ok' | EtcdErrorKind;
  readonly ms: number;
}

export type Size = 'control' | 'bulk';

interface WithHeader {
  readonly header?: ResponseHeader;
}

export interface CallerOptions {
  readonly monotonic: () => number;
  readonly pool: Pool;
  readonly onCall?: ((report: CallReport) => void) | undefined;
}

/**
 * etcd's clock for a call starts a little after ours, and its DeadlineExceeded can arrive a little before our own
 * limit.
 */
const DEADLINE_SLACK_MS = 100;

const clusterOf = ({ access, endpoint }: Ask): string => access?.cluster ?? endpoint;
const headersOf = (token: Token): Headers | undefined => (token === undefined ? undefined : new Headers({ token }));
const late = (timeoutMs: number): EtcdError => ({ kind: 'timeout', message: `no response within ${timeoutMs} ms` });

export class Caller {
  readonly #options: CallerOptions;
  readonly #tokens = new AuthTokens();

  constructor(options: CallerOptions) {
    this.#options = options;
  }

  /** The response of a call, or its error. Never rejects. */
  async unary<I extends DescMessage, O extends DescMessage, T>(
    ask: Ask,
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    read: (answer: MessageShape<O>) => T,
    size: Size = 'control',
  ): Promise<Result<T>> {
    const until = this.#options.monotonic() + ask.timeoutMs;
    for (let refused: Refused | undefined; ; ) {
      const token = await this.#token(ask, until, refused);
      if (!token.ok) return token;
      const answer = await this.#once(ask, until, token.value, method, request, read, size);
      if (answer.ok || refused || !tokenMayHelp(ask, token.value, answer.error)) return answer;
      refused = { token: token.value };
    }
  }

  /** The messages of a stream. Throws EtcdFailure. The time limit is for the whole stream; 0: none. */
  async *stream<I extends DescMessage, O extends DescMessage>(
    ask: Ask,
    method: DescMethodStreaming<I, O>,
    requests: AsyncIterable<MessageInitShape<I>>,
  ): AsyncGenerator<MessageShape<O>> {
    const until = this.#options.monotonic() + (ask.timeoutMs || 60_000);
    const started = this.#options.monotonic();
    let failed: EtcdError | undefined;
    let taken: Taken | undefined;
    const over = new AbortController(); // a consumer that stops reading ends the call
    try {
      const token = await this.#token(ask, until);
      if (!token.ok) throw new EtcdFailure(token.error);
      taken = this.#take(ask);
      const signal = AbortSignal.any([over.signal, ...(ask.signal ? [ask.signal] : [])]);
      const { bulk } = taken.session;
      const answer = await bulk.stream(method, signal, ask.timeoutMs, headersOf(token.value), requests);
      for await (const message of answer.message) {
        checkCluster(ask, message as WithHeader);
        yield message;
      }
    } catch (error) {
      const classified = this.#meant(classify(error), ask, ask.timeoutMs ? until : Number.POSITIVE_INFINITY);
      if (classified.kind === 'invalidToken' || classified.kind === 'authRequired') this.#tokens.forget(clusterOf(ask));
      failed = withSince(classified, taken?.release(classified));
      throw new EtcdFailure(failed, { cause: error });
    } finally {
      over.abort();
      taken?.release();
      if (taken || failed?.since === undefined) this.#report(method, failed, started); // otherwise the circuit breaker refused the call
    }
  }

  /** The cluster was deleted: removes its token and sessions. */
  forget(cluster: string): void {
    this.#tokens.forget(cluster);
    this.#options.pool.forget(cluster);
  }

  async #once<I extends DescMessage, O extends DescMessage, T>(
    ask: Ask,
    until: number,
    token: Token,
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    read: (answer: MessageShape<O>) => T,
    size: Size,
  ): Promise<Result<T>> {
    const started = this.#options.monotonic();
    let failed: EtcdError | undefined;
    let taken: Taken | undefined;
    try {
      const leftMs = until - started;
      if (leftMs <= 0) throw new EtcdFailure(late(ask.timeoutMs));
      taken = this.#take(ask);
      const transport = taken.session[size];
      const { signal, mayLeave } = ask;
      const headers = headersOf(token);
      const ms = Math.ceil(leftMs);
      const { message } = await transport.unary(method, signal, ms, headers, request, undefined, mayLeave);
      checkCluster(ask, message as WithHeader);
      return { ok: true, value: read(message) };
    } catch (error) {
      const classified = this.#meant(classify(error), ask, until);
      failed = withSince(classified, taken?.release(classified, ALONE.includes(nameOf(method))));
      return { ok: false, error: failed };
    } finally {
      taken?.release();
      if (taken || failed?.since === undefined) this.#report(method, failed, started); // otherwise the circuit breaker refused the call
    }
  }

  /**
   * A stream is canceled when its caller aborts, but also when the connection breaks, and by etcd at its time limit.
   */
  #meant(error: EtcdError, { signal }: Ask, until: number): EtcdError {
    if (error.kind !== 'canceled' || signal?.aborted) return error;
    const over = this.#options.monotonic() > until - DEADLINE_SLACK_MS;
    return { kind: over ? 'timeout' : 'disconnected', message: error.message };
  }

  #take(ask: Ask): Taken {
    return this.#options.pool.take(clusterOf(ask), ask.endpoint, ask.access?.tls?.(ask.endpoint));
  }

  async #token(ask: Ask, until: number, refused?: Refused): Promise<Result<Token>> {
    const passwords = ask.access?.passwords?.() ?? [];
    if (passwords.length === 0) return { ok: true, value: undefined };
    // Not the caller's signal: other calls may wait for the same authentication.
    const { signal, ...shared } = ask;
    const authenticate = (account: Account): Promise<Result<string>> => this.authenticate(shared, account, until);
    const answer = this.#tokens.token(
      { cluster: clusterOf(ask), endpoint: ask.endpoint, passwords, refused },
      authenticate,
    );
    const got = await unlessAborted(answer, signal);
    // A learner serves a few calls, but does not authenticate clients.
    return !got.ok && got.error.kind === 'learnerRefused' ? { ok: true, value: undefined } : got;
  }

  authenticate(ask: Ask, account: Account, until = this.#options.monotonic() + ask.timeoutMs): Promise<Result<string>> {
    const request = { name: account.user, password: account.password };
    return this.#once(ask, until, undefined, Auth.method.authenticate, request, ({ token }) => token, 'control');
  }

  #report(method: Method, failed: EtcdError | undefined, started: number): void {
    const ms = this.#options.monotonic() - started;
    this.#options.onCall?.({ method: nameOf(method), outcome: failed?.kind ?? 'ok', ms });
  }
}

/**
 * Without a token, etcd takes a client with a certificate for the user in its common name: a user with fewer
 * permissions, or an unknown one.
 */
const UNAUTHENTICATED: readonly EtcdErrorKind[] = ['authRequired', 'permissionDenied', 'userUnknown'];

/** Whether a new token may help: the token was refused, or auth was off when it was requested and is on now. */
const tokenMayHelp = ({ access }: Ask, token: Token, { kind }: EtcdError): boolean =>
  (access?.passwords?.() ?? []).length > 0 &&
  (kind === 'invalidToken' || (token === undefined && UNAUTHENTICATED.includes(kind)));

type Method = Pick<DescMethod, 'name' | 'parent'>;
const nameOf = ({ name, parent }: Method): string => `${parent.name}/${name}`;

/** A member responds to these without its peers. Any other call may time out only because there is no quorum. */
const ALONE: readonly string[] = ['Maintenance/Status'];

const withSince = (error: EtcdError, since: number | undefined): EtcdError =>
  since === undefined ? error : { ...error, since };

function checkCluster({ access }: Ask, { header }: WithHeader): void {
  const { clusterId } = access ?? {};
  if (clusterId === undefined || header === undefined || header.clusterId === clusterId) return;
  const hex = (id: bigint): string => id.toString(16);
  throw failure('wrongCluster', `the response is from cluster ${hex(header.clusterId)}, not from ${hex(clusterId)}`);
}

/**
 * The response, or at once that the caller aborted. Removes its listener from a signal that lives longer than the call.
 */
async function unlessAborted<T>(answer: Promise<Result<T>>, signal: AbortSignal | undefined): Promise<Result<T>> {
  if (!signal) return answer;
  const givenUp = Promise.withResolvers<Result<T>>();
  const giveUp = (): void => givenUp.resolve({ ok: false, error: { kind: 'canceled', message: 'the caller gave up' } });
  if (signal.aborted) giveUp();
  signal.addEventListener('abort', giveUp, { once: true });
  try {
    return await Promise.race([answer, givenUp.promise]);
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
}
