/** The probes, as functions of facts. Alive: a restart would not help. Ready: the caches are synced and the API server responds. */

export interface ProbeResult {
  readonly code: 200 | 503;
  readonly text: string;
}

export interface Life {
  /** Kinds whose watch loop has ended while the process is running. */
  readonly deadWatches: readonly string[];
  /** How long the oldest reconcile has been running. Its deadline ends it long before STUCK_MS. */
  readonly oldestReconcileMs: number;
}

export interface Readiness {
  /** Kinds whose first list has not arrived. */
  readonly unsynced: readonly string[];
  /** Names of CRDs that are not installed. */
  readonly missing: readonly string[];
  /** CRDs that lack fields of this version, each as a sentence. */
  readonly outdated?: readonly string[];
  /** What the operator does without kinds that it cannot read. */
  readonly notes?: readonly string[];
  /** How long ago the API server last responded. */
  readonly sinceResponseMs: number;
  /** The process runs with `--observe-only`. */
  readonly observeOnly?: boolean;
}

/** Ten times the deadline of a reconcile: it ignores its abort signal, and its object would never be reconciled again. */
export const STUCK_MS = 300_000;
export const UNREACHABLE_MS = 90_000;

const probeResult = (trouble: readonly string[], notes: readonly string[] = []): ProbeResult =>
  trouble.length === 0
    ? { code: 200, text: `${['ok', ...notes].join('\n')}\n` }
    : { code: 503, text: `${[...trouble, ...notes].join('\n')}\n` };

const seconds = (ms: number): string => `${Math.round(ms / 1000)} s`;

export const alive = ({ deadWatches, oldestReconcileMs }: Life): ProbeResult =>
  probeResult([
    ...deadWatches.map((kind) => `the watch of ${kind} has ended`),
    ...(oldestReconcileMs > STUCK_MS ? [`a reconcile has been running for ${seconds(oldestReconcileMs)}`] : []),
  ]);

/** For the readiness probe and the log. */
export const missingCRD = (name: string): string =>
  `the CustomResourceDefinition ${name} is not installed: install the CRDs of the chart (crds.enabled=true). The operator continues by itself once it is installed`;

/** The same, of a kind without which the operator works. */
export const unusedCRD = (name: string): string =>
  `the CustomResourceDefinition ${name} is not installed: objects of this kind are not reconciled. To use them, install the CRDs of the chart (crds.enabled=true)`;

export const ready = ({
  unsynced,
  missing,
  outdated = [],
  notes = [],
  sinceResponseMs,
  observeOnly = false,
}: Readiness): ProbeResult =>
  probeResult(
    [
      ...missing.map(missingCRD),
      ...outdated,
      ...unsynced.map((kind) => `the cache of ${kind} is not synced yet`),
      ...(sinceResponseMs > UNREACHABLE_MS
        ? [`the API server has been unreachable for ${seconds(sinceResponseMs)}`]
        : []),
    ],
    [...(observeOnly ? ['observe only: this operator changes nothing'] : []), ...notes],
  );
