/** Carries out what a plan says about Secrets. Keys are made and read here only: no plan, and so no log, ever has one. */
import { type CertificateNeed, certificatesOf, namesOf, writtenFor } from '../api/certificates.ts';
import type { EtcdCluster } from '../api/etcd-cluster.ts';
import type { Credentials } from '../credentials/credentials.ts';
import { judge, type Secrets, textOf } from '../credentials/judge.ts';
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

/**
 * Between the decision and the deed somebody may have changed a Secret: it is judged again with what is there at this moment,
 * and so is what would be written. Nothing unexamined reaches members, and nothing is written that would be written again.
 */
export async function doPaperwork(ports: PaperPorts, call: PaperCall, signal: AbortSignal): Promise<void> {
  const cluster = ports.clusters.get(refKey(call.cluster));
  if (!cluster || cluster.metadata.uid !== call.cluster.uid) throw new NotNow('the cluster is gone');
  const need = certificatesOf(cluster).find((n) => writtenFor(n) === call.target);
  const held = await read(ports, cluster, need, call.target, signal);
  const current = held.get(call.target);
  const todo = (secrets: Secrets): Todo | undefined => todoOf(ports, cluster, secrets, call.target);
  try {
    if (todo(held) !== call.name) throw new NotNow(`Secret ${call.target} is not what it was: it is looked at again`);
    const built = secretOf(cluster, call.target, encoded(await contents(ports, cluster, call, need, held)));
    const after = { ...built, ...current, data: { ...current?.data, ...built.data } };
    if (todo(new Map([...held, [call.target, after]])) !== undefined)
      throw new NotNow(
        `Secret ${call.target} would be no better than before: the one that it is made from is of no use`,
      );
    await write(ports, built, current, signal);
  } finally {
    ports.credentials.forget(refKey(call.cluster));
  }
}

/** All that matters for the one that is written. */
async function read(
  { client }: PaperPorts,
  { metadata: { namespace = '' } }: EtcdCluster,
  need: CertificateNeed | undefined,
  target: string,
  signal: AbortSignal,
): Promise<Secrets> {
  const names = new Set([
    target,
    ...(need ? [need.secret] : []),
    ...(need?.from === 'operator' ? [need.authority] : []),
  ]);
  const get = async (name: string) => [name, await client.get(secrets, { namespace, name }, signal)] as const;
  return new Map(await Promise.all([...names].map(get)));
}

function todoOf(ports: PaperPorts, cluster: EtcdCluster, held: Secrets, target: string): Todo | undefined {
  const { view } = judge(cluster, held, { now: ports.now(), domain: ports.credentials.domain });
  const authority = view.authorities.find(({ secret }) => secret === target);
  return authority?.todo ?? view.certificates.find(({ need }) => writtenFor(need) === target)?.todo;
}

async function contents(
  ports: PaperPorts,
  cluster: EtcdCluster,
  call: PaperCall,
  need: CertificateNeed | undefined,
  held: Secrets,
): Promise<Data> {
  if (need?.from === 'operator') return issued(ports, cluster, need, held.get(need.authority));
  if (need) {
    const keys = call.name === 'copyLeaf' ? [CERT, KEY] : [CERT, KEY, CA];
    return Object.fromEntries(keys.map((key) => [key, textOf(held.get(need.secret), key)]));
  }
  const { cert, key } = await createAuthority(call.target, ports.now(), ports.chance);
  return { [CERT]: cert, [KEY]: key };
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
  signer: Secret | undefined,
): Promise<Data> {
  const authority: KeyPair = { cert: textOf(signer, CERT), key: textOf(signer, KEY) };
  const leaf = {
    name: `${cluster.metadata.name ?? ''}-${COMMON_NAMES[need.role]}`,
    hosts: namesOf(cluster, need.role, ports.credentials.domain).all,
    usages: USAGES[need.role],
    durationMs: need.durationMs,
  };
  // What a library says about a key that it cannot read is not for the log.
  const pair = await issue(authority, leaf, ports.now(), ports.chance).catch(() => {
    throw new NotNow(`the authority in Secret ${need.authority} cannot be used`);
  });
  return { [CERT]: pair.cert, [KEY]: pair.key, [CA]: authority.cert };
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
