/** What an agent says that it has stored. It comes from a Pod in somebody's namespace: what it does not prove is not repeated. */

import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { Artifact, EtcdSnapshot, EtcdSnapshotSpec } from '../../api/etcd-snapshot.ts';
import type { Result } from '../../domain/agent-result.ts';
import { keyOf, MOUNTS, objectKey } from '../../domain/agent-task.ts';

export type Reported =
  | { readonly is: 'artifact'; readonly artifact: Artifact }
  | { readonly is: 'refused'; readonly why: string };

const refused = (why: string): Reported => ({ is: 'refused', why });

/** Where the object of this snapshot is, and nowhere else. */
function isAt({ destination, compression, encryption }: EtcdSnapshotSpec, name: string, uri: string): boolean {
  const { s3, gcs, azure } = destination;
  const stored = {
    compression: compression === 'Zstd' ? 'zstd' : 'none',
    encrypted: encryption !== undefined,
  } as const;
  const key = objectKey(keyOf(destination), name, stored);
  if (s3) return uri === `s3://${s3.bucket}/${key}`;
  if (gcs) return uri === `gs://${gcs.bucket}/${key}`;
  if (!azure) return uri === `file://${MOUNTS.volume}/${key}`;
  // In which account is perhaps said by a Secret, which only the agent reads.
  const url = URL.parse(uri);
  const path = `/${[azure.container, ...key.split('/')].map(encodeURIComponent).join('/')}`;
  return url !== null && uri === `${url.origin}${url.pathname}` && WEB.test(uri) && url.pathname.endsWith(path);
}

const WEB = /^https?:/;
const SHA256 = /^sha256:[0-9a-f]{64}$/;
/** What etcd and Kubernetes can be called. */
const WORD = /^[A-Za-z0-9][-A-Za-z0-9_.+]{0,127}$/;
const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$/;

const isMoment = (text: string): boolean => MOMENT.test(text) && !Number.isNaN(Date.parse(text));

export function artifactOf(
  { metadata: { name = '' }, spec }: EtcdSnapshot,
  cluster: EtcdCluster | undefined,
  result: Result | undefined,
): Reported {
  if (!result) return refused('it is not what an agent writes');
  if (!result.ok || result.task !== 'snapshot') return refused('it is not about a snapshot that was stored');
  const { artifact } = result;
  if (!isAt(spec, name, artifact.uri)) return refused('it names another place than the destination');
  if (!SHA256.test(artifact.checksum ?? '')) return refused('its checksum is none');
  if ((artifact.sizeBytes ?? 0) < 1 || (artifact.databaseBytes ?? 1) < 1) return refused('it has no size');
  const { etcdVersion, member, clusterID, takenAt } = artifact;
  const words = [etcdVersion, member, clusterID, artifact.compression].filter((text) => text !== undefined);
  if (!words.every((text) => WORD.test(text))) return refused('it has a name that nothing is called');
  if (takenAt !== undefined && !isMoment(takenAt)) return refused('the time that it names is none');
  const known = cluster?.status?.clusterID;
  if (clusterID !== undefined && known !== undefined && clusterID !== known)
    return refused(`it is of the etcd cluster ${clusterID}, and this one is ${known}`);
  return { is: 'artifact', artifact: knownParts(artifact) };
}

/** What else an agent may have written stays out of the status. */
function knownParts(told: Artifact): Artifact {
  const { uri, sizeBytes, checksum, databaseBytes, revision, totalKeys, etcdVersion, clusterID, member } = told;
  const { compression, encrypted, takenAt, durationMilliseconds } = told;
  const parts = { sizeBytes, checksum, databaseBytes, revision, totalKeys, etcdVersion, clusterID, member };
  const more = { compression, encrypted, takenAt, durationMilliseconds };
  const said = Object.entries({ ...parts, ...more }).filter(([, value]) => value !== undefined);
  return { uri, ...Object.fromEntries(said) };
}
