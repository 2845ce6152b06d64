/** Users and whether they are root, as every member has them that has applied the same changes. */
import type { EtcdError } from '../../../src/etcd/errors.ts';
import type { Login } from '../../../src/etcd/login.ts';
import { said } from './etcd-said.ts';

interface User {
  /** Who was made without one stays so, whatever it is changed to. */
  readonly password: string | undefined;
  readonly roles: ReadonlySet<string>;
  /** Tokens are of a user with this password; a change of it ends them. */
  readonly stamp: number;
}

const ROOT = 'root';

export class Users {
  enabled = false;
  revision = 1n;
  /** Grows with every turning off: tokens from before are worth nothing. */
  epoch = 0;
  readonly #users = new Map<string, User>();
  #stamps = 0;

  enable(): EtcdError | undefined {
    if (!this.isRoot(ROOT)) return said('rootMissing');
    this.enabled = true;
    return undefined;
  }

  disable(): void {
    this.enabled = false;
    this.epoch++;
  }

  add(name: string, password: string | undefined): EtcdError | undefined {
    if (name === '') return said('authRequired');
    if (this.#users.has(name)) return said('alreadyExists');
    return this.#set(name, { password, roles: new Set(), stamp: ++this.#stamps });
  }

  delete(name: string): EtcdError | undefined {
    if (this.enabled && name === ROOT) return { kind: 'other', message: 'etcdserver: invalid auth management' };
    if (!this.#users.delete(name)) return said('userUnknown');
    this.revision++;
    return undefined;
  }

  changePassword(name: string, password: string): EtcdError | undefined {
    const user = this.#users.get(name);
    if (!user) return said('userUnknown');
    const changed = user.password === undefined ? undefined : password;
    return this.#set(name, { ...user, password: changed, stamp: ++this.#stamps });
  }

  grantRole(name: string, role: string): EtcdError | undefined {
    const user = this.#users.get(name);
    if (!user) return said('userUnknown');
    if (role !== ROOT) return said('notFound');
    return this.#set(name, { ...user, roles: new Set([...user.roles, role]) });
  }

  rolesOf(name: string): readonly string[] | EtcdError {
    const user = this.#users.get(name);
    return user ? [...user.roles].sort() : said('userUnknown');
  }

  isRoot(name: string): boolean {
    return this.#users.get(name)?.roles.has(ROOT) ?? false;
  }

  /** Whose tokens these are: of this user, with this password. */
  stampOf(name: string): number | undefined {
    return this.#users.get(name)?.stamp;
  }

  accepts({ user, password }: Login): boolean {
    const known = this.#users.get(user);
    return known?.password !== undefined && known.password === password;
  }

  #set(name: string, user: User): undefined {
    this.#users.set(name, user);
    this.revision++;
    return undefined;
  }
}
