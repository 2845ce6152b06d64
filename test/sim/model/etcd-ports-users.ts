/** Users and roles of the model: root manages them, and an authenticated user sees its own. */
import type { Ask } from '../../../src/etcd/client.ts';
import type { EtcdError, Result } from '../../../src/etcd/errors.ts';
import type { UserAuth } from '../../support/etcd-client.ts';
import { agreed, type Gate } from './etcd-gate.ts';
import { etcdError } from './etcd-said.ts';
import type { Users } from './etcd-users.ts';
import { minorOf } from './etcd-version.ts';

export function usersPort(gate: Gate): UserAuth {
  const change = (ask: Ask, make: (users: Users) => EtcdError | undefined | void): Promise<Result<void>> =>
    gate.ask<void>(ask, { who: 'root' }, (call) => agreed(call, ({ users }) => make(users)) ?? undefined);
  return {
    status: (ask) =>
      gate.ask(ask, { who: 'anyone' }, ({ node, user, state: { users } }) => {
        // From 3.7 on the auth status can be read without authentication.
        if (users.enabled && minorOf(node.version) < 7) {
          if (user === undefined) return etcdError('authRequired');
          if (!users.isRoot(user)) return etcdError('permissionDenied');
        }
        return { enabled: users.enabled, revision: users.revision };
      }),
    enable: (ask) => change(ask, (users) => users.enable()),
    disable: (ask) => change(ask, (users) => users.disable()),
    authenticate: (ask, account) => gate.authenticate(ask, account),
    addUser: (ask, name, password) => change(ask, (users) => users.add(name, password)),
    deleteUser: (ask, name) => change(ask, (users) => users.delete(name)),
    changePassword: (ask, name, password) => change(ask, (users) => users.changePassword(name, password)),
    grantRole: (ask, user, role) => change(ask, (users) => users.grantRole(user, role)),
    rolesOf: (ask, name) =>
      gate.ask(ask, { who: 'user' }, ({ user, state: { users } }) =>
        user === undefined || user === name || users.isRoot(user) ? users.rolesOf(name) : etcdError('permissionDenied'),
      ),
    roles: (ask) => gate.ask<readonly string[]>(ask, { who: 'root' }, () => []),
  };
}
