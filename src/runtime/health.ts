/** What the probes say, as functions of facts. Alive: a restart would not help. Ready: what it decides on is up to date. */

export interface ProbeResult {
  readonly code: 200 | 503;
  readonly text: string;
}

export interface Life {
  /** Watch loops that ended although the process goes on. */
  readonly deadWatches: readonly string[];
  /** How long the longest pass has been running. Passes are cut off long before they get old. */
  readonly oldestPassMs: number;
}

export interface Readiness {
  /** Kinds whose first list has not arrived. */
  readonly unsynced: readonly string[];
  /** Definitions that are not installed, by their names. */
  readonly missing: readonly string[];
  /** Since the API server was last heard of. */
  readonly silentMs: number;
}

/** Ten deadlines of a pass: something in it does not listen to its signal, and its object is never looked at again. */
export const STUCK_MS = 300_000;
export const SILENT_MS = 90_000;

const verdict = (trouble: readonly string[]): ProbeResult =>
  trouble.length === 0 ? { code: 200, text: 'ok\n' } : { code: 503, text: `${trouble.join('\n')}\n` };

const seconds = (ms: number): string => `${Math.round(ms / 1000)} s`;

export const alive = ({ deadWatches, oldestPassMs }: Life): ProbeResult =>
  verdict([
    ...deadWatches.map((kind) => `the watch of ${kind} has ended`),
    ...(oldestPassMs > STUCK_MS ? [`a pass has been running for ${seconds(oldestPassMs)}`] : []),
  ]);

/** Also what the log says. */
export const missingCRD = (name: string): string =>
  `the CustomResourceDefinition ${name} is not installed: install the definitions of the chart (crds.enabled=true). The operator goes on by itself when it is there`;

export const ready = ({ unsynced, missing, silentMs }: Readiness): ProbeResult =>
  verdict([
    ...missing.map(missingCRD),
    ...unsynced.map((kind) => `the cache of ${kind} is not filled yet`),
    ...(silentMs > SILENT_MS ? [`the API server has been silent for ${seconds(silentMs)}`] : []),
  ]);
