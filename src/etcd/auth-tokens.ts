/** Auth tokens: one per cluster, which every member accepts, requested again when etcd no longer knows it. */
import { sameJson } from '../lib/merge-patch.ts';
import type { Result } from './errors.ts';

export interface Account {
  readonly user: string;
  readonly password: string;
}

/** `undefined`: auth is off, calls are made without a token. */
export type Token = string | undefined;

interface Known {
  readonly account: Account;
  readonly token: Token;
}

interface Pending {
  readonly passwords: readonly Account[];
  readonly answer: Promise<Result<Token>>;
}

type Authenticate = (account: Account) => Promise<Result<string>>;

interface TokenFor {
  readonly cluster: string;
  readonly endpoint: string;
  readonly passwords: readonly Account[];
  readonly refused: Refused | undefined;
}

/** The token, or none, of a call that was refused. */
export interface Refused {
  readonly token: Token;
}

export class AuthTokens {
  readonly #known = new Map<string, Known>();
  /** By cluster and member: a dead member, or a learner, must not keep another one from authenticating us. */
  readonly #pending = new Map<string, Pending>();

  /**
   * The known token, unless the member has just refused it: then it is replaced if that member authenticates us. A
   * learner does not, and a lagging member may not have applied the token yet: for all others it stays valid.
   */
  async token({ cluster, endpoint, passwords, refused }: TokenFor, authenticate: Authenticate): Promise<Result<Token>> {
    const known = this.#known.get(cluster);
    const usable = known && (refused === undefined || refused.token !== known.token);
    if (usable && passwords.some((account) => sameJson(known.account, account)))
      return { ok: true, value: known.token };
    const key = `${cluster} ${endpoint}`;
    const pending = this.#pending.get(key);
    if (pending && sameJson(pending.passwords, passwords)) return pending.answer;
    const answer = this.#authenticate(cluster, passwords, authenticate);
    const entry = { passwords, answer };
    this.#pending.set(key, entry);
    try {
      return await answer;
    } finally {
      if (this.#pending.get(key) === entry) this.#pending.delete(key);
    }
  }

  forget(cluster: string): void {
    this.#known.delete(cluster);
  }

  /** The first account that etcd accepts. */
  async #authenticate(
    cluster: string,
    passwords: readonly Account[],
    authenticate: Authenticate,
  ): Promise<Result<Token>> {
    let refused: Result<Token> = { ok: true, value: undefined };
    for (const account of passwords) {
      const answer = await authenticate(account);
      // Auth is not enabled yet: the next call that is refused without a user tries again.
      const off = !answer.ok && answer.error.kind === 'authNotEnabled';
      if (answer.ok || off) {
        const token = answer.ok ? answer.value : undefined;
        this.#known.set(cluster, { account, token });
        return { ok: true, value: token };
      }
      refused = answer;
      if (answer.error.kind !== 'authFailed') break;
    }
    return refused;
  }
}
