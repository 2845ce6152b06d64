/** Users, roles and what they may, as every member has them that has applied the same changes. */
import type { Permission } from '../../../src/etcd/auth.ts';
import type { EtcdError } from '../../../src/etcd/errors.ts';
import { type Keys, keyRange } from '../../../src/etcd/kv.ts';
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
  readonly #roles = new Map<string, readonly Permission[]>();
  #stamps = 0;

  get names(): readonly string[] {
    return [...this.#users.keys()].sort();
  }
  get roleNames(): readonly string[] {
    return [...this.#roles.keys()].sort();
  }

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
    if (role !== ROOT && !this.#roles.has(role)) return said('notFound');
    return this.#set(name, { ...user, roles: new Set([...user.roles, role]) });
  }

  rolesOf(name: string): readonly string[] | EtcdError {
    const user = this.#users.get(name);
    return user ? [...user.roles].sort() : said('userUnknown');
  }

  addRole(name: string): EtcdError | undefined {
    if (this.#roles.has(name)) return said('alreadyExists');
    this.#roles.set(name, []);
    this.revision++;
    return undefined;
  }

  grantPermission(role: string, permission: Permission): EtcdError | undefined {
    const had = this.#roles.get(role);
    if (!had) return said('notFound');
    this.#roles.set(role, [...had, permission]);
    this.revision++;
    return undefined;
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

  /** One permission must cover all of the keys. */
  may(name: string, what: 'read' | 'write', keys: Keys): boolean {
    if (this.isRoot(name)) return true;
    const roles = this.#users.get(name)?.roles ?? new Set<string>();
    return [...roles].some((role) =>
      this.#roles.get(role)?.some((allowed) => [what, 'readwrite'].includes(allowed.may) && covers(allowed, keys)),
    );
  }

  #set(name: string, user: User): undefined {
    this.#users.set(name, user);
    this.revision++;
    return undefined;
  }
}

function covers(allowed: Keys, asked: Keys): boolean {
  const [outer, inner] = [keyRange(allowed), keyRange(asked)];
  if (Buffer.compare(inner.key, outer.key) < 0) return false;
  const [end, innerEnd] = [endOf(outer), endOf(inner)];
  return end === undefined || (innerEnd !== undefined && Buffer.compare(innerEnd, end) <= 0);
}

/** The first key after these; nothing when there is no end. */
function endOf({ key, rangeEnd }: { readonly key: Uint8Array; readonly rangeEnd: Uint8Array }): Uint8Array | undefined {
  if (rangeEnd.length === 0) return Buffer.concat([key, new Uint8Array([0])]);
  return rangeEnd.length === 1 && rangeEnd[0] === 0 ? undefined : rangeEnd;
}
