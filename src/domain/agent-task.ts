/** An agent's task, in an environment variable of its container. Nothing in it is secret: Secrets are mounted as files. */
import type { EtcdSnapshotSpec } from '../api/etcd-snapshot.ts';
import type { Retention } from '../api/etcd-snapshot-schedule.ts';
import type { SnapshotLocation } from '../api/snapshot-location.ts';
import { present } from '../lib/present.ts';

/** The variable with the task as JSON. */
export const TASK_VARIABLE = 'AGENT_TASK';
/** The variable with the hosts that the administrator allows, as JSON; absent: all. */
export const STORE_ENDPOINTS_VARIABLE = 'AGENT_STORE_ENDPOINTS';
/**
 * `new` until the member has bootstrapped its cluster, as in etcd's --initial-cluster-state, which reads it too. The kubelet
 * resolves it at every container start: init containers run again after a node restart.
 */
export const STATE_VARIABLE = 'INITIAL_CLUSTER_STATE';
/** The agent writes its result here: the kubelet puts up to 4096 bytes of it into the Pod's status. */
export const RESULT_FILE = '/dev/termination-log';

/** The sub-command with which Jobs of the Go operator's tools start the operator's program. */
export const SNAPSHOT_AGENT = 'snapshot-agent';

/** Mount paths in an agent's container. */
export const MOUNTS = {
  /** The keys of the location's credentialsSecretRef. */
  credentials: '/agent/store',
  /** ca.crt of the location's caSecretRef. */
  storeCa: '/agent/store-ca',
  /** The key that encrypts, `key` or `passphrase`, and previous ones. */
  encryption: '/agent/encryption',
  /** ca.crt: the CA bundle that verifies the member. */
  etcdCa: '/agent/etcd-ca',
  /** tls.crt and tls.key: the client certificate. */
  etcdClient: '/agent/etcd-client',
  /** The file `password` of root. */
  etcdRoot: '/agent/etcd-root',
  /** A destination's volume. */
  volume: '/snapshot/data',
  /** A source's volume, read only. */
  source: '/restore/src',
  /** Node, the agent and what they need, for a container of the etcd image. */
  tools: '/tools',
  /** The second location: credentials, CA, and its volume, which a copy writes and a restore reads. */
  copyCredentials: '/agent/copy-store',
  copyCa: '/agent/copy-store-ca',
  copy: '/copy/data',
  /** Scratch space of a restore drill. */
  scratch: '/drill',
  /** Of a restore, for the downloaded file. */
  fetched: '/fetched',
  /** Of a snapshot, for what the store has not taken yet. */
  spool: '/spool',
} as const;

/** The volume at MOUNTS.fetched: a Pod that has it was made to be replaced once its cluster runs. */
export const FETCHED_VOLUME = 'fetched';

/** A bucket, container or volume, as an agent opens it; object keys are separate. */
export type Place =
  | {
      readonly kind: 's3';
      readonly endpoint: string;
      readonly bucket: string;
      readonly region: string;
      readonly forcePathStyle: boolean;
      readonly credentials: 'secret' | 'ambient';
      readonly ca: boolean;
      /** The public CAs are not trusted. */
      readonly caOnly?: boolean;
      readonly serverSideEncryption?: { readonly algorithm: 'AES256' | 'aws:kms'; readonly kmsKeyId?: string };
      readonly checksums: 'whenRequired' | 'whenSupported';
    }
  | {
      readonly kind: 'gcs';
      readonly bucket: string;
      readonly endpoint?: string;
      readonly credentials: 'secret' | 'ambient';
      readonly ca?: boolean;
      readonly caOnly?: boolean;
    }
  | {
      readonly kind: 'azure';
      readonly container: string;
      readonly account?: string;
      readonly endpoint?: string;
      readonly credentials: 'secret' | 'ambient';
      readonly ca?: boolean;
      readonly caOnly?: boolean;
    }
  | { readonly kind: 'pvc'; readonly root: string };

interface Named {
  readonly name: string;
  readonly uid: string;
}

/** How a snapshot is stored. */
export interface StoredForm {
  readonly compression: 'none' | 'zstd';
  readonly encrypted: boolean;
}

/** A member, and how it is dialled. */
interface Source {
  readonly member: string;
  readonly endpoint: string;
  /** The name in the member's certificate, and whether to send a client certificate; absent without TLS. */
  readonly tls?: { readonly serverName: string; readonly client: boolean };
  /** Authenticate as root with the mounted password. */
  readonly auth: boolean;
}

