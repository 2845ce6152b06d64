/** The permissions that the Go operator keeps during an upgrade. With Helm and a real API server: test/integration/half-upgrade.test.ts. */
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { ModelApiServer } from '../../test/sim/model/kube.ts';
import { ApiError } from '../kube/errors.ts';
import type { Ref, Resource } from '../kube/object.ts';
import { clusterRoleBindings, clusterRoles, roleBindings, roles } from '../kube/resources.ts';
import { type Clock, systemClock } from '../runtime/clock.ts';
import { removePermissions } from './obsolete-permissions.ts';

const NAME = 'etcd-operator-go-operator';
const KINDS: readonly (readonly [Resource, Ref])[] = [
  [clusterRoles, { namespace: '', name: NAME }],
  [clusterRoleBindings, { namespace: '', name: NAME }],
  [roles, { namespace: 'ops', name: NAME }],
  [roleBindings, { namespace: 'ops', name: NAME }],
];
const clock: Clock = {
  ...systemClock,
  after: (_, call) => {
    queueMicrotask(call);
    return () => undefined;
  },
};
const BOUND = 'etcd-operator-leader-election-role';

async function serverWithAll(): Promise<ModelApiServer> {
  const server = new ModelApiServer();
  for (const [resource, { name, namespace }] of KINDS) {
    const metadata = namespace === '' ? { name } : { name, namespace };
    await server.create(resource, { apiVersion: 'rbac.authorization.k8s.io/v1', kind: resource.kind, metadata });
  }
  await server.create(roles, { apiVersion: 'v1', kind: 'Role', metadata: { name: BOUND, namespace: 'ops' } });
  return server;
}
const left = async (server: ModelApiServer): Promise<readonly string[]> => {
  const found = await Promise.all(
    KINDS.map(async ([resource, ref]) => (await server.get(resource, ref)) && resource.kind),
  );
  return found.filter((kind) => kind !== undefined);
};
/** Each deletion is refused with the codes of its kind, one after the other. */
function refusing(server: ModelApiServer, codes: Readonly<Record<string, number[]>>) {
  const remove: typeof server.delete = (resource, ref, ...rest) => {
    const code = codes[resource.kind]?.shift();
    if (code === undefined) return server.delete(resource, ref, ...rest);
    return Promise.reject(
      new ApiError(`DELETE ${resource.kind}`, code, { reason: code === 403 ? 'Forbidden' : 'Error' }),
    );
  };
  return new Proxy(server, {
    get: (target, name) => {
      if (name === 'delete') return remove;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
async function removed(server: ModelApiServer, signal = new AbortController().signal): Promise<readonly string[]> {
  const lines: string[] = [];
  const write = (line: string): void => void lines.push((JSON.parse(line) as { msg: string }).msg);
  const log = pino({ base: null }, { write });
  await removePermissions(server, { name: NAME, namespace: 'ops' }, { clock, log, signal });
  return lines;
}

test('all four objects are deleted, and no others', async () => {
  const server = await serverWithAll();
  expect(await removed(server)).toEqual([expect.stringContaining('deleted the permissions')]);
  expect(await left(server)).toEqual([]);
  expect(await server.get(roles, { namespace: 'ops', name: BOUND })).toBeDefined();
  expect(await removed(server), 'again, after a restart').toHaveLength(1);
});

test('an error is retried until they are deleted', async () => {
  const server = await serverWithAll();
  const lines = await removed(refusing(server, { Role: [500, 503, 500, 500, 500, 500, 409] }));
  expect(lines).toHaveLength(8);
  expect(lines[0]).toContain(`kubectl delete clusterrolebinding,clusterrole ${NAME}`);
  expect(await left(server)).toEqual([]);
});

test('the RoleBinding, by which the chart detects that something is left, is the last one', async () => {
  const server = await serverWithAll();
  await removed(refusing(server, { ClusterRole: Array.from({ length: 9 }, () => 403) }));
  expect(await left(server)).toEqual(['ClusterRole', 'Role', 'RoleBinding']);
});

test('without the permission it gives up after some refusals, and after the signal at once', async () => {
  const server = await serverWithAll();
  expect(await removed(refusing(server, { ClusterRoleBinding: Array.from({ length: 9 }, () => 403) }))).toHaveLength(5);
  expect(await removed(server, AbortSignal.abort())).toEqual([]);
  expect(await left(server)).toContain('RoleBinding');
});
