/** Validates the artifact that an agent reports. It comes from a Pod in a user's namespace: unproven values stay out of the status. */

import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { Artifact, EtcdSnapshot } from '../../api/etcd-snapshot.ts';
import type { Result } from '../../domain/agent-result.ts';
import { MOUNTS, objectKeyOf } from '../../domain/agent-task.ts';
import { identity } from '../../domain/ownership.ts';
import { present } from '../../lib/present.ts';

export type Reported =
  | { readonly is: 'artifact'; readonly artifact: Artifact }
  | { readonly is: 'refused'; readonly message: string };

const refused = (message: string): Reported => ({ is: 'refused', message });

/** Whether the URI is exactly that of this snapshot's object. */
export function isAt({ spec, ...object }: EtcdSnapshot, uri: string, volume: string = MOUNTS.volume): boolean {
  const { s3, gcs, azure } = spec.destination;
  const key = objectKeyOf(spec, identity(object));
  if (s3) return uri === `s3://${s3.bucket}/${key}`;
  if (gcs) return uri === `gs://${gcs.bucket}/${key}`;
  if (!azure) return uri === `file://${volume}/${key}`;
  // The storage account may be in a Secret that only the agent reads.
  const url = URL.parse(uri);
  const path = `/${[azure.container, ...key.split('/')].map(encodeURIComponent).join('/')}`;
  return url !== null && uri === `${url.origin}${url.pathname}` && WEB.test(uri) && url.pathname.endsWith(path);
}

const WEB = /^https?:/;
const SHA256 = /^sha256:[0-9a-f]{64}$/;
/** Names and versions of etcd and Kubernetes. */
const WORD = /^[A-Za-z0-9][-A-Za-z0-9_.+]{0,127}$/;
const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$/;

const isMoment = (text: string): boolean => MOMENT.test(text) && !Number.isNaN(Date.parse(text));

export function artifactOf(
  snapshot: EtcdSnapshot,
  cluster: EtcdCluster | undefined,
  result: Result | undefined,
): Reported {
  if (!result) return refused('it is not an agent result');
  if (!result.ok || result.task !== 'snapshot') return refused('it is not the result of a stored snapshot');
  const { artifact } = result;
  if (!isAt(snapshot, artifact.uri)) return refused('its URI is not in the destination');
  if (!SHA256.test(artifact.checksum ?? '')) return refused('its checksum is not a SHA-256');
  if ((artifact.sizeBytes ?? 0) < 1 || (artifact.databaseBytes ?? 1) < 1) return refused('its size is missing or zero');
  const { etcdVersion, member, clusterID, takenAt } = artifact;
  const words = [etcdVersion, member, clusterID, artifact.compression].filter((text) => text !== undefined);
  if (!words.every((text) => WORD.test(text))) return refused('it contains an invalid name or version');
  if (takenAt !== undefined && !isMoment(takenAt)) return refused('its time is invalid');
  const known = cluster?.status?.clusterID;
  if (clusterID !== undefined && known !== undefined && clusterID !== known)
    return refused(`it is of etcd cluster ID ${clusterID}, but this cluster has ${known}`);
  return { is: 'artifact', artifact: knownParts(artifact) };
}

/** Unknown fields of the agent stay out of the status. */
function knownParts(reported: Artifact): Artifact {
  const { uri, sizeBytes, checksum, databaseBytes, revision, totalKeys, etcdVersion, clusterID, member } = reported;
  const { compression, encrypted, takenAt, durationMilliseconds } = reported;
  return {
    uri,
    ...present({ sizeBytes, checksum, databaseBytes, revision, totalKeys, etcdVersion, clusterID, member }),
    ...present({ compression, encrypted, takenAt, durationMilliseconds }),
  };
}
