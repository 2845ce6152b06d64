/** The contents of a report: objects, logs, and what the other commands show. Only redacted text leaves this file. */

import { passwordSecrets } from '../../access/evaluate/root-password.ts';
import { textOf } from '../../access/evaluate/secret-set.ts';
import { clusterSelector } from '../../api/names.ts';
import { certificatesOf, writtenFor } from '../../domain/certificate-requirements.ts';
import type { Pod, Secret } from '../../gen/kube.ts';
import { listAll } from '../../kube/client.ts';
import type { KubeObject } from '../../kube/object.ts';
import { podLog } from '../../kube/pod-log.ts';
import { persistentVolumeClaims, pods, secrets, services } from '../../kube/resources.ts';
import type { ArchiveFile } from '../archive.ts';
import { diagnose } from '../assess/diagnosis.ts';
import type { ClusterFacts, Unread } from '../assess/facts.ts';
import { redactObject, redactText, secretForms } from '../assess/redact.ts';
import { reportOn } from '../assess/report.ts';
import type { Context } from '../context.ts';
import { structured } from '../output.ts';
import { clusterScreen } from '../render/cluster.ts';
import { diagnosisText } from '../render/diagnosis.ts';
import { explain } from './access-error.ts';
import { OPERATOR } from './logs.ts';
import { gatherMetrics } from './metrics.ts';

const LOG_LINES = 5_000;
const LOG_MS = 30_000;
const PAPER = { colour: false, width: 120 };

type Write = (name: string, read: () => Promise<string>) => Promise<void>;

export async function gatherReport(context: Context, facts: ClusterFacts): Promise<readonly ArchiveFile[]> {
  const { read, unread } = await readSecrets(context, facts);
  const known = secretForms(read.flatMap(valuesIn));
  const files: ArchiveFile[] = [];
  const missing: string[] = [...facts.unread, ...unread].map(({ what, message }) => `${what}: ${message}`);
  const write: Write = async (name, content) => {
    try {
      files.push({ name, content: redactText(`${await content()}\n`, known) });
    } catch (error) {
      missing.push(`${name}: ${explain(error)}`);
    }
  };
  await writeViews(context, facts, write);
  await writeObjects(context, facts, read, write);
  await writeLogs(context, facts, write);
  const list = missing.length === 0 ? 'nothing' : missing.join('\n');
  return [...files, { name: 'not-included.txt', content: redactText(`${list}\n`, known) }];
}

/** Public, and in every log: without them, a user called root would be removed from all messages. */
const PUBLIC = ['username', 'ca.crt', 'tls.crt'];

const valuesIn = (secret: Secret): readonly string[] =>
  Object.keys(secret.data ?? {})
    .filter((key) => !PUBLIC.includes(key))
    .map((key) => textOf(secret, key));

async function writeViews(context: Context, facts: ClusterFacts, write: Write): Promise<void> {
  const report = reportOn(facts);
  const options = { wide: true, now: facts.now };
  await write('status.txt', () => Promise.resolve(clusterScreen(PAPER, report, options)));
  await write('status.json', () => structured('json', report));
  const metrics = await gatherMetrics(context, facts.members);
  await write('doctor.txt', () => Promise.resolve(diagnosisText(PAPER, 'Checks', diagnose(facts, metrics))));
}

async function writeObjects(
  { client }: Context,
  facts: ClusterFacts,
  read: readonly Secret[],
  write: Write,
): Promise<void> {
  const { namespace = '', name = '' } = facts.cluster.metadata;
  const selection = { namespace, selector: clusterSelector(name) };
  const yaml = (objects: readonly KubeObject[]): Promise<string> => structured('yaml', redactObject(objects));
  const present = <T>(object: T | undefined): readonly T[] => (object === undefined ? [] : [object]);
  await write('cluster.yaml', () => yaml([facts.cluster]));
  await write('members.yaml', () => yaml(facts.members.map(({ object }) => object)));
  await write('pods.yaml', () => yaml(facts.members.flatMap(({ pod }) => present(pod))));
  await write('snapshots.yaml', () => yaml([...facts.schedules, ...facts.snapshots]));
  await write('pdb.yaml', () => yaml(present(facts.pdb)));
  await write('events.yaml', () => yaml(facts.events));
  await write('secrets.yaml', () => yaml(read));
  await write('volumes.yaml', async () => yaml(await listAll(client, persistentVolumeClaims, selection)));
  await write('services.yaml', async () => yaml(await listAll(client, services, selection)));
}

async function writeLogs(context: Context, facts: ClusterFacts, write: Write): Promise<void> {
  const own = facts.members.flatMap(({ pod }) => pod ?? []);
  for (const pod of own) {
    await write(`logs/${pod.metadata.name}.log`, () => logOf(context, pod, 'etcd', false));
    const restarts = pod.status?.containerStatuses?.find(({ name }) => name === 'etcd')?.restartCount ?? 0;
    if (restarts > 0) await write(`logs/${pod.metadata.name}.previous.log`, () => logOf(context, pod, 'etcd', true));
  }
  let operators: readonly Pod[] = [];
  await write('operator-pods.yaml', async () => {
    operators = await listAll(context.client, pods, { selector: OPERATOR });
    return structured('yaml', redactObject(operators));
  });
  for (const pod of operators)
    await write(`logs/operator-${pod.metadata.name}.log`, () => logOf(context, pod, undefined, false));
}

async function logOf(
  { client, signal }: Context,
  { metadata: { namespace = '', name = '' } }: Pod,
  container: string | undefined,
  previous: boolean,
): Promise<string> {
  const limited = AbortSignal.any([signal, AbortSignal.timeout(LOG_MS)]);
  const options = {
    ...(container && { container }),
    previous,
    tailLines: LOG_LINES,
    timestamps: true,
    signal: limited,
  };
  const lines: string[] = [];
  for await (const line of podLog(client.transport, { namespace, name }, options)) lines.push(line);
  return lines.join('\n');
}

/** Those that the cluster, its Pods and its backups name: their values are removed from every other file, too. */
async function readSecrets(
  { client }: Context,
  facts: ClusterFacts,
): Promise<{ readonly read: readonly Secret[]; readonly unread: readonly Unread[] }> {
  const unread: Unread[] = [];
  const { cluster, members, schedules, snapshots } = facts;
  const { namespace = '' } = cluster.metadata;
  const mounted = members.flatMap(({ pod }) =>
    (pod?.spec?.volumes ?? []).flatMap(({ secret, projected }) => [
      secret?.secretName,
      ...(projected?.sources ?? []).map((source) => source.secret?.name),
    ]),
  );
  const names = new Set(
    [
      ...certificatesOf(cluster).flatMap((need) => [need.secret, writtenFor(need)]),
      ...passwordSecrets(cluster),
      ...mounted,
      ...referenced([...schedules, ...snapshots]),
    ].flatMap((name) => name || []),
  );
  const read = await Promise.all(
    [...names].map((name) =>
      client.get(secrets, { namespace, name }).catch((error: unknown) => {
        const message = `${explain(error)}; its values are not recognised in other files`;
        unread.push({ what: `Secret ${name}`, message });
        return undefined;
      }),
    ),
  );
  const found = read.flatMap((secret) =>
    secret ? [{ ...secret, apiVersion: 'v1' as const, kind: 'Secret' as const }] : [],
  );
  return { read: found, unread };
}

/** Names under keys such as `credentialsSecretRef`. */
function referenced(value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.flatMap(referenced);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    const name = (inner as { readonly name?: unknown } | null)?.name;
    return /secret/i.test(key) && typeof name === 'string' ? [name] : referenced(inner);
  });
}
