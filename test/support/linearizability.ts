/**
 * Whether what clients saw can be explained by one register per key that changed at a single moment within each operation. The
 * search is that of Wing and Gong with the cache of Lowe: each key by itself, and no set of operations with one value twice.
 */

export interface Operation {
  readonly client: string;
  readonly key: string;
  /** No two writes of a key have the same value. */
  readonly does: 'write' | 'read';
  /** What was written, or read; `undefined`: the key did not exist. */
  readonly value: string | undefined;
  readonly startMs: number;
  /** `undefined`: the client does not know the outcome. A write may have happened at any time after its start, or not at all. */
  readonly endMs: number | undefined;
}

/** A moment in the history of a key: an operation starts, or it has ended. */
interface Entry {
  readonly at: Operation;
  /** The number of its operation, in the order of their starts. */
  readonly number: number;
  /** Of a start: the entry of its end. */
  readonly end: Entry | undefined;
  previous: Entry | undefined;
  next: Entry | undefined;
}

/** Why the operations are not linearizable, as a sentence; `undefined` if they are. */
export function notLinearizable(history: readonly Operation[]): string | undefined {
  for (const [key, operations] of Map.groupBy(history, (operation) => operation.key)) {
    const stuck = stuckAt(relevant(operations));
    if (stuck) return `${key} is not linearizable: no order of its operations explains that ${sentenceOf(stuck)}`;
  }
  return undefined;
}

/** What no client has seen needs no explanation, and each write of unknown outcome could otherwise be anywhere in the rest of the history. */
function relevant(operations: readonly Operation[]): readonly Operation[] {
  const seen = new Set(
    operations.flatMap(({ does, endMs, value }) => (does === 'read' && endMs !== undefined ? [value] : [])),
  );
  return operations.filter(({ does, endMs, value }) => endMs !== undefined || (does === 'write' && seen.has(value)));
}

/** The operation that ended before any order could explain it, in the attempt that came furthest; `undefined` if one explains all. */
function stuckAt(operations: readonly Operation[]): Operation | undefined {
  const head = entriesOf(operations);
  const tried = new Set<string>();
  const done = new Set<number>();
  const taken: { readonly entry: Entry; readonly before: string | undefined }[] = [];
  let value: string | undefined;
  let furthest: { readonly depth: number; readonly at: Operation } | undefined;
  for (let entry = head.next; head.next; ) {
    if (entry?.end) {
      const { does, value: seen } = entry.at;
      const after = does === 'write' ? seen : value;
      done.add(entry.number);
      const state =
        does === 'write' || seen === value ? `${shortOf(done, head.next.number)} ${after ?? ''}` : undefined;
      if (state !== undefined && !tried.has(state)) {
        tried.add(state);
        taken.push({ entry, before: value });
        value = after;
        lift(entry);
        entry = head.next;
      } else {
        done.delete(entry.number);
        entry = entry.next;
      }
      continue;
    }
    if (entry && (!furthest || taken.length > furthest.depth)) furthest = { depth: taken.length, at: entry.at };
    const last = taken.pop();
    if (!last) return furthest?.at;
    value = last.before;
    done.delete(last.entry.number);
    putBack(last.entry);
    entry = last.entry.next;
  }
  return undefined;
}

/** A set of numbers as its first gap, not below `from`, and what is beyond: as much as overlaps, instead of the whole history. */
function shortOf(done: ReadonlySet<number>, from: number): string {
  let gap = from;
  while (done.has(gap)) gap++;
  const beyond: number[] = [];
  for (let i = gap; beyond.length < done.size - gap; i++) if (done.has(i)) beyond.push(i);
  return `${gap}:${beyond.join()}`;
}

/** The starts and ends in the order of time. Of two at the same moment the start comes first: they may have overlapped. */
function entriesOf(operations: readonly Operation[]): Entry {
  const inOrder = operations.toSorted((a, b) => a.startMs - b.startMs);
  const moments = inOrder.flatMap((at, number) => {
    const link = { at, number, previous: undefined, next: undefined };
    const end: Entry = { ...link, end: undefined };
    const start: Entry = { ...link, end };
    return [
      { entry: start, ms: at.startMs, order: 0 },
      { entry: end, ms: at.endMs ?? Number.POSITIVE_INFINITY, order: 1 },
    ];
  });
  const nothing: Operation = { client: '', key: '', does: 'read', value: undefined, startMs: 0, endMs: 0 };
  const head: Entry = { at: nothing, number: -1, end: undefined, previous: undefined, next: undefined };
  let last = head;
  for (const { entry } of moments.toSorted((a, b) => a.ms - b.ms || a.order - b.order)) {
    last.next = entry;
    entry.previous = last;
    last = entry;
  }
  return head;
}

function lift(start: Entry): void {
  for (const entry of [start, start.end]) {
    if (entry?.previous) entry.previous.next = entry.next;
    if (entry?.next) entry.next.previous = entry.previous;
  }
}

function putBack(start: Entry): void {
  for (const entry of [start.end, start]) {
    if (entry?.previous) entry.previous.next = entry;
    if (entry?.next) entry.next.previous = entry;
  }
}

const sentenceOf = ({ client, does, value, startMs, endMs }: Operation): string => {
  const did = does === 'read' ? `read ${value ?? 'nothing'}` : `wrote ${value}`;
  return `${client} ${did} between ${Math.round(startMs)} and ${Math.round(endMs ?? startMs)} ms`;
};
