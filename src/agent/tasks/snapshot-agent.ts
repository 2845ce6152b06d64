/**
 * `/manager snapshot-agent`: the contract of the Go operator's snapshot Jobs, which etcd-migrate also makes, with the image of the
 * operator that it finds. Everything is in the environment, and the result is one line of the log.
 */
import { readFile } from 'node:fs/promises';
import type { SnapshotResult } from '../../domain/agent-result.ts';
import { MOUNTS, type Place, type SnapshotTask } from '../../domain/agent-task.ts';
import { misconfigured } from '../failure.ts';
import { provideSecret } from '../secrets.ts';
import { snapshot } from './snapshot.ts';

type Env = Readonly<Record<string, string | undefined>>;

/** As in the Go operator. */
const DEADLINE_SECONDS = 25 * 60;
/** The Job does not state what its EtcdCluster is. */
const UNKNOWN = 'unknown';

const needed = (env: Env, name: string): string => {
  const value = env[name] ?? '';
  if (value === '') throw misconfigured(`${name} is not set: snapshot-agent is started by Jobs that state it`);
  return value;
};
const withoutSlashes = (path: string): string => path.replace(/^\/+|\/+$/g, '');

function placeIn(env: Env): { readonly to: Place; readonly prefix: string } {
  const kind = env['SNAPSHOT_DEST_KIND'];
  if (kind === 'pvc')
    return {
      to: { kind, root: env['PVC_MOUNT_PATH'] || MOUNTS.volume },
      prefix: withoutSlashes(env['PVC_SUBPATH'] ?? ''),
    };
  if (kind !== 's3') throw misconfigured(`SNAPSHOT_DEST_KIND is ${JSON.stringify(kind)}: it must be s3 or pvc`);
  const to: Place = {
    kind,
    endpoint: needed(env, 'S3_ENDPOINT'),
    bucket: needed(env, 'S3_BUCKET'),
    region: env['S3_REGION'] || 'us-east-1',
    forcePathStyle: env['S3_FORCE_PATH_STYLE'] === 'true',
    credentials: 'secret',
    ca: false,
    checksums: 'whenRequired',
  };
  return { to, prefix: withoutSlashes(env['S3_KEY'] ?? '') };
}

function taskIn(env: Env): SnapshotTask {
  const [first = '', ...rest] = needed(env, 'ETCD_ENDPOINTS').split(',');
  const [client, auth] = [(env['ETCD_TLS_CERT_PATH'] ?? '') !== '', (env['ETCD_PASSWORD'] ?? '') !== ''];
  const sourceAt = (endpoint: string): SnapshotTask['from'] => {
    const url = URL.parse(endpoint);
    if (!url) throw misconfigured(`ETCD_ENDPOINTS has ${JSON.stringify(endpoint)}, which is not a URL`);
    const isSecure = url.protocol === 'https:';
    return { member: url.hostname, endpoint, ...(isSecure && { tls: { serverName: url.hostname, client } }), auth };
  };
  const from = sourceAt(first);
  const [service = '', namespace] = from.member.split('.');
  const name = needed(env, 'SNAPSHOT_NAME');
  return {
    task: 'snapshot',
    snapshot: { namespace: namespace ?? UNKNOWN, name, uid: needed(env, 'SNAPSHOT_UID') },
    cluster: { name: service.replace(/-client$/, ''), uid: UNKNOWN },
    from,
    ...(rest.length > 0 && { others: rest.map(sourceAt) }),
    ...placeIn(env),
    compression: 'none',
    encrypted: false,
    deadlineSeconds: DEADLINE_SECONDS,
  };
}

/** From where the old contract has them to where a task reads them. */
async function provideSecrets(env: Env): Promise<void> {
  const files = [
    [MOUNTS.etcdCa, 'ca.crt', env['ETCD_TLS_CA_PATH']],
    [MOUNTS.etcdClient, 'tls.crt', env['ETCD_TLS_CERT_PATH']],
    [MOUNTS.etcdClient, 'tls.key', env['ETCD_TLS_KEY_PATH']],
  ] as const;
  for (const [mount, key, path] of files) if (path) provideSecret(mount, key, await readFile(path));
  const values = [
    [MOUNTS.etcdRoot, 'password', env['ETCD_PASSWORD']],
    [MOUNTS.credentials, 'AWS_ACCESS_KEY_ID', env['AWS_ACCESS_KEY_ID']],
    [MOUNTS.credentials, 'AWS_SECRET_ACCESS_KEY', env['AWS_SECRET_ACCESS_KEY']],
  ] as const;
  for (const [mount, key, value] of values) if (value) provideSecret(mount, key, Buffer.from(value));
}

export async function snapshotAgent(env: Env, signal: AbortSignal): Promise<SnapshotResult> {
  const user = env['ETCD_USERNAME'] ?? '';
  if (user !== '' && user !== 'root') throw misconfigured(`ETCD_USERNAME is ${JSON.stringify(user)}: it must be root`);
  await provideSecrets(env);
  return snapshot(taskIn(env), signal);
}

/** What the Go operator looks for in the log. */
export const markerOf = ({ artifact: { uri, sizeBytes, checksum } }: SnapshotResult): string =>
  `snapshot uploaded: uri="${uri}" size=${sizeBytes} sha256=${checksum?.replace(/^sha256:/, '')}`;
