/** The way of a cluster to another version of etcd. */
import type { Blocked } from '../../domain/disruption.ts';
import { minorOf, pathRefused, versionPath } from '../../domain/version-path.ts';
import { versionNumber } from '../../lib/version.ts';
import type { ClusterFacts } from './facts.ts';
import { memberRows } from './members.ts';
import { isObstacle, rolloutOf } from './rollout.ts';

/** What the rules of the operator answer about a version. */
export interface VersionChecks {
  readonly found: readonly Blocked[];
  /** What could not be read: a check may be wrong for lack of it. */
  readonly limits: readonly string[];
}

export interface UpgradePath {
  /** Of all members, the lowest first; each once. */
  readonly running: readonly string[];
  /** What `spec.version` becomes, one after the other. */
  readonly stops: readonly string[];
}

const VERSION = /^\d{1,3}\.\d{1,3}\.\d{1,3}$/;

/** Versions that members run; of one that does not respond, the last one that the operator has seen. */
const runningVersions = (facts: ClusterFacts): readonly string[] => {
  const all = memberRows(facts).flatMap(({ version }) => version ?? []);
  return [...new Set(all)].toSorted((a, b) => versionNumber(a) - versionNumber(b));
};

/** Or, as a sentence, why there is no way. Without `downgrade`, an earlier minor is a mistake of a user. */
export function upgradePath(facts: ClusterFacts, to: string, downgrade = false): UpgradePath | string {
  const { spec, metadata } = facts.cluster;
  if (!VERSION.test(to)) return `--to must be a version such as 3.6.16, not ${JSON.stringify(to)}`;
  const running = runningVersions(facts);
  const [lowest] = running;
  const highest = running.at(-1);
  if (lowest === undefined || highest === undefined)
    return `no member of ${metadata.name} has reported which version it runs: see kubectl etcd status ${metadata.name}`;
  const isDowngrade = minorOf(to) < minorOf(highest);
  if (isDowngrade && !downgrade && minorOf(to) !== minorOf(lowest))
    return `members run ${highest}, and ${to} is an earlier minor: pass --downgrade if you mean it`;
  const path = versionPath(running, to);
  if (!isList(path)) return path.message;
  const stops = throughPresent(facts, path);
  if (spec.image?.digest !== undefined && stops.some((stop) => stop !== spec.version))
    return 'spec.image.digest pins the image of one version: edit it together with spec.version, one version after the other';
  return { running, stops };
}

const isList = (path: readonly string[] | Blocked): path is readonly string[] => Array.isArray(path);

/** A change that has not ended goes on to its own version, if the next one can be reached from there: members need not restart twice. */
function throughPresent({ cluster }: ClusterFacts, path: readonly string[]): readonly string[] {
  const { version } = cluster.spec;
  const [first = '', next] = path;
  const isOnTheWay = next !== undefined && minorOf(first) === minorOf(version) && !pathRefused([version], next);
  return rolloutOf(cluster)?.since !== undefined && isOnTheWay ? [version, ...path.slice(1)] : path;
}

export interface UpgradeStep {
  readonly version: string;
  readonly from: string;
  readonly what: 'patch release' | 'next minor' | 'previous minor' | 'in progress';
}

export function upgradeSteps({ running, stops }: UpgradePath, wanted: string): readonly UpgradeStep[] {
  let from = running.join(', ');
  return stops.map((version) => {
    const before = minorOf(from.split(', ').at(-1) ?? '');
    const what =
      version === wanted
        ? 'in progress'
        : minorOf(version) === before
          ? 'patch release'
          : minorOf(version) > before
            ? 'next minor'
            : 'previous minor';
    const step = { version, from, what } as const;
    from = version;
    return step;
  });
}

/** What has to be done, or waited for, before the first member is changed. */
export const obstacles = ({ found }: VersionChecks): readonly Blocked[] => found.filter(isObstacle);
