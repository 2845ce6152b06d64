/** A deliberate fault: one expression of one file is replaced, and the tests must detect it. */
export interface Fault {
  readonly file: string;
  /** Which failure it causes, or what was done to the source. */
  readonly what: string;
  /** Of the faults in expressions, a share must be detected; all others must all be. */
  readonly kind: 'structural' | 'sentence' | 'order' | 'expression';
  readonly start: number;
  readonly end: number;
  readonly to: string;
  /** The row of an ordered list that is missing, or that comes after the next. The list is built when its file is loaded, and still has to change with the switches. */
  readonly row?: number;
}

/** The source with this fault. */
export const withFault = (source: string, { start, end, to }: Fault): string =>
  `${source.slice(0, start)}(${to})${source.slice(end)}`;

export const isStrict = ({ kind }: Fault): boolean => kind !== 'expression';

export const lineOf = (source: string, offset: number): number => source.slice(0, offset).split('\n').length;

/** The prefix of every file with switches. Programs that a test starts have no runner, and none of the faults. */
const SWITCH = 'const { $fault = () => false, $swap = () => false, $list = (make) => make() } = globalThis; ';

/**
 * The source with all its faults, each behind a switch: a test process loads it once and tries every fault. `ids` is
 * the number that enables a fault.
 */
export function withSwitches(source: string, faults: readonly Fault[], ids: ReadonlyMap<Fault, number>): string {
  const sites = Map.groupBy(faults, ({ start, end }) => `${start}-${end}`);
  // Outer sites first: a site that begins with another one contains it.
  const ordered = [...sites.values()].toSorted(
    ([a], [b]) => (a?.start ?? 0) - (b?.start ?? 0) || (b?.end ?? 0) - (a?.end ?? 0),
  );
  let next = 0;
  const render = (start: number, end: number): string => {
    let text = '';
    let at = start;
    for (let site = ordered[next]; site?.[0] && site[0].start < end; site = ordered[next]) {
      next += 1;
      const { start: from, end: until, row } = site[0];
      const swaps = site.filter(({ kind }) => kind === 'order').map((fault) => `${fault.row}: ${ids.get(fault)}`);
      const choices = site.map(
        (fault) => `${fault.kind === 'order' ? '$swap' : '$fault'}(${ids.get(fault)}) ? (${fault.to}) : `,
      );
      const inner = `${choices.join('')}(${render(from, until)})`;
      text += source.slice(at, from) + (row === undefined ? `(${inner})` : `$list(() => ${inner}, {${swaps.join()}})`);
      at = until;
    }
    return text + source.slice(at, end);
  };
  return SWITCH + render(0, source.length);
}
