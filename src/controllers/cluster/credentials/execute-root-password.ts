/**
 * Executes the root password calls of a plan. Passwords are read only here, so no plan and no log ever contains one. Each call can be
 * repeated, and after each one the operator's copy has the password that etcd has.
 */

import {
  NEXT,
  PASSWORD,
  passwordSecrets,
  ROOT,
  type RootPassword,
  rootPassword,
} from '../../../access/evaluate/root-password.ts';
import { readSecrets } from '../../../access/read-secrets.ts';
import type { SecretCache } from '../../../access/secret-cache.ts';
import type { EtcdCluster } from '../../../api/etcd-cluster.ts';
import { keptPasswordName } from '../../../api/names.ts';
import { CHANGE_TIMEOUT_MS } from '../../../domain/timing.ts';
import type { AuthPort } from '../../../etcd/auth.ts';
import type { Ask } from '../../../etcd/client.ts';
import type { EtcdErrorKind, Result } from '../../../etcd/errors.ts';
import { atAny } from '../../../etcd/failover.ts';
import type { Client } from '../../../kube/client.ts';
import { refKey } from '../../../kube/object.ts';
import type { Store } from '../../../kube/store.ts';
import { RetryLater } from '../../../runtime/plan.ts';
import { secretOf } from '../build.ts';
import type { RootPasswordCall, RootPasswordStep } from './calls.ts';
import { unreadableNow } from './execute-managed-secrets.ts';
import { type Data, encoded, writeSecret } from './execute-write-secret.ts';

export interface RootPorts {
  readonly client: Pick<Client, 'get' | 'create' | 'patch'>;
  readonly credentials: Pick<SecretCache, 'access' | 'forget'>;
  readonly clusters: Store<EtcdCluster>;
  readonly etcd: { readonly auth: AuthPort };
}

interface Work {
  readonly ports: RootPorts;
  readonly cluster: EtcdCluster;
  readonly password: RootPassword;
  readonly signal: AbortSignal;
  /** Asks healthy voters, one after the other. */
  readonly send: <T>(call: (auth: AuthPort, ask: Ask) => Promise<Result<T>>) => Promise<Result<T>>;
}

export async function executeRootPasswordCall(
  ports: RootPorts,
  call: RootPasswordCall,
  signal: AbortSignal,
): Promise<void> {
  const cluster = ports.clusters.get(refKey(call.cluster));
  if (!cluster || cluster.metadata.uid !== call.cluster.uid) throw new RetryLater('the cluster was deleted');
  const password = await read(ports, cluster, signal);
  const way = await ports.credentials.access(cluster, (endpoint) => call.hosts[endpoint]);
  if (!way.tls) throw new RetryLater('there is no CA bundle to verify the members with: no password is sent'); // never in plaintext
  const access = { ...way, passwords: () => password.passwords, clusterId: BigInt(`0x${call.clusterID}`) };
  const send: Work['send'] = (ask) =>
    atAny(call.endpoints, { timeoutMs: CHANGE_TIMEOUT_MS, signal, access }, { repeatable: true }, (one) =>
      ask(ports.etcd.auth, one),
    );
  await STEPS[call.name]({ ports, cluster, password, signal, send });
}

async function read({ client }: RootPorts, cluster: EtcdCluster, signal: AbortSignal): Promise<RootPassword> {
  const { namespace = '' } = cluster.metadata;
  const held = await readSecrets(client, namespace, passwordSecrets(cluster), signal);
  if ('unread' in held) throw unreadableNow(held.unread);
  const password = rootPassword(cluster, held);
  if (!password) throw new RetryLater('auth is not enabled in the spec');
  if (password.view.problem?.reason === 'NameConflict') throw new RetryLater(password.view.problem.message);
  return password;
}

const STEPS: Readonly<Record<RootPasswordStep, (work: Work) => Promise<void>>> = {
  /** Before the request to etcd: an operator that is killed in between finds both passwords, and one of them is right. */
  intendPassword: async (work) => {
    const { given, kept, view } = work.password;
    if (kept.next !== undefined) return;
    if (given === undefined) throw new RetryLater(view.problem?.message ?? 'there is no password');
    await keep(work, { [NEXT]: given });
  },

  /** Deletes an existing user root first: one that was created without a password can never get one, and etcd does not report which it is. */
  makeRoot: async (work) => {
    const next = intended(work);
    done(await work.send((auth, ask) => auth.deleteUser(ask, ROOT)), ['userUnknown']);
    done(await work.send((auth, ask) => auth.addUser(ask, ROOT, next)));
    done(await work.send((auth, ask) => auth.grantRole(ask, ROOT, ROOT)));
    const roles = await work.send((auth, ask) => auth.rolesOf(ask, ROOT));
    done(roles);
    if (!roles.ok || !roles.value.includes(ROOT)) throw new RetryLater('root does not have the role root yet');
  },

  enableAuth: async (work) => done(await work.send((auth, ask) => auth.enable(ask))),

  changePassword: async (work) => {
    const next = intended(work);
    done(await work.send((auth, ask) => auth.changePassword(ask, ROOT, next)));
  },

  /** Only a password that etcd has accepted replaces the previous one in the copy. */
  provePassword: async (work) => {
    const { given, kept } = work.password;
    const password = kept.next ?? given;
    if (password === undefined) throw new RetryLater('there is no password to prove');
    done(await work.send((auth, ask) => auth.authenticate(ask, { user: ROOT, password })));
    await keep(work, { [PASSWORD]: password, [NEXT]: null });
  },
};

function intended({ password: { kept } }: Work): string {
  if (kept.next === undefined) throw new RetryLater('the next password is missing in the Secret: it is read again');
  return kept.next;
}

function done(answer: Result<unknown>, already: readonly EtcdErrorKind[] = []): void {
  if (!answer.ok && !already.includes(answer.error.kind)) throw new RetryLater(`etcd refuses: ${answer.error.message}`);
}

/** With the resourceVersion that was read: of two operators that run at once, neither may overwrite the password of the other. */
async function keep(
  { ports: { client, credentials }, cluster, password: { kept }, signal }: Work,
  text: Data,
): Promise<void> {
  const { namespace = '', name = '' } = cluster.metadata;
  try {
    const built = secretOf(cluster, keptPasswordName(name), encoded(text), 'Opaque');
    await writeSecret(client, built, kept.secret, signal);
  } finally {
    credentials.forget(refKey({ namespace, name }));
  }
}
