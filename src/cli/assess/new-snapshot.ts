/** Where a new snapshot is stored: as a schedule stores its own, or where the flags name. */
import type { EtcdSnapshot, EtcdSnapshotSpec } from '../../api/etcd-snapshot.ts';
import type { EtcdSnapshotSchedule } from '../../api/etcd-snapshot-schedule.ts';
import { API_VERSION, MAX_SNAPSHOT_NAME } from '../../api/names.ts';
import type { SnapshotLocation } from '../../api/snapshot-location.ts';
import { present } from '../../lib/present.ts';

export interface DestinationFlags {
  readonly schedule?: string;
  /** `claim` or `claim/folder`. */
  readonly pvc?: string;
  /** `bucket` or `bucket/prefix`. */
  readonly s3?: string;
  readonly s3Endpoint?: string;
  readonly s3Region?: string;
  readonly s3Secret?: string;
  readonly s3PathStyle?: boolean;
}

type Stored = Pick<EtcdSnapshotSpec, 'destination' | 'layout' | 'compression' | 'encryption'>;
/** A sentence: what the user has to say. */
type Refusal = string;

const split = (text: string): readonly [string, string | undefined] => {
  const slash = text.indexOf('/');
  return slash < 0 ? [text, undefined] : [text.slice(0, slash), text.slice(slash + 1) || undefined];
};

function s3Location({ s3 = '', ...flags }: DestinationFlags): SnapshotLocation | Refusal {
  if (flags.s3Endpoint === undefined) return '--s3 needs --s3-endpoint, such as https://s3.eu-west-1.amazonaws.com';
  const [bucket, key] = split(s3);
  return {
    s3: {
      endpoint: flags.s3Endpoint,
      bucket,
      ...present({ key, region: flags.s3Region, forcePathStyle: flags.s3PathStyle }),
      ...(flags.s3Secret !== undefined && { credentialsSecretRef: { name: flags.s3Secret } }),
    },
  };
}

export function storedBy(
  flags: DestinationFlags,
  cluster: string,
  schedules: readonly EtcdSnapshotSchedule[],
): Stored | Refusal {
  const named = [flags.schedule, flags.pvc, flags.s3].filter((each) => each !== undefined).length;
  if (named > 1) return 'name one of --schedule, --pvc and --s3';
  if (flags.pvc !== undefined) {
    const [claimName, subPath] = split(flags.pvc);
    return { destination: { pvc: { claimName, ...present({ subPath }) } } };
  }
  if (flags.s3 !== undefined) {
    const location = s3Location(flags);
    return typeof location === 'string' ? location : { destination: location };
  }
  const own = schedules.filter(({ spec }) => spec.clusterRef.name === cluster);
  const names = own.map(({ metadata }) => metadata.name ?? '');
  const chosen =
    flags.schedule === undefined && own.length === 1
      ? own[0]
      : own.find(({ metadata }) => metadata.name === flags.schedule);
  if (chosen) {
    const { destination, layout, compression, encryption } = chosen.spec;
    return { destination, ...present({ layout, compression, encryption }) };
  }
  const hint = 'name where to store it with --pvc or --s3';
  if (flags.schedule !== undefined) return `${cluster} has no schedule ${flags.schedule}: ${hint}`;
  return names.length === 0
    ? `${cluster} has no schedule whose store could be used: ${hint}`
    : `${cluster} has the schedules ${names.join(', ')}: choose one with --schedule, or ${hint}`;
}

/** Two snapshots within a second get different names only from the user. */
export const newSnapshotName = (cluster: string, now: number): string => stamped(cluster, now, MAX_SNAPSHOT_NAME);

const MAX_NAME = 253;

/** `cluster-20260301120000`. */
export function stamped(cluster: string, now: number, longest = MAX_NAME): string {
  const second = new Date(now).toISOString().replace(/\D/g, '').slice(0, 14);
  return `${cluster.slice(0, longest - second.length - 1)}-${second}`;
}

export const newSnapshot = (namespace: string, name: string, cluster: string, stored: Stored): EtcdSnapshot => ({
  apiVersion: API_VERSION,
  kind: 'EtcdSnapshot',
  metadata: { name, namespace },
  spec: { clusterRef: { name: cluster }, ...stored },
});
