/** Which share of expression faults, by folder and in total, is detected, in percent. It must not fall. */
import type { Fault } from './fault.ts';

export type Shares = Readonly<Record<string, number>>;

/** A controller is a folder of its own. */
const folderOf = (file: string): string => /^src\/(controllers\/)?[^/]+/.exec(file)?.[0] ?? file;

/** A property test detects a fault in one run and misses it in the next. */
const ROUNDING = 0.5;

export function noticedShares(faults: readonly Fault[], isNoticed: (fault: Fault) => boolean): Shares {
  const expressions = faults.filter(({ kind }) => kind === 'expression');
  const groups = [['src', expressions] as const, ...Map.groupBy(expressions, ({ file }) => folderOf(file))];
  const share = (some: readonly Fault[]): number =>
    Math.round((1000 * some.filter(isNoticed).length) / Math.max(1, some.length)) / 10;
  return Object.fromEntries(groups.map(([name, some]) => [name, share(some)]));
}

/** Where less is detected than was recorded, as sentences. */
export const tooLow = (now: Shares, recorded: Shares): readonly string[] =>
  Object.entries(recorded).flatMap(([name, least]) =>
    (now[name] ?? 100) < least - ROUNDING ? [`${name}: ${now[name]} % are noticed, and ${least} % were.`] : [],
  );
