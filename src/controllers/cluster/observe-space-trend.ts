/** How the space in use of a cluster's databases has developed: kept in memory, because a status that has it would change all the time. */
import { TREND_MIN_MS, TREND_SAMPLE_MS, TREND_WINDOW_MS } from '../../domain/timing.ts';
import { type Sample, slopePerHour } from '../../lib/linear-trend.ts';
import type { MemberView, SpaceTrend } from './observed.ts';

export class SpaceTrends {
  readonly #samples = new Map<string, readonly Sample[]>();

  /** Notes what the members report now. `undefined`: none does, or they have been observed for too short a time. */
  note(key: string, now: number, members: readonly MemberView[]): SpaceTrend | undefined {
    const sizes = members.flatMap(({ self }) => self?.databaseBytesInUse ?? []);
    const known = (this.#samples.get(key) ?? []).filter(({ at }) => at <= now && now - at <= TREND_WINDOW_MS);
    const last = known.at(-1);
    const isDue = sizes.length > 0 && (!last || now - last.at >= TREND_SAMPLE_MS);
    const samples = isDue ? [...known, { at: now, value: Math.max(...sizes) }] : known;
    this.#samples.set(key, samples);
    const first = samples[0];
    const bytesPerHour = first && now - first.at >= TREND_MIN_MS ? slopePerHour(samples) : undefined;
    return first && bytesPerHour !== undefined ? { bytesPerHour, overMs: now - first.at } : undefined;
  }

  forget(key: string): void {
    this.#samples.delete(key);
  }
}