export interface SnapshotTask extends StoredForm {
  readonly task: 'snapshot';
  readonly snapshot: Named & { readonly namespace: string };
  readonly cluster: Named;
  readonly schedule?: Named;
  readonly from: Source;
  /** Each is asked when the one before it fails. */
  readonly others?: readonly Source[];
  /** How much of the node's disk may hold what the store has not taken yet. */
  readonly spoolBytes?: number;
  readonly to: Place;
  /** The key prefix: empty, or a path without a trailing slash. */
  readonly prefix: string;
  /** Below the prefix, as spec.layout asks for; absent: none. */
  readonly folder?: string;
  readonly deadlineSeconds: number;
}

export interface RestoreTask {
  readonly task: 'restore';
  readonly from: Place;
  /** Exactly this object; with `latest`, the folder. */
  readonly key: string;
  /** The newest snapshot in and below the folder, of this cluster if it is named. */
  readonly latest?: { readonly cluster?: string };
  readonly encrypted: boolean;
  readonly dataDir: string;
  /** The same object at a second location, opened with the Secrets of that: for when the first cannot be read. */
  readonly copy?: { readonly from: Place; readonly key: string };
  /** A folder on the node for the downloaded file: beside it, the data volume needs no room for a second copy. */
  readonly scratch?: string;
  readonly member: string;
  readonly initialCluster: string;
  readonly token: string;
  readonly peerURL: string;
  readonly bumpRevision: number;
  /** The version of etcd that is to serve the data. */
  readonly version: string;
  /** The cluster's spec enables auth. */
  readonly auth: boolean;
  /** Of the stored object, in hexadecimal. */
  readonly sha256?: string;
  /** Auth is disabled in the restored data, so that the operator enables it with a new root. */
  readonly resetRootPassword?: boolean;
}

export interface DrillTask extends Pick<RestoreTask, 'from' | 'key' | 'encrypted' | 'version' | 'bumpRevision'> {
  readonly task: 'drill';
  /** Of the scratch volume. */
  readonly limitBytes?: number;
}

export interface PruneTask {
  readonly task: 'prune';
  readonly at: Place;
  readonly prefix: string;
  readonly cluster: Named;
  readonly schedule: Named;
  /** New snapshots are encrypted: their manifests are authenticated with the mounted key. */
  readonly encrypted?: boolean;
  readonly retention: Retention;
  /** The newest snapshot that a drill restored: kept whatever the retention is. The uid is not always known. */
  readonly restored?: { readonly name: string; readonly uid?: string };
  /** The newest stored snapshots as the operator has recorded them: a later or different manifest may be forged. */
  readonly recorded?: readonly { readonly name: string; readonly uid?: string; readonly sha256: string }[];
  /** After this minute each snapshot is among them. Absent: after the first of them. Those that a drill proved are recorded for longer. */
  readonly allRecordedFrom?: number;
  /** Snapshots that a scrub found damaged: none of them counts as a good copy. */
  readonly damaged?: readonly Scrubbed[];
  /** Milliseconds since 1970, by the operator's clock. */
  readonly now: number;
}

interface Scrubbed {
  readonly name: string;
  /** Of the EtcdSnapshot, where it is known. */
  readonly uid?: string;
}

/** Copies a stored snapshot and its manifest to a second location, as they are. */
export interface CopyTask {
  readonly task: 'copy';
  readonly from: Place;
  readonly key: string;
  /** Opened with the Secrets of the second location. */
  readonly to: Place;
  readonly toKey: string;
  /** Of the EtcdSnapshot. */
  readonly uid: string;
  /** Of its schedule: the retention of another one never deletes the copy. */
  readonly schedule?: string;
  /** Of the stored object, in hexadecimal. */
  readonly sha256: string;
}

/** Whether snapshots can be stored at a location: writes, reads, lists and deletes an object of its own. */
export interface ProbeTask extends Pick<PruneTask, 'at' | 'prefix' | 'schedule' | 'encrypted'> {
  readonly task: 'probe';
}

/** Reads one stored snapshot of the schedule from end to end: the one that was not verified for the longest time. */
export interface ScrubTask
  extends Pick<
    PruneTask,
    'at' | 'prefix' | 'cluster' | 'schedule' | 'encrypted' | 'recorded' | 'allRecordedFrom' | 'damaged' | 'now'
  > {
  readonly task: 'scrub';
  /** The newest snapshot that was stored there, which the retention never deletes. */
  readonly newest?: { readonly name: string; readonly uid: string; readonly key: string };
  /** When earlier scrubs and drills ended, in milliseconds since 1970. A snapshot without one was verified when it was taken. */
  readonly verified: readonly (Scrubbed & { readonly time: number })[];
  readonly bytesPerSecond: number;
}

