/** What a check of a cluster is given, and what it finds. */
import type { ClusterFacts } from './facts.ts';
import type { MemberRow } from './members.ts';
import type { MemberMetrics } from './metrics.ts';

export type Level =
  /** An outage, or one that is about to happen. */
  | 'problem'
  | 'advice'
  | 'ok'
  /** It could not be checked. */
  | 'unknown';

export interface Finding {
  readonly subject: string;
  readonly level: Level;
  readonly message: string;
  /** What to do. */
  readonly advice?: string;
}

export interface Examined {
  readonly facts: ClusterFacts;
  readonly rows: readonly MemberRow[];
  /** By the name of the member; absent for one whose metrics could not be read. */
  readonly metrics: ReadonlyMap<string, MemberMetrics>;
}

export type Check = (examined: Examined) => Finding;

export const ok = (subject: string, message: string): Finding => ({ subject, level: 'ok', message });
export const found = (subject: string, level: Exclude<Level, 'ok'>, message: string, advice?: string): Finding => ({
  subject,
  level,
  message,
  ...(advice !== undefined && { advice }),
});
