/** The mounts of an agent's container: the Secrets and PVCs of its Pod, below a folder in place of `/`. */
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Pod } from '../../../src/gen/kube.ts';
import type { HttpClient } from '../../../src/kube/http-client.ts';
import { persistentVolumeClaims } from '../../../src/kube/resources.ts';
import { environment } from '../kubelet/pod-process.ts';
import { mountSecrets } from '../kubelet/pod-secrets.ts';
import { eventually } from './processes.ts';

/** How an agent ended. */
export interface Ended {
  readonly exitCode: number;
  readonly message?: string;
}

/** A kubelet keeps this much of a termination message; a status written directly to the API server is not limited. */
const KEPT_BYTES = 4_096;

export interface Place {
  readonly env: NodeJS.ProcessEnv;
  /** What it left, when it has ended with this exit code. */
  readonly ended: (exitCode: number) => Ended;
}

/** The files of a PVC, as long as it exists. */
export const claimFolder = (folder: string, claim: { readonly metadata: { readonly uid?: string } }): string =>
  join(folder, 'volumes', claim.metadata.uid ?? '');

/** Of the Pod's first container. */
export async function placeOf(
  client: HttpClient,
  folder: string,
  pod: Pod,
  name: string,
  over: () => boolean,
): Promise<Place> {
  const place = join(folder, 'agents', pod.metadata.uid ?? '', name);
  rmSync(place, { recursive: true, force: true });
  const mounts = { ...(await mountSecrets(client, folder, pod, over)), ...(await claims(client, folder, pod)) };
  mkdirSync(place, { recursive: true });
  for (const [path, target] of Object.entries(mounts)) {
    mkdirSync(dirname(join(place, path)), { recursive: true });
    symlinkSync(target, join(place, path));
  }
  for (const { name, mountPath } of pod.spec?.containers[0]?.volumeMounts ?? [])
    if (pod.spec?.volumes?.find((volume) => volume.name === name)?.emptyDir)
      mkdirSync(join(place, mountPath), { recursive: true });
  const result = join(place, 'termination-log');
  return {
    env: { ...process.env, ...environment(pod, ''), AGENT_ROOT: place, AGENT_RESULT: result },
    ended: (exitCode) => {
      const text = existsSync(result) ? readFileSync(result).subarray(0, KEPT_BYTES).toString() : undefined;
      return { exitCode, ...(text !== undefined && { message: text }) };
    },
  };
}

/** The folder of each PVC, by the path in the container. */
async function claims(client: HttpClient, folder: string, pod: Pod): Promise<Readonly<Record<string, string>>> {
  const { namespace = '' } = pod.metadata;
  const found: Record<string, string> = {};
  for (const { name, persistentVolumeClaim: claim } of pod.spec?.volumes ?? []) {
    const path = pod.spec?.containers[0]?.volumeMounts?.find((mount) => mount.name === name)?.mountPath;
    if (!claim || path === undefined) continue;
    const ref = { namespace, name: claim.claimName };
    found[path] = claimFolder(
      folder,
      await eventually(`the PVC ${ref.name}`, () => client.get(persistentVolumeClaims, ref)),
    );
    mkdirSync(found[path], { recursive: true });
  }
  return found;
}
