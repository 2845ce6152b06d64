/**
 * Decides which Events are written. Equal notes about one object are one Event with a count; many different notes for
 * one reason are combined into one Event; a count is updated from time to time, not at each occurrence.
 */

export interface EventText {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly note: string;
}

export interface Occurrence extends EventText {
  /** uid of the regarding object. */
  readonly uid: string;
}

export type Entry =
  /** Create an Event with this note. */
  | { readonly do: 'create'; readonly key: string; readonly note: string }
  /** Update the count of an earlier Event. */
  | { readonly do: 'count'; readonly key: string; readonly name: string; readonly count: number }
  /** Only counted; reported with a later update. */
  | { readonly do: 'hold' };

interface Sent {
  readonly name: string;
  /** When the Event was created. */
  readonly since: number;
  reportedAt: number;
  count: number;
}

interface Similar {
  readonly since: number;
  readonly notes: Set<string>;
}

/** Occurrences within this time belong to one Event. */
export const SERIES_MS = 10 * 60_000;
/** A count is written at most this often. */
export const REPORT_MS = 30_000;
/** This number of different notes for one reason are separate Events; further ones are combined into one. */
export const MAX_SIMILAR = 10;
const MAX_REMEMBERED = 2_000;

export class EventLedger {
  readonly #sent = new Map<string, Sent>();
  readonly #similar = new Map<string, Similar>();

  get size(): number {
    return this.#sent.size + this.#similar.size;
  }

  /** What to do about an occurrence now. */
  enter(what: Occurrence, now: number): Entry {
    const combined = this.#isOneOfMany(what, now);
    const note = combined ? `(combined from similar events): ${what.note}` : what.note;
    const key = [what.uid, what.type, what.reason, combined ? '' : what.note].join('\n');
    const sent = this.#sent.get(key);
    if (!sent || now - sent.since >= SERIES_MS) return { do: 'create', key, note };
    sent.count++;
    if (now - sent.reportedAt < REPORT_MS) return { do: 'hold' };
    sent.reportedAt = now;
    return { do: 'count', key, name: sent.name, count: sent.count };
  }

  /** The Event was created under this name. */
  created(key: string, name: string, now: number): void {
    remember(this.#sent, key, { name, since: now, reportedAt: now, count: 1 });
  }

  /** The Event no longer exists: Events expire. */
  lost(key: string): void {
    this.#sent.delete(key);
  }

  #isOneOfMany(what: Occurrence, now: number): boolean {
    const key = [what.uid, what.type, what.reason].join('\n');
    const known = this.#similar.get(key);
    const similar = known && now - known.since < SERIES_MS ? known : { since: now, notes: new Set<string>() };
    if (similar.notes.has(what.note)) return false;
    if (similar.notes.size >= MAX_SIMILAR) return true;
    similar.notes.add(what.note);
    remember(this.#similar, key, similar);
    return false;
  }
}

/** Evicts the entry that was not used for the longest time. */
function remember<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key);
  map.set(key, value);
  const oldest = map.keys().next();
  if (map.size > MAX_REMEMBERED && !oldest.done) map.delete(oldest.value);
}
