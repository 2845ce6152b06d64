/** Users and their root role, the same on every member that has applied the same changes. */
import type { Account } from '../../../src/etcd/auth-tokens.ts';
import type { EtcdError } from '../../../src/etcd/errors.ts';
import { etcdError } from './etcd-said.ts';

interface User {
  /** A user that was created without a password never gets one, also not by a change of the password. */
  readonly password: string | undefined;
  readonly roles: ReadonlySet<string>;
  /** A token belongs to a user with this password; changing the password invalidates it. */
  readonly stamp: number;
}

const ROOT = 'root';

export class Users {
  enabled = false;
  revision = 1n;
  /** Incremented whenever auth is disabled: all previous tokens become invalid. */
  epoch = 0;
  readonly #users = new Map<string, User>();
  #stamps = 0;

  enable(): EtcdError | undefined {
    if (!this.isRoot(ROOT)) return etcdError('rootMissing');
    this.enabled = true;
    return undefined;
  }

  disable(): void {
    this.enabled = false;
    this.epoch++;
  }

  add(name: string, password: string | undefined): EtcdError | undefined {
    if (name === '') return etcdError('authRequired');
    if (this.#users.has(name)) return etcdError('alreadyExists');
    return this.#set(name, { password, roles: new Set(), stamp: ++this.#stamps });
  }

  delete(name: string): EtcdError | undefined {
    if (this.enabled && name === ROOT) return { kind: 'other', message: 'etcdserver: invalid auth management' };
    if (!this.#users.delete(name)) return etcdError('userUnknown');
    this.revision++;
    return undefined;
  }

  changePassword(name: string, password: string): EtcdError | undefined {
    const user = this.#users.get(name);
    if (!user) return etcdError('userUnknown');
    const changed = user.password === undefined ? undefined : password;
    return this.#set(name, { ...user, password: changed, stamp: ++this.#stamps });
  }

  grantRole(name: string, role: string): EtcdError | undefined {
    const user = this.#users.get(name);
    if (!user) return etcdError('userUnknown');
    if (role !== ROOT) return etcdError('notFound');
    return this.#set(name, { ...user, roles: new Set([...user.roles, role]) });
  }

  rolesOf(name: string): readonly string[] | EtcdError {
    const user = this.#users.get(name);
    return user ? [...user.roles].sort() : etcdError('userUnknown');
  }

  isRoot(name: string): boolean {
    return this.#users.get(name)?.roles.has(ROOT) ?? false;
  }

  /** Identifies the user's current password: tokens with another stamp are invalid. */
  stampOf(name: string): number | undefined {
    return this.#users.get(name)?.stamp;
  }

  passwordOf(name: string): string | undefined {
    return this.#users.get(name)?.password;
  }

  accepts({ user, password }: Account): boolean {
    const known = this.#users.get(user);
    return known?.password !== undefined && known.password === password;
  }

  #set(name: string, user: User): undefined {
    this.#users.set(name, user);
    this.revision++;
    return undefined;
  }
}