/** Reads whether the store has the snapshot of this uid. The result is that of a snapshot task. */
export interface LookupTask extends Pick<RestoreTask, 'key' | 'encrypted'> {
  readonly task: 'lookup';
  /** Of the EtcdSnapshot. */
  readonly uid: string;
  readonly at: Place;
  /** An earlier operator wrote no manifest: its snapshot is whole if etcd's own digest at its end matches. */
  readonly withoutManifest?: boolean;
}

export interface InstallTask {
  readonly task: 'install-tools';
}

export type Task =
  | SnapshotTask
  | LookupTask
  | RestoreTask
  | DrillTask
  | PruneTask
  | ScrubTask
  | ProbeTask
  | CopyTask
  | InstallTask;
export type TaskName = Task['task'];

const caOnly = ({ caMode }: { readonly caMode?: string }) => (caMode === 'Replace' ? { caOnly: true } : {});

/** The place of a location; `volume` is the mount path of its PVC. */
export function placeOf(location: SnapshotLocation, volume: string): Place {
  const { s3, gcs, azure } = location;
  const credentials = (ref: object | undefined) => (ref ? ('secret' as const) : ('ambient' as const));
  if (s3)
    return {
      kind: 's3',
      endpoint: s3.endpoint,
      bucket: s3.bucket,
      region: s3.region || 'us-east-1',
      forcePathStyle: s3.forcePathStyle ?? false,
      credentials: credentials(s3.credentialsSecretRef),
      ca: s3.caSecretRef !== undefined,
      ...caOnly(s3),
      ...present({ serverSideEncryption: s3.serverSideEncryption }),
      checksums: s3.checksums === 'WhenSupported' ? 'whenSupported' : 'whenRequired',
    };
  if (gcs)
    return {
      kind: 'gcs',
      bucket: gcs.bucket,
      ...present({ endpoint: gcs.endpoint }),
      credentials: credentials(gcs.credentialsSecretRef),
      ...(gcs.caSecretRef && { ca: true, ...caOnly(gcs) }),
    };
  if (azure)
    return {
      kind: 'azure',
      container: azure.container,
      ...present({ account: azure.account, endpoint: azure.endpoint }),
      credentials: credentials(azure.credentialsSecretRef),
      ...(azure.caSecretRef && { ca: true, ...caOnly(azure) }),
    };
  return { kind: 'pvc', root: volume };
}

/** The key of a location: a prefix, or the exact key of the object. */
export function keyOf({ s3, gcs, azure, pvc }: SnapshotLocation): string {
  const key = s3?.key ?? gcs?.key ?? azure?.key ?? pvc?.subPath ?? '';
  let end = key.length; // a regular expression for trailing slashes takes quadratic time
  while (key[end - 1] === '/') end--;
  return key.slice(0, end);
}

/** The folder that spec.layout asks for, below the key of the destination; empty: none. */
export const layoutFolder = (
  { layout, clusterRef }: Pick<EtcdSnapshotSpec, 'layout' | 'clusterRef'>,
  namespace: string,
): string => (layout === 'ByCluster' ? `${namespace}/${clusterRef.name}` : '');

/** Of a path; parts may be empty. */
export const joined = (...parts: readonly string[]): string => parts.filter((part) => part !== '').join('/');

/** The object of an EtcdSnapshot. */
export const objectKeyOf = (
  spec: EtcdSnapshotSpec,
  { namespace, name }: Readonly<Record<'namespace' | 'name', string>>,
) => objectKey(joined(keyOf(spec.destination), layoutFolder(spec, namespace)), name, storedFormOf(spec));

export const storedFormOf = ({ compression, encryption }: EtcdSnapshotSpec): StoredForm => ({
  compression: compression === 'Zstd' ? 'zstd' : 'none',
  encrypted: encryption !== undefined,
});

/** The object of a snapshot. */
export const objectKey = (prefix: string, snapshot: string, stored: StoredForm): string =>
  `${prefix === '' ? '' : `${prefix}/`}${snapshot}.db${stored.compression === 'zstd' ? '.zst' : ''}${stored.encrypted ? '.enc' : ''}`;

export const MANIFEST = '.manifest.json';
export const manifestKey = (object: string): string => `${object}${MANIFEST}`;
