/** Flags of etcd that have another name in another minor, and flags that a minor does not know: etcd does not start with one. */
import { minorOf } from './version-path.ts';

/** By its name before 3.6, the name of a flag from 3.6 on. 3.6 knows both. */
const RENAMED: Readonly<Record<string, string>> = Object.fromEntries(
  [
    'bootstrap-defrag-threshold-megabytes',
    'compact-hash-check-time',
    'compaction-batch-limit',
    'compaction-sleep-interval',
    'distributed-tracing-address',
    'distributed-tracing-instance-id',
    'distributed-tracing-sampling-rate',
    'distributed-tracing-service-name',
    'downgrade-check-time',
    'enable-distributed-tracing',
    'memory-mlock',
    'snapshot-catchup-entries',
    'warning-apply-duration',
    'warning-unary-request-duration',
    'watch-progress-notify-interval',
  ].map((name) => [`experimental-${name}`, name]),
);

/** By its name before 3.6, the feature gate from 3.6 on. 3.6 knows both. */
const GATES: Readonly<Record<string, string>> = {
  'experimental-enable-lease-checkpoint': 'LeaseCheckpoint',
  'experimental-enable-lease-checkpoint-persist': 'LeaseCheckpointPersist',
  'experimental-stop-grpc-service-on-defrag': 'StopGRPCServiceOnDefrag',
  'experimental-txn-mode-write-with-shared-buffer': 'TxnModeWriteWithSharedBuffer',
};

const [PLAIN, NO_EXPERIMENTAL] = [3006, 3007];
/** Flags that earlier minors do not know. */
const SINCE: Readonly<Record<string, number>> = {
  'feature-gates': PLAIN,
  'log-format': PLAIN,
  'experimental-warning-unary-request-duration': PLAIN,
};
/** Feature gates that earlier minors do not know. */
const GATES_SINCE: Readonly<Record<string, number>> = { FastLeaseKeepAlive: 3007, PriorityRequest: 3007 };

const nameIn = (arg: string): string => arg.slice(2).split('=')[0] ?? '';
const valueIn = (arg: string): string | undefined => (arg.includes('=') ? arg.slice(arg.indexOf('=') + 1) : undefined);
const FORMER: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(RENAMED).map(([old, name]) => [name, old]),
);

/** Flags that users pass through, as this version spells them. */
export const spelledFor = (version: string, args: readonly string[]): readonly string[] =>
  args.map((arg) => spelled(minorOf(version), arg));

function spelled(minor: number, arg: string): string {
  const [name, value] = [nameIn(arg), valueIn(arg)];
  const gate = GATES[name];
  if (minor >= NO_EXPERIMENTAL && gate !== undefined) return `--feature-gates=${gate}=${value ?? 'true'}`;
  const other = minor < PLAIN ? FORMER[name] : minor >= NO_EXPERIMENTAL ? RENAMED[name] : undefined;
  return other === undefined ? arg : `--${[other, ...(value === undefined ? [] : [value])].join('=')}`;
}

/** Flags and feature gates of the user that etcd of this version does not know. */
export function unknownFlags(version: string, args: readonly string[]): readonly string[] {
  const minor = minorOf(version);
  return spelledFor(version, args).flatMap((arg) => {
    const name = nameIn(arg);
    const isRemoved = minor >= NO_EXPERIMENTAL && name.startsWith('experimental-');
    if (isRemoved || (SINCE[name] ?? 0) > minor) return [`--${name}`];
    return name === 'feature-gates' ? unknownGates(minor, valueIn(arg) ?? '') : [];
  });
}

const unknownGates = (minor: number, gates: string): readonly string[] =>
  gates
    .split(',')
    .map((each) => each.split('=')[0] ?? '')
    .filter((gate) => (GATES_SINCE[gate] ?? 0) > minor)
    .map((gate) => `--feature-gates=${gate}`);
