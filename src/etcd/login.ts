/** Auth tokens: one per cluster, which every member accepts, requested again when etcd no longer knows it. */
import type { Result } from './errors.ts';

export interface Login {
  readonly user: string;
  readonly password: string;
}

/** `undefined`: auth is off, calls are made without a token. */
export type Token = string | undefined;

interface Known {
  readonly login: Login;
  readonly token: Token;
}

interface Pending {
  readonly logins: readonly Login[];
  readonly answer: Promise<Result<Token>>;
}

type Authenticate = (login: Login) => Promise<Result<string>>;

interface TokenFor {
  readonly cluster: string;
  readonly endpoint: string;
  readonly logins: readonly Login[];
  readonly refused: Refused | undefined;
}

/** The token, or none, of a call that was refused. */
export interface Refused {
  readonly token: Token;
}

const same = (a: Login, b: Login): boolean => a.user === b.user && a.password === b.password;
const sameAll = (a: readonly Login[], b: readonly Login[]): boolean =>
  a.length === b.length && a.every((login, i) => same(login, b[i] ?? { user: '', password: '' }));

export class Logins {
  readonly #known = new Map<string, Known>();
  /** By cluster and member: a dead member, or a learner, must not keep another one from authenticating us. */
  readonly #pending = new Map<string, Pending>();

  /**
   * The known token, unless the member has just refused it: then it is replaced if that member authenticates us. A
   * learner does not, and a lagging member may not have applied the token yet: for all others it stays valid.
   */
  async token({ cluster, endpoint, logins, refused }: TokenFor, authenticate: Authenticate): Promise<Result<Token>> {
    const known = this.#known.get(cluster);
    const usable = known && (refused === undefined || refused.token !== known.token);
    if (usable && logins.some((login) => same(known.login, login))) return { ok: true, value: known.token };
    const key = `${cluster} ${endpoint}`;
    const pending = this.#pending.get(key);
    if (pending && sameAll(pending.logins, logins)) return pending.answer;
    const answer = this.#authenticate(cluster, logins, authenticate);
    const entry = { logins, answer };
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

  /** The first login that etcd accepts. */
  async #authenticate(cluster: string, logins: readonly Login[], authenticate: Authenticate): Promise<Result<Token>> {
    let refused: Result<Token> = { ok: true, value: undefined };
    for (const login of logins) {
      const answer = await authenticate(login);
      // Auth is not enabled yet: the next call that is refused without a user tries again.
      const off = !answer.ok && answer.error.kind === 'authNotEnabled';
      if (answer.ok || off) {
        const token = answer.ok ? answer.value : undefined;
        this.#known.set(cluster, { login, token });
        return { ok: true, value: token };
      }
      refused = answer;
      if (answer.error.kind !== 'authFailed') break;
    }
    return refused;
  }
}
