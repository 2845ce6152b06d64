/** Users, roles, and whether auth is enabled. */
import { Auth } from '../gen/etcd/auth_pb.ts';
import type { Account } from './auth-tokens.ts';
import type { Ask, Caller } from './call.ts';
import type { Result } from './errors.ts';

export interface AuthPort {
  status(ask: Ask): Promise<Result<{ readonly enabled: boolean; readonly revision: bigint }>>;
  /** Needs a user `root` with the role `root`. */
  enable(ask: Ask): Promise<Result<void>>;
  /** A token; calls with an `access.passwords` get theirs without this. */
  authenticate(ask: Ask, account: Account): Promise<Result<string>>;
  /** Without a password, the user authenticates with a client certificate only. */
  addUser(ask: Ask, name: string, password?: string): Promise<Result<void>>;
  deleteUser(ask: Ask, name: string): Promise<Result<void>>;
  changePassword(ask: Ask, name: string, password: string): Promise<Result<void>>;
  grantRole(ask: Ask, user: string, role: string): Promise<Result<void>>;
  rolesOf(ask: Ask, user: string): Promise<Result<readonly string[]>>;
  roles(ask: Ask): Promise<Result<readonly string[]>>;
}

const nothing = (): void => undefined;

export function authPort(caller: Caller): AuthPort {
  const { method } = Auth;
  return {
    status: (ask) =>
      caller.unary(ask, method.authStatus, {}, ({ enabled, authRevision }) => ({ enabled, revision: authRevision })),
    enable: (ask) => caller.unary(ask, method.authEnable, {}, nothing),
    authenticate: (ask, account) => caller.authenticate(ask, account),
    addUser: (ask, name, password) => {
      const options = { noPassword: password === undefined };
      return caller.unary(ask, method.userAdd, { name, password: password ?? '', options }, nothing);
    },
    deleteUser: (ask, name) => caller.unary(ask, method.userDelete, { name }, nothing),
    changePassword: (ask, name, password) => caller.unary(ask, method.userChangePassword, { name, password }, nothing),
    grantRole: (ask, user, role) => caller.unary(ask, method.userGrantRole, { user, role }, nothing),
    rolesOf: (ask, name) => caller.unary(ask, method.userGet, { name }, ({ roles }) => roles),
    roles: (ask) => caller.unary(ask, method.roleList, {}, ({ roles }) => roles),
  };
}
