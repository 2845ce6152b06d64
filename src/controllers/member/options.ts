/** The options of a member as flags of its etcd version: etcd does not start with a flag that it does not know. */
import type { EtcdOptions } from '../../api/options.ts';
import { spelledFor } from '../../domain/etcd-flags.ts';
import { versionNumber } from '../../lib/version.ts';

/** etcd 3.6 replaced the experimental flags by plain ones and feature gates; 3.7 does not start with an experimental flag. */
const PLAIN_FLAGS = versionNumber('3.6.0');
/** etcd 3.8 has no --snapshot-count. */
const NO_SNAPSHOT_COUNT = versionNumber('3.8.0');
/** etcd 3.5.5 introduced the compaction hash check. */
const COMPACT_HASH = versionNumber('3.5.5');

const READYZ = versionNumber('3.5.11');

/** Readiness of the member alone: plain /health fails on NOSPACE too, and a full database must still serve reads and compaction. */
export function readinessPath(version: string): string {
  return versionNumber(version) >= READYZ ? '/readyz' : '/health?exclude=NOSPACE';
}

const flag = (name: string, value: string | number | undefined): readonly string[] =>
  value === undefined ? [] : [`--${name}=${value}`];
/** Set from a Pod annotation at every container start: whether another member serves that etcd can compare its data with. */
export const INITIAL_CHECK = 'INITIAL_CORRUPT_CHECK';
const inSeconds = (value: number | undefined): string | undefined => (value === undefined ? undefined : `${value}s`);

function corruptionFlags(check: EtcdOptions['corruptionCheck'], version: number): readonly string[] {
  const every = check?.intervalMinutes ? `${check.intervalMinutes}m` : undefined;
  const compactHash = check?.compactHash === true && version >= COMPACT_HASH;
  if (version < PLAIN_FLAGS)
    return [
      ...flag('experimental-initial-corrupt-check', check?.initial ? `$(${INITIAL_CHECK})` : undefined),
      ...flag('experimental-compact-hash-check-enabled', compactHash ? 'true' : undefined),
      ...flag('experimental-corrupt-check-time', every),
    ];
  const gates = [
    ...(check?.initial ? [`InitialCorruptCheck=$(${INITIAL_CHECK})`] : []),
    ...(compactHash ? ['CompactHashCheck=true'] : []),
  ];
  return [
    ...flag('feature-gates', gates.length > 0 ? gates.join(',') : undefined),
    ...flag('corrupt-check-time', every),
  ];
}

/** In the order of earlier operators: another order would restart the Pods of adopted members. */
export function optionFlags(options: EtcdOptions | undefined, version: string): readonly string[] {
  if (!options) return [];
  const running = versionNumber(version);
  const { grpcKeepalive } = options;
  return [
    ...flag('quota-backend-bytes', options.quotaBackendBytes),
    ...flag('auto-compaction-mode', options.autoCompactionMode),
    ...flag('auto-compaction-retention', options.autoCompactionRetention),
    ...(running < NO_SNAPSHOT_COUNT ? flag('snapshot-count', options.snapshotCount) : []),
    ...flag('heartbeat-interval', options.heartbeatIntervalMilliseconds),
    ...flag('election-timeout', options.electionTimeoutMilliseconds),
    ...flag('max-request-bytes', options.maxRequestBytes),
    ...flag('grpc-keepalive-min-time', inSeconds(grpcKeepalive?.minTimeSeconds)),
    ...flag('grpc-keepalive-interval', inSeconds(grpcKeepalive?.intervalSeconds)),
    ...flag('grpc-keepalive-timeout', inSeconds(grpcKeepalive?.timeoutSeconds)),
    ...flag('log-level', options.logLevel),
    ...corruptionFlags(options.corruptionCheck, running),
  ];
}

/** Must be equal on all members, or they disagree on the membership; versions without the flag allow one learner. */
export const learnerFlags = (maxLearners: number | undefined, version: string): readonly string[] =>
  versionNumber(version) < PLAIN_FLAGS ? [] : flag('max-learners', maxLearners);

const GATES = '--feature-gates=';

/** All flags from the spec. etcd uses only the last --feature-gates, so they are merged into one; the operator's gates win. */
export function statedFlags(
  options: EtcdOptions | undefined,
  extraArgs: readonly string[] | undefined,
  version: string,
): readonly string[] {
  const rendered = optionFlags(options, version);
  const extra = spelledFor(version, extraArgs ?? []);
  const isGates = (arg: string): boolean => arg.startsWith(GATES);
  const stated = extra.filter(isGates);
  if (stated.length === 0) return [...rendered, ...extra];
  const gates = [...stated, ...rendered.filter(isGates)].map((arg) => arg.slice(GATES.length)).filter(Boolean);
  const others = [...rendered, ...extra].filter((arg) => !isGates(arg));
  return gates.length === 0 ? others : [...others, `${GATES}${gates.join(',')}`];
}
