/** The arguments of `./dev test …`. */
import { nearest } from '../nearest.ts';
import { UsageFailure } from '../terminal.ts';

/** In the order in which they run: the quick ones first. */
export const levels = ['unit', 'sim', 'contract', 'integration', 'e2e', 'sweep', 'fuzz'] as const;
export type Level = (typeof levels)[number];

export interface TestRequest {
  /** No level: everything, the static checks included. */
  readonly level?: Level;
  readonly filter?: string;
  /** Also the cases that are too long for every run. */
  readonly all: boolean;
}

const usage = `./dev test [${levels.join('|')}] [filter] [--all]`;

export function parseArguments(args: readonly string[]): TestRequest {
  const flags = args.filter((arg) => arg.startsWith('-'));
  const unknown = flags.find((flag) => flag !== '--all');
  if (unknown) throw new UsageFailure(`there is no option ${unknown}; it is ${usage}.`);
  const [word, filter, ...rest] = args.filter((arg) => !arg.startsWith('-'));
  if (rest.length > 0)
    throw new UsageFailure(`there is one filter at most: put "${[filter, ...rest].join(' ')}" in quotes.`);
  const all = flags.length > 0;
  if (word === undefined) return { all };
  const level = levels.find((candidate) => candidate === word);
  if (!level) {
    const meant = nearest(word, levels);
    throw new UsageFailure(
      `"${word}" is no level of tests; ${meant ? `did you mean ./dev test ${meant}?` : `it is ${usage}.`}`,
    );
  }
  return filter === undefined ? { level, all } : { level, filter, all };
}
