/** Executes the Secret calls of a plan. Private keys are created and read only here, so no plan and no log ever contains one. */

import { NEXT_CERT, NEXT_KEY } from '../../../access/evaluate/ca.ts';
import { type Evaluation, evaluate, secretNames } from '../../../access/evaluate/evaluate.ts';
import { type Secrets, textOf } from '../../../access/evaluate/secret-set.ts';
import type { SecretAction } from '../../../access/evaluate/view.ts';
import { readAndEvaluate, readSecrets, type UnreadSecret } from '../../../access/read-secrets.ts';
import type { SecretCache } from '../../../access/secret-cache.ts';
import type { EtcdCluster } from '../../../api/etcd-cluster.ts';
import { type EtcdPortName, WRITTEN_AT_ANNOTATION } from '../../../api/names.ts';
import {
  type CertificateRequirement,
  certificatesOf,
  EXTENDED_USAGES,
  namesOf,
  portOf,
  writtenFor,
} from '../../../domain/certificate-requirements.ts';
import { holding } from '../../../domain/ownership.ts';
import type { Secret } from '../../../gen/kube.ts';
import type { Client } from '../../../kube/client.ts';
import { refKey } from '../../../kube/object.ts';
import { secrets } from '../../../kube/resources.ts';
import type { Store } from '../../../kube/store.ts';
import { iso } from '../../../lib/time.ts';
import { CA, CERT, KEY } from '../../../pki/examine.ts';
import { createCA, issue, type KeyPair, type KeySource } from '../../../pki/issue.ts';
import { RetryLater } from '../../../runtime/plan.ts';
import { secretOf } from '../build.ts';
import type { SecretCall } from './calls.ts';
import { type Data, encoded, type Unwritten, withoutNull, writeSecret } from './execute-write-secret.ts';

export interface SecretPorts {
  readonly client: Pick<Client, 'get' | 'create' | 'patch' | 'delete'>;
  readonly credentials: SecretCache;
  readonly clusters: Store<EtcdCluster>;
  readonly now: () => number;
  readonly entropy: KeySource;
}

/**
 * A user may have changed a Secret since the decision: the Secrets are read and evaluated again, before the write and with its result.
 * So no unverified certificate reaches members, and no write repeats itself for ever.
 */
export async function executeSecretCall(ports: SecretPorts, call: SecretCall, signal: AbortSignal): Promise<void> {
  const cluster = ports.clusters.get(refKey(call.cluster));
  if (!cluster || cluster.metadata.uid !== call.cluster.uid) throw new RetryLater('the cluster was deleted');
  try {
    if (call.name === 'deleteCABundle') return await deleteCABundle(ports, cluster, call.target, signal);
    const around = ports.credentials.around(cluster, ports.now());
    const names = [...new Set([call.target, ...secretNames(cluster, around.mounted, partFor(cluster, call.target))])];
    const read = await readAndEvaluate(ports.client, cluster, names, around, signal);
    if ('unread' in read) throw unreadableNow(read.unread);
    const { secrets: held, judged, pieces } = read;
    if (todoOf(judged, call.target) !== call.name)
      throw new RetryLater(`Secret ${call.target} has changed since it was read: it is evaluated again`);
    const current = held.get(call.target);
    const built = await builtFor({ ports, cluster, call, judged, held });
    const data = withoutNull({ ...current?.data, ...built.data });
    const after = { ...built, ...current, metadata: { ...built.metadata, ...current?.metadata }, data };
    const then = new Map([...held, [call.target, after]]);
    if (todoOf(await pieces.run(() => evaluate(cluster, then, around)), call.target) === call.name)
      throw new RetryLater(
        `Secret ${call.target} would not be valid after this write: check the Secret that it is made from`,
      );
    await writeSecret(ports.client, built, current, signal, built.metadata.annotations);
  } finally {
    ports.credentials.forget(refKey(call.cluster));
  }
}

/** The next reconcile reads it again, and reports what it finds. */
export const unreadableNow = ([first]: readonly UnreadSecret[]): RetryLater =>
  new RetryLater(`Secret ${first?.secret} cannot be read: ${first?.message}`);

