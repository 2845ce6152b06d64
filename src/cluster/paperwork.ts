/** Carries out what a plan says about Secrets. Keys are made and read here only: no plan, and so no log, ever has one. */
import { type CertificateNeed, certificatesOf, namesOf } from '../api/certificates.ts';
import type { EtcdCluster } from '../api/etcd-cluster.ts';
import { holding } from '../api/ownership.ts';
import type { Credentials } from '../credentials/credentials.ts';
import { textOf } from '../credentials/judge.ts';
import type { Todo } from '../credentials/view.ts';
import type { Secret } from '../gen/kube.ts';
import type { Client } from '../kube/client.ts';
import { type Ref, refKey } from '../kube/object.ts';
import { secrets } from '../kube/resources.ts';
import type { Store } from '../kube/store.ts';
import { CA, CERT, KEY } from '../pki/examine.ts';
import type { Usage } from '../pki/findings.ts';
import { type Chance, createAuthority, issue, type KeyPair } from '../pki/issue.ts';
import { type Call, NotNow } from '../runtime/plan.ts';
import { secretOf } from './build.ts';

/** The target is the Secret that is written. */
export interface PaperCall extends Call {
  readonly name: Todo;
  readonly cluster: Ref & { readonly uid: string };
}

export const isPaperwork = (call: Call): call is PaperCall =>
  (['found', 'issue', 'copy', 'copyLeaf'] as const satisfies readonly Todo[] as readonly string[]).includes(call.name);

export interface PaperPorts {
  readonly client: Pick<Client, 'get' | 'create' | 'patch'>;
  readonly credentials: Credentials;
  readonly clusters: Store<EtcdCluster>;
  readonly now: () => number;
  readonly chance: Chance;
}

type Data = Readonly<Record<string, string>>;

export async function doPaperwork(ports: PaperPorts, call: PaperCall, signal: AbortSignal): Promise<void> {
  const cluster = ports.clusters.get(refKey(call.cluster));
  if (!cluster || cluster.metadata.uid !== call.cluster.uid) throw new NotNow('the cluster is gone');
  const current = await own(ports, cluster, call.target, signal);
  const data = await contents(ports, cluster, call, signal);
  try {
    await write(ports, secretOf(cluster, call.target, encoded(data)), current, signal);
  } finally {
    ports.credentials.forget(refKey(call.cluster));
  }
}

/** Looked at right before it is written: what belongs to somebody else is never touched. */
async function own(
  { client }: PaperPorts,
  cluster: EtcdCluster,
  name: string,
  signal: AbortSignal,
): Promise<Secret | undefined> {
  const { namespace = '', uid = '' } = cluster.metadata;
  const held = holding(await client.get(secrets, { namespace, name }, signal), uid);
  if (held.is === 'foreign') throw new NotNow(`Secret ${name} exists and belongs to ${held.owner}`);
  return held.is === 'ours' ? held.object : undefined;
}

async function contents(ports: PaperPorts, cluster: EtcdCluster, call: PaperCall, signal: AbortSignal): Promise<Data> {
  if (call.name === 'found') {
    const { cert, key } = await createAuthority(call.target, ports.now(), ports.chance);
    return { [CERT]: cert, [KEY]: key };
  }
  const need = certificatesOf(cluster).find((n) => (n.from === 'user' ? n.mount : n.secret) === call.target);
  if (!need) throw new NotNow(`Secret ${call.target} is not needed any more`);
  return need.from === 'operator'
    ? issued(ports, cluster, need, signal)
    : copied(ports, cluster, need, call.name === 'copyLeaf' ? [CERT, KEY] : [CERT, KEY, CA], signal);
}

const USAGES: Readonly<Record<CertificateNeed['role'], readonly Usage[]>> = {
  server: ['server auth', 'client auth'], // the gateway inside of etcd is a client that shows it
  peer: ['server auth', 'client auth'],
  operator: ['client auth'],
  application: ['client auth'],
};
const COMMON_NAMES: Readonly<Record<CertificateNeed['role'], string>> = {
  server: 'server',
  peer: 'peer',
  operator: 'operator-client',
  application: 'client',
};

async function issued(
  ports: PaperPorts,
  cluster: EtcdCluster,
  need: Extract<CertificateNeed, { readonly from: 'operator' }>,
  signal: AbortSignal,
): Promise<Data> {
  const secret = await own(ports, cluster, need.authority, signal);
  if (!secret) throw new NotNow(`Secret ${need.authority} with the authority is not there`);
  const authority: KeyPair = { cert: textOf(secret, CERT), key: textOf(secret, KEY) };
  const leaf = {
    name: `${cluster.metadata.name ?? ''}-${COMMON_NAMES[need.role]}`,
    hosts: namesOf(cluster, need.role, ports.credentials.domain).all,
    usages: USAGES[need.role],
    durationMs: need.durationMs,
  };
  // What a library says about a key that it cannot read is not for the log.
  const pair = await issue(authority, leaf, ports.now(), ports.chance).catch(() => {
    throw new NotNow(`the authority in Secret ${need.authority} cannot be read`);
  });
  return { [CERT]: pair.cert, [KEY]: pair.key, [CA]: authority.cert };
}

async function copied(
  ports: PaperPorts,
  cluster: EtcdCluster,
  need: CertificateNeed,
  keys: readonly string[],
  signal: AbortSignal,
): Promise<Data> {
  const { namespace = '' } = cluster.metadata;
  const source = await ports.client.get(secrets, { namespace, name: need.secret }, signal);
  const data = Object.fromEntries(keys.map((key) => [key, textOf(source, key)]));
  const empty = keys.find((key) => data[key] === '');
  if (empty !== undefined) throw new NotNow(`Secret ${need.secret} has no ${empty} any more`);
  return data;
}

const encoded = (data: Data): Data =>
  Object.fromEntries(Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString('base64')]));

async function write(
  { client }: PaperPorts,
  built: Secret,
  current: Secret | undefined,
  signal: AbortSignal,
): Promise<void> {
  if (!current) {
    await client.create(secrets, built, signal);
    return;
  }
  const { name = '', namespace = '', uid, resourceVersion } = current.metadata;
  const body = { metadata: { uid, resourceVersion }, data: built.data };
  await client.patch(secrets, { namespace, name }, body, { signal });
}
