/**
 * The etcd client with changes only while this process holds the Lease: a process that was suspended has a stale view.
 */
import type { Ask } from './call.ts';
import type { Etcd } from './client.ts';
import type { Result } from './errors.ts';

const REFUSED: Result<never> = {
  ok: false,
  error: { kind: 'canceled', message: 'not sent: this process does not hold the lease, so another one may be acting' },
};

/** Every call that changes members, alarms, users or data. Add new ones to this list. */
const CHANGES: Readonly<Record<string, readonly string[]>> = {
  members: ['add', 'promote', 'remove', 'update'],
  maintenance: ['disarm', 'defragment', 'moveLeader', 'downgrade'],
  kv: ['compact'],
  auth: ['enable', 'addUser', 'deleteUser', 'changePassword', 'grantRole'],
};

type Call = (...args: readonly unknown[]) => unknown;

/** The Lease is checked when a call is made, and again when its request leaves: that may be seconds later, and exactly when the Lease expires. */
export function guarded(etcd: Etcd, mayChange: () => boolean): Etcd {
  const only = (port: object, changes: readonly string[]): object =>
    new Proxy(port, {
      get: (target, name) => {
        const call = Reflect.get(target, name) as Call;
        if (!changes.includes(String(name))) return call;
        return (ask: Ask, ...args: readonly unknown[]) =>
          mayChange() ? call.call(target, { ...ask, mayLeave: mayChange }, ...args) : Promise.resolve(REFUSED);
      },
    });
  return new Proxy(etcd, {
    get: (target, subject) => {
      const port = Reflect.get(target, subject) as Call | object;
      const changes = CHANGES[String(subject)];
      if (typeof port === 'function') return port.bind(target) as unknown;
      return changes ? only(port, changes) : port;
    },
  });
}
