/** Every fault: those generated from the sources, and those with a sentence. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../paths.ts';
import { nodesOf } from '../syntax-tree.ts';
import { Failure } from '../terminal.ts';
import type { Fault } from './fault.ts';
import { faultsOf } from './generate.ts';
import { resolve, SENTENCES, type Sentence } from './sentences.ts';

/** Code that makes decisions. Code that calls the API server, etcd or a store has integration tests. */
const SOURCES = 'src/{access,api,controllers,domain,lib,pki}/**/*.ts';
/** Plans of all controllers are made and executed here. */
const PLANS = ['src/runtime/plan.ts', 'src/runtime/execute.ts'];

export const sourceOf = (file: string): string => readFileSync(join(root, file), 'utf8');

/** Expressions are changed only in synchronous files: a fault there ends a test at once, or makes no difference. */
const isSynchronous = (source: string): boolean => !nodesOf(source).some(({ node }) => node['async'] === true);

const generated = (): readonly Fault[] =>
  [...globSync(SOURCES, { cwd: root, exclude: ['**/*.test.ts'] }), ...PLANS].toSorted().flatMap((file) => {
    const source = sourceOf(file);
    const isPure = isSynchronous(source);
    return faultsOf(file, source).filter(({ kind }) => isPure || kind !== 'expression');
  });

export function faultOf(sentence: Sentence): Fault {
  const fault = resolve(sentence, sourceOf(sentence.file));
  if (fault) return fault;
  const { file, operator, ordinal, lets } = sentence;
  throw new Failure(
    `${file}: ${sentence.in} has no ${operator} number ${ordinal} any more, so the fault "${lets}" cannot be injected.`,
  );
}

export function allFaults(): readonly Fault[] {
  const key = ({ file, start, end, to }: Fault): string => `${file} ${start} ${end} ${to}`;
  const written = SENTENCES.map(faultOf);
  const known = new Set(written.map(key));
  return [...written, ...generated().filter((fault) => !known.has(key(fault)))];
}
