/** What the sources with switches (`withSwitches`) ask in the process that runs them. */

export const NONE = -1;
/** More switches than any test reaches beyond ten times what it reaches without a fault. */
export const ENDLESS = 200_000;
export const state = {
  fault: NONE,
  calls: 0,
  limit: Number.POSITIVE_INFINITY,
  reached: new Set<number>(),
  /** For each swap, in how many observed states its first row was asked. */
  asked: new Map<number, number>(),
  isAsking: false,
  onEndless: () => {},
};

/** Whether this fault is enabled. No timer ends an endless loop that a fault causes, but most loops call this. */
const isOn = (id: number): boolean => {
  if (state.isAsking) return false;
  state.reached.add(id);
  state.calls += 1;
  if (state.calls === state.limit + ENDLESS) state.onEndless(); // a failed call is retried at once, for ever
  if (state.calls > state.limit) throw new Error('endless loop');
  return state.fault === id;
};

interface Row {
  readonly rule: (observed: unknown) => unknown;
}
/** Which fault swaps a row with the next, by its place in the list. */
type Swaps = Readonly<Record<number, number>>;

/** A swap is reached where both rows decide: elsewhere it changes nothing. */
const watched = (rows: readonly Row[], swaps: Swaps): readonly Row[] =>
  rows.map((row, i) => ({ ...row, rule: (observed) => ask(row, rows[i + 1], observed, swaps[i]) }));

function ask(row: Row, next: Row | undefined, observed: unknown, swap: number | undefined): unknown {
  const decision = row.rule(observed);
  if (swap === undefined || state.isAsking) return decision;
  state.asked.set(swap, (state.asked.get(swap) ?? 0) + 1);
  state.isAsking = true;
  try {
    if (decision && next?.rule(observed)) state.reached.add(swap);
  } catch {
    state.reached.add(swap); // it relies on the row before it
  }
  state.isAsking = false;
  return decision;
}

/** A list that follows the switches on every read, although its file is loaded once. */
function list(make: () => readonly Row[], swaps: Swaps): object {
  let [made, madeFor] = [make(), NONE];
  const get = (_: unknown, key: string | symbol): unknown => {
    if (state.fault === NONE || state.fault !== madeFor) [made, madeFor] = [make(), state.fault];
    const rows = state.fault === NONE ? watched(made, swaps) : made;
    const value: unknown = Reflect.get(rows, key);
    return typeof value === 'function' ? value.bind(rows) : value; // flatMap skips what only a proxy has
  };
  return new Proxy([], { get });
}
Object.assign(globalThis, { $fault: isOn, $swap: (id: number) => state.fault === id, $list: list });
