/** Who has logged in where: one token per cluster, made by one log-in at a time, and made anew when etcd no longer knows it. */
import type { Answer } from './errors.ts';

export interface Login {
  readonly user: string;
  readonly password: string;
}

/** `undefined`: authentication is off, calls go without a token. */
export type Token = string | undefined;

interface Known {
  readonly login: Login;
  readonly token: Token;
}

const same = (a: Login, b: Login): boolean => a.user === b.user && a.password === b.password;

export class Logins {
  readonly #known = new Map<string, Known>();
  readonly #pending = new Map<string, { readonly login: Login; readonly answer: Promise<Answer<Token>> }>();

  async token(cluster: string, login: Login, logIn: () => Promise<Answer<string>>): Promise<Answer<Token>> {
    const known = this.#known.get(cluster);
    if (known && same(known.login, login)) return { ok: true, value: known.token };
    const pending = this.#pending.get(cluster);
    if (pending && same(pending.login, login)) return pending.answer;
    const answer = this.#logIn(cluster, login, logIn);
    const entry = { login, answer };
    this.#pending.set(cluster, entry);
    try {
      return await answer;
    } finally {
      if (this.#pending.get(cluster) === entry) this.#pending.delete(cluster);
    }
  }

  /** This token was refused. One that another call has brought meanwhile stays. */
  drop(cluster: string, token: Token): void {
    if (this.#known.get(cluster)?.token === token) this.#known.delete(cluster);
  }

  forget(cluster: string): void {
    this.#known.delete(cluster);
  }

  async #logIn(cluster: string, login: Login, logIn: () => Promise<Answer<string>>): Promise<Answer<Token>> {
    const answer = await logIn();
    // Authentication that is not on yet: the next call that is refused without a user tries again.
    if (!answer.ok && answer.error.kind === 'authNotEnabled') {
      this.#known.set(cluster, { login, token: undefined });
      return { ok: true, value: undefined };
    }
    if (answer.ok) this.#known.set(cluster, { login, token: answer.value });
    return answer;
  }
}
