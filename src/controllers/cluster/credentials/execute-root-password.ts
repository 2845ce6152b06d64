/**
 * Carries out what a plan says about root. Passwords are read here only, at the moment when they are needed: no plan, and so no
 * log, ever has one. Each deed can be done again, and after each the password that etcd has is one that is kept.
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
import type { AuthPort } from '../../../etcd/auth.ts';
import type { Ask } from '../../../etcd/client.ts';
import type { EtcdErrorKind, Result } from '../../../etcd/errors.ts';
import { atAny } from '../../../etcd/failover.ts';
import type { Client } from '../../../kube/client.ts';
import { refKey } from '../../../kube/object.ts';
import type { Store } from '../../../kube/store.ts';
import { RetryLater } from '../../../runtime/plan.ts';
import { secretOf } from '../build.ts';
import type { RootPasswordCall, RootPasswordStep } from '../calls.ts';
import { unreadableNow } from './execute-managed-secrets.ts';
import { type Data, encoded, writeSecret } from './execute-write-secret.ts';

export interface RootPorts {
  readonly client: Pick<Client, 'get' | 'create' | 'patch'>;
  readonly credentials: Pick<SecretCache, 'access' | 'forget'>;
  readonly clusters: Store<EtcdCluster>;
  readonly etcd: {
    readonly auth: Pick<
      AuthPort,
      'deleteUser' | 'addUser' | 'grantRole' | 'rolesOf' | 'enable' | 'changePassword' | 'authenticate'
    >;
  };
}

interface Work {
  readonly ports: RootPorts;
  readonly cluster: EtcdCluster;
  readonly password: RootPassword;
  readonly signal: AbortSignal;
  /** Healthy voters, one after the other. */
  readonly tell: <T>(call: (auth: RootPorts['etcd']['auth'], ask: Ask) => Promise<Result<T>>) => Promise<Result<T>>;
}

export async function executeRootPasswordCall(
  ports: RootPorts,
  call: RootPasswordCall,
  signal: AbortSignal,
): Promise<void> {
  const cluster = ports.clusters.get(refKey(call.cluster));
  if (!cluster || cluster.metadata.uid !== call.cluster.uid) throw new RetryLater('the cluster is gone');
  const password = await read(ports, cluster, signal);
  const way = await ports.credentials.access(cluster, (endpoint) => call.hosts[endpoint]);
  if (!way.tls) throw new RetryLater('there is nobody to trust at the other end: no password is told'); // never in the clear
  const access = { ...way, logins: () => password.logins, clusterId: BigInt(`0x${call.clusterID}`) };
  const tell: Work['tell'] = (ask) =>
    atAny(call.endpoints, { timeoutMs: CHANGE_TIMEOUT_MS, signal, access }, { repeatable: true }, (one) =>
      ask(ports.etcd.auth, one),
    );
  await STEPS[call.name]({ ports, cluster, password, signal, tell });
}

const CHANGE_TIMEOUT_MS = 5_000;

async function read({ client }: RootPorts, cluster: EtcdCluster, signal: AbortSignal): Promise<RootPassword> {
  const { namespace = '' } = cluster.metadata;
  const held = await readSecrets(client, namespace, passwordSecrets(cluster), signal);
  if ('unread' in held) throw unreadableNow(held.unread);
  const password = rootPassword(cluster, held);
  if (!password) throw new RetryLater('nobody is to log in');
  if (password.view.problem?.reason === 'NameConflict') throw new RetryLater(password.view.problem.message);
  return password;
}

const STEPS: Readonly<Record<RootPasswordStep, (work: Work) => Promise<void>>> = {
  /** Before etcd hears of it: who is killed in between finds both passwords, and one of them is right. */
  intendPassword: async (work) => {
    const { given, kept, view } = work.password;
    if (kept.next !== undefined) return;
    if (given === undefined) throw new RetryLater(view.problem?.message ?? 'there is no password');
    await keep(work, { [NEXT]: given });
  },

  /** Whoever root is by now: one that was made without a password would never get one, and nobody can tell it from others. */
  makeRoot: async (work) => {
    const next = intended(work);
    done(await work.tell((auth, ask) => auth.deleteUser(ask, ROOT)), ['userUnknown']);
    done(await work.tell((auth, ask) => auth.addUser(ask, ROOT, next)));
    done(await work.tell((auth, ask) => auth.grantRole(ask, ROOT, ROOT)));
    const roles = await work.tell((auth, ask) => auth.rolesOf(ask, ROOT));
    done(roles);
    if (!roles.ok || !roles.value.includes(ROOT)) throw new RetryLater('root does not have the role root yet');
  },

  enableAuth: async (work) => done(await work.tell((auth, ask) => auth.enable(ask))),

  changePassword: async (work) => {
    const next = intended(work);
    done(await work.tell((auth, ask) => auth.changePassword(ask, ROOT, next)));
  },

  /** Only what etcd has accepted counts as the password: the one before is forgotten no earlier. */
  provePassword: async (work) => {
    const { given, kept } = work.password;
    const password = kept.next ?? given;
    if (password === undefined) throw new RetryLater('there is no password to prove');
    done(await work.tell((auth, ask) => auth.authenticate(ask, { user: ROOT, password })));
    await keep(work, { [PASSWORD]: password, [NEXT]: null });
  },
};

function intended({ password: { kept } }: Work): string {
  if (kept.next === undefined) throw new RetryLater('the password that was to be set is gone: it is looked at again');
  return kept.next;
}

function done(answer: Result<unknown>, already: readonly EtcdErrorKind[] = []): void {
  if (!answer.ok && !already.includes(answer.error.kind)) throw new RetryLater(`etcd refuses: ${answer.error.message}`);
}

/** Only over what was read: two operators that know nothing of each other must not lose a password between them. */
async function keep(
  { ports: { client, credentials }, cluster, password: { kept }, signal }: Work,
  text: Data,
): Promise<void> {
  const { namespace = '', name = '' } = cluster.metadata;
  try {
    await writeSecret(client, secretOf(cluster, keptPasswordName(name), encoded(text), 'Opaque'), kept.secret, {
      signal,
    });
  } finally {
    credentials.forget(refKey({ namespace, name }));
  }
}
