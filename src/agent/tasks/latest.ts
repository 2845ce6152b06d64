/** The newest whole snapshots in and below a folder of a store, by their manifests: on the worst day, no user knows a key. */
import { slotOf } from '../../api/names.ts';
import type { FailureReason } from '../../domain/agent-result.ts';
import { MANIFEST, type RestoreTask } from '../../domain/agent-task.ts';
import { AgentFailure, misconfigured } from '../failure.ts';
import { type Manifest, readManifest } from '../format/manifest.ts';
import { inParallel } from './in-parallel.ts';
import type { Wanted } from './open-snapshot.ts';
import { WIDTH } from './stored-history.ts';

/** Failures of one snapshot: an older one may be whole. */
const DAMAGED: readonly FailureReason[] = ['SnapshotDamaged', 'ManifestDamaged', 'ObjectNotFound'];
export const isDamaged = (error: unknown): error is AgentFailure =>
  error instanceof AgentFailure && DAMAGED.includes(error.reason);

interface Whole {
  readonly key: string;
  readonly takenAt: number;
  /** `namespace/name` */
  readonly cluster: string;
}

const log = (line: string): void => void process.stderr.write(`${line}\n`);

/** By the operator's clock, which has set the minute in the name, where that is later. A date that does not exist must not spoil the order. */
const timeOf = ({ takenAt, schedule, snapshot }: Manifest): number =>
  Math.max(Date.parse(takenAt) || 0, slotOf(schedule?.name ?? '', snapshot.name) ?? 0);

/** The keys, the newest first. `wanted.key` is the folder. */
export async function newestFirst(
  { store, key: folder, keys, signal }: Wanted,
  { cluster: asked }: NonNullable<RestoreTask['latest']>,
): Promise<readonly string[]> {
  const sizes = new Map<string, number>();
  for await (const { key, size } of store.list(folder === '' ? '' : `${folder}/`)) {
    signal.throwIfAborted();
    sizes.set(key, size);
  }
  const described = [...sizes.keys()].flatMap((key) =>
    key.endsWith(MANIFEST) ? [key.slice(0, -MANIFEST.length)] : [],
  );
  const wholeAt = async (key: string): Promise<readonly Whole[]> => {
    try {
      const manifest = await readManifest(store, key, signal, keys?.all);
      const isWhole = manifest.object.sizeBytes === sizes.get(key);
      if (isWhole && (!keys || manifest.authentic))
        return [{ key, takenAt: timeOf(manifest), cluster: `${manifest.snapshot.namespace}/${manifest.cluster.name}` }];
      log(
        `passed over: ${store.uri(key)} ${isWhole ? 'is not authenticated with a key of the Secret' : 'is not whole'}`,
      );
    } catch (error) {
      if (!isDamaged(error)) throw error;
      log(`passed over: ${error.message}`);
    }
    return [];
  };
  const isAsked = ({ cluster }: Whole): boolean =>
    asked === undefined || cluster === asked || cluster.endsWith(`/${asked}`);
  const found = (await inParallel(described, WIDTH, wholeAt)).flat().filter(isAsked);
  const clusters = [...new Set(found.map(({ cluster }) => cluster))].sort();
  if (clusters.length > 1)
    throw misconfigured(
      `${store.uri(folder)} has snapshots of several clusters: set source.latest.cluster to one of ${clusters.slice(0, 10).join(', ')}, or name its folder`,
    );
  if (found.length === 0)
    throw new AgentFailure(
      'ObjectNotFound',
      `${store.uri(folder)} has no whole snapshot${asked === undefined ? '' : ` of cluster ${asked}`} with a manifest: check the folder`,
    );
  return found.toSorted((a, b) => b.takenAt - a.takenAt).map(({ key }) => key);
}
