/** How fast the database grows, by the sizes that its snapshots had. */
import { time } from './backups.ts';
import type { ClusterFacts } from './facts.ts';

const DAY_MS = 86_400_000;
/** Older ones are of another time. */
const RECENT_MS = 30 * DAY_MS;

/** In bytes a day; negative when it shrinks. Without two snapshots a day apart: unknown. */
export function growthPerDay({ snapshots, now, cluster }: ClusterFacts): number | undefined {
  const sizes = snapshots
    .flatMap(({ status }) => {
      const { takenAt, databaseBytes, clusterID } = status?.artifact ?? {};
      const at = time(takenAt);
      // A cluster of the same name may have been deleted.
      const isOwn = clusterID === undefined || clusterID === cluster.status?.clusterID;
      return at === undefined || databaseBytes === undefined || !isOwn || now - at > RECENT_MS
        ? []
        : [{ at, bytes: databaseBytes }];
    })
    .toSorted((a, b) => a.at - b.at);
  const [first, last] = [sizes[0], sizes.at(-1)];
  if (!first || !last || last.at - first.at < DAY_MS) return undefined;
  return ((last.bytes - first.bytes) * DAY_MS) / (last.at - first.at);
}