/** Deletes a previous CA bundle that no Pod mounts any more. */
async function deleteCABundle(
  { client }: SecretPorts,
  { metadata: { namespace = '', uid = '' } }: EtcdCluster,
  name: string,
  signal: AbortSignal,
): Promise<void> {
  const read = await readSecrets(client, namespace, [name], signal);
  if ('unread' in read) throw unreadableNow(read.unread);
  const held = holding(read.get(name), uid);
  if (held.is === 'ours' && held.object.immutable === true)
    await client.delete(secrets, { namespace, name }, { uid: held.object.metadata.uid ?? '' }, signal);
}

const partFor = (cluster: EtcdCluster, target: string): EtcdPortName | undefined => {
  const need = certificatesOf(cluster).find(
    (n) => writtenFor(n) === target || (n.from === 'operator' && n.caSecret === target),
  );
  return need && portOf(need.role);
};

const todoOf = ({ view: { cas, bundles, certificates } }: Evaluation, target: string): SecretAction | undefined =>
  [...cas, ...bundles].find(({ secret }) => secret === target)?.todo ??
  certificates.find(({ need }) => writtenFor(need) === target)?.todo;

interface Write {
  readonly ports: SecretPorts;
  readonly cluster: EtcdCluster;
  readonly call: SecretCall;
  readonly judged: Evaluation;
  readonly held: Secrets;
}

async function builtFor(write: Write): Promise<Unwritten> {
  const { ports, cluster, call } = write;
  const data = await contents(write);
  const built = secretOf(cluster, call.target, encoded(data));
  if (call.name === 'writeCABundle') return { ...built, type: 'Opaque', immutable: true };
  // The grace period for clients starts at this time.
  const annotations = { ...built.metadata.annotations, [WRITTEN_AT_ANNOTATION]: iso(ports.now()) };
  return { ...built, metadata: { ...built.metadata, annotations } };
}

async function contents({ ports, cluster, call, judged, held }: Write): Promise<Data> {
  if (call.name === 'writeCABundle') return { [CA]: judged.bundles.get(call.target) ?? '' };
  const need = certificatesOf(cluster).find((n) => writtenFor(n) === call.target);
  if (!need) return caContents(ports, call, held.get(call.target));
  const trust = { [CA]: judged.given[portOf(need.role)] ?? '' };
  if (call.name === 'publishCABundle') return trust;
  if (need.from === 'operator') return { ...(await issued(ports, cluster, need, held.get(need.caSecret))), ...trust };
  return { [CERT]: textOf(held.get(need.secret), CERT), [KEY]: textOf(held.get(need.secret), KEY), ...trust };
}

async function caContents(
  ports: SecretPorts,
  { name, target }: SecretCall,
  current: Secret | undefined,
): Promise<Data> {
  if (name === 'promoteNextCA')
    return {
      [CERT]: textOf(current, NEXT_CERT),
      [KEY]: textOf(current, NEXT_KEY),
      [NEXT_CERT]: null,
      [NEXT_KEY]: null,
    };
  const { cert, key } = await createCA(target, ports.now(), ports.entropy);
  if (name === 'createCA') return { [CERT]: cert, [KEY]: key };
  // A Secret of type kubernetes.io/tls must have both keys, also when the CA is lost.
  const missing = current ? {} : { [CERT]: '', [KEY]: '' };
  return { ...missing, [NEXT_CERT]: cert, [NEXT_KEY]: key };
}

const COMMON_NAMES: Readonly<Record<CertificateRequirement['role'], string>> = {
  server: 'server',
  peer: 'peer',
  operator: 'operator-client',
  application: 'client',
};

async function issued(
  ports: SecretPorts,
  cluster: EtcdCluster,
  need: Extract<CertificateRequirement, { readonly from: 'operator' }>,
  signer: Secret | undefined,
): Promise<Data> {
  const ca: KeyPair = { cert: textOf(signer, CERT), key: textOf(signer, KEY) };
  const leaf = {
    name: `${cluster.metadata.name ?? ''}-${COMMON_NAMES[need.role]}`,
    hosts: namesOf(cluster, need.role, ports.credentials.domain).all,
    usages: EXTENDED_USAGES[need.role],
    durationMs: need.durationMs,
  };
  // The error of the library may quote the key: it must not reach the log.
  const pair = await issue(ca, leaf, ports.now(), ports.entropy).catch(() => {
    throw new RetryLater(`the CA in Secret ${need.caSecret} cannot sign certificates`);
  });
  return { [CERT]: pair.cert, [KEY]: pair.key };
}
