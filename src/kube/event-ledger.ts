/**
 * Which Events are worth a write. The same words about the same object are one Event with a count; many different words for
 * the same reason are one Event that says so; a count is brought up to date now and then, not each time.
 */

export interface Happening {
  /** Of the object that it is about. */
  readonly uid: string;
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly note: string;
}

export type Entry =
  /** Write a new Event, with these words. */
  | { readonly do: 'create'; readonly key: string; readonly note: string }
  /** Bring the count of an earlier one up to date. */
  | { readonly do: 'count'; readonly key: string; readonly name: string; readonly count: number }
  /** It is counted, and told with a later one. */
  | { readonly do: 'hold' };

interface Sent {
  readonly name: string;
  /** When it was first told. */
  readonly since: number;
  told: number;
  count: number;
}

interface Similar {
  readonly since: number;
  readonly notes: Set<string>;
}

/** Within this time it is the same story. */
export const SERIES_MS = 10 * 60_000;
/** A count is written at most this often. */
export const TELL_MS = 30_000;
/** So many different words for one reason are told one by one; further ones are told together. */
export const MAX_SIMILAR = 10;
const MAX_REMEMBERED = 2_000;

export class EventLedger {
  readonly #sent = new Map<string, Sent>();
  readonly #similar = new Map<string, Similar>();

  get size(): number {
    return this.#sent.size + this.#similar.size;
  }

  /** What to do about something that happened now. */
  enter(what: Happening, now: number): Entry {
    const combined = this.#isOneOfMany(what, now);
    const note = combined ? `(combined from similar events): ${what.note}` : what.note;
    const key = [what.uid, what.type, what.reason, combined ? '' : what.note].join('\n');
    const sent = this.#sent.get(key);
    if (!sent || now - sent.since >= SERIES_MS) return { do: 'create', key, note };
    sent.count++;
    if (now - sent.told < TELL_MS) return { do: 'hold' };
    sent.told = now;
    return { do: 'count', key, name: sent.name, count: sent.count };
  }

  /** It was written under this name. */
  created(key: string, name: string, now: number): void {
    remember(this.#sent, key, { name, since: now, told: now, count: 1 });
  }

  /** It is not there any more: Events do not live long. */
  lost(key: string): void {
    this.#sent.delete(key);
  }

  #isOneOfMany(what: Happening, now: number): boolean {
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

/** The longest untouched makes room. */
function remember<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key);
  map.set(key, value);
  const oldest = map.keys().next();
  if (map.size > MAX_REMEMBERED && !oldest.done) map.delete(oldest.value);
}
