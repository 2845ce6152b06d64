/** Secrets as files, as a kubelet mounts them: an update reaches a running Pod a little later, and all its files at once. */
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Pod } from '../../../src/gen/kube.ts';
import type { Client } from '../../../src/kube/client.ts';
import { secrets } from '../../../src/kube/resources.ts';
import { eventually, pause } from '../servers/processes.ts';

const SYNC_MS = 1_000;

/** The local folder, by the path inside the container. */
export type Mounts = Readonly<Record<string, string>>;

interface Volume {
  readonly path: string;
  /** Each with the keys that are projected; without keys, all. */
  readonly secrets: readonly { readonly name: string; readonly keys?: readonly string[] }[];
  readonly folder: string;
}

function volumesOf(pod: Pod, folder: string): readonly Volume[] {
  const mounts = pod.spec?.containers[0]?.volumeMounts ?? [];
  return (pod.spec?.volumes ?? []).flatMap(({ name, secret, projected }) => {
    const path = mounts.find((mount) => mount.name === name)?.mountPath;
    const secrets = [
      ...(secret?.secretName
        ? [{ name: secret.secretName, ...(secret.items && { keys: secret.items.map(({ key }) => key) }) }]
        : []),
      ...(projected?.sources ?? []).map(({ secret: source }) => ({
        name: source?.name ?? '',
        keys: (source?.items ?? []).map(({ key }) => key),
      })),
    ];
    if (secrets.length === 0 || path === undefined) return [];
    return [{ path, secrets, folder: join(folder, 'secrets', pod.metadata.uid ?? '', name) }];
  });
}

/** Resolves when all are mounted; a Pod waits for a Secret that does not exist. */
export async function mountSecrets(
  client: Pick<Client, 'get'>,
  folder: string,
  pod: Pod,
  over: () => boolean,
): Promise<Mounts> {
  const volumes = volumesOf(pod, folder);
  const seen = new Map<string, string>();
  const sync = async ({ secrets: sources, folder: target }: Volume): Promise<true | undefined> => {
    const { namespace = '' } = pod.metadata;
    const found = await Promise.all(sources.map(({ name }) => client.get(secrets, { namespace, name })));
    if (found.includes(undefined)) return undefined;
    const version = found.map((secret) => secret?.metadata.resourceVersion).join('-');
    const files = sources.flatMap(({ keys }, i) =>
      Object.entries(found[i]?.data ?? {}).filter(([key]) => keys === undefined || keys.includes(key)),
    );
    if (seen.get(target) !== version) put(target, version, Object.fromEntries(files));
    seen.set(target, version);
    return true;
  };
  for (const volume of volumes)
    await eventually(`the Secrets at ${volume.path}`, () => sync(volume), { timeoutMs: 600_000 });
  if (volumes.length > 0) void follow(volumes, sync, over);
  return Object.fromEntries(volumes.map(({ path, folder: target }) => [path, target]));
}

async function follow(
  volumes: readonly Volume[],
  sync: (volume: Volume) => Promise<unknown>,
  over: () => boolean,
): Promise<void> {
  while (!over()) {
    await pause(SYNC_MS);
    await Promise.all(volumes.map(sync)).catch(() => {}); // the server is unreachable, or the test is over
  }
}

function put(target: string, version: string, data: Readonly<Record<string, string>>): void {
  const fresh = `${target}.${version}`;
  mkdirSync(fresh, { recursive: true });
  for (const [name, value] of Object.entries(data)) writeFileSync(join(fresh, name), Buffer.from(value, 'base64'));
  symlinkSync(fresh, `${fresh}.link`);
  renameSync(`${fresh}.link`, target);
}
