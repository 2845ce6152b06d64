/**
 * Tries thousands of faults in minutes: a copy of the sources has every fault behind a switch, a test process loads it once, and
 * each test is repeated for those faults that it reaches (`runner.ts`).
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Failure } from '../terminal.ts';
import { type Copy, firstFailure, startVitest, stopVitest } from './copy.ts';
import { type Fault, withSwitches } from './fault.ts';

/** What one test reaches without a fault; without a name, what is reached while files are loaded. */
export interface Reached {
  readonly test: string;
  readonly file: string;
  readonly isAsync: boolean;
  readonly ms: number;
  readonly calls: number;
  readonly reached: readonly number[];
  /** In how many observed states the rules of a swap were asked. */
  readonly asked: readonly (readonly [swap: number, states: number])[];
}

/** The task of the runner; without faults, it records what tests reach. */
export interface Order {
  readonly faults: readonly number[];
  readonly tests: Readonly<Record<string, Reached>>;
}

export type Line =
  | Reached
  | { readonly trying: number }
  /** This fault is enabled, and its test neither ends nor fails. */
  | { readonly endless: number }
  | { readonly noticed: number; readonly by: string };

/**
 * Tables first: they are fast, and detect most. A fault that makes an asynchronous test wait costs seconds, and one that makes
 * it retry for ever costs the test process. Tests that take longer than a second are not repeated.
 */
const ROUNDS: readonly ((test: Reached) => boolean)[] = [
  ({ ms, isAsync }) => ms < 30 && !isAsync,
  ({ ms, isAsync }) => ms < 300 && !isAsync,
  ({ ms, isAsync }) => ms < 1_000 && (isAsync || ms >= 300),
];
/** A fault can make a test wait for ever. Long enough for a busy machine, and short enough for a hundred of them. */
const PATIENCE = { recording: 30_000, trying: 4_000 };
/** No attempt takes this long: a test process that writes nothing for this long is in an endless loop. */
const SILENT_MS = 60_000;
const POLL_MS = 1_000;

/** Writes all faults of all files into the copy, each behind its switch. A fault's number is its index in the list. */
export async function installSwitches(copy: Copy, faults: readonly Fault[]): Promise<void> {
  const ids = new Map(faults.map((fault, id) => [fault, id]));
  for (const [file, here] of Map.groupBy(faults, (fault) => fault.file)) {
    const path = join(copy.folder, file);
    await writeFile(path, withSwitches(await readFile(path, 'utf8'), here, ids));
  }
}

/** What every test of these files reaches. Fails when a test fails: it would detect every fault. */
export async function record(copy: Copy, files: readonly string[]): Promise<readonly Reached[]> {
  const lines = await follow(copy, { faults: [], tests: {} }, files, PATIENCE.recording);
  return lines.filter((line) => 'reached' in line);
}

/** Which of these faults are detected, and by which test. */
export async function trySwitched(
  copy: Copy,
  faults: readonly number[],
  reached: readonly Reached[],
  progress: (more: number) => void,
): Promise<ReadonlyMap<number, string>> {
  const noticed = new Map<number, string>();
  for (const isInRound of ROUNDS) {
    const tests = reached.filter((test) => test.test !== '' && isInRound(test));
    for (;;) {
      const left = faults.filter((id) => !noticed.has(id));
      const wanted = new Set(left);
      const useful = tests.filter((test) => test.reached.some((id) => wanted.has(id)));
      if (useful.length === 0) break;
      const order: Order = { faults: left, tests: Object.fromEntries(useful.map((test) => [test.test, test])) };
      const lines = await follow(copy, order, [...new Set(useful.map(({ file }) => file))], PATIENCE.trying);
      for (const line of lines) if ('noticed' in line) noticed.set(line.noticed, line.by);
      const last = lines.at(-1);
      progress(noticed.size - (faults.length - left.length));
      if (!last || !('endless' in last)) break;
      noticed.set(last.endless, 'a test does not end');
    }
  }
  return noticed;
}

/** Runs the runner over these test files, and returns its output: an endless test is the last line. */
async function follow(copy: Copy, order: Order, files: readonly string[], timeoutMs: number): Promise<readonly Line[]> {
  const log = join(copy.folder, 'log.jsonl');
  await writeFile(join(copy.folder, 'order.json'), JSON.stringify(order));
  await writeFile(log, '');
  const vitest = await startVitest(copy, {
    runner: join(copy.folder, 'tools/mutants/runner.ts'),
    testTimeout: timeoutMs,
    hookTimeout: PATIENCE.recording,
  });
  const specifications = await vitest.globTestSpecifications(files.map((file) => join(copy.folder, file)));
  const over = new AbortController();
  const run = vitest.runTestSpecifications(specifications, true);
  const endless = await Promise.race([run.then(() => undefined), endlessIn(log, over.signal)]);
  over.abort();
  await stopVitest(copy);
  const failed = order.faults.length === 0 ? firstFailure(await run, specifications) : undefined;
  if (failed !== undefined) throw new Failure(`without any fault, this fails: ${failed}`);
  const lines = linesOf(await readFile(log, 'utf8'));
  return endless === undefined ? lines : [...lines, { endless }];
}

const linesOf = (text: string): readonly Line[] =>
  text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Line]));

/** Which fault makes a test endless: the runner reports it, or writes nothing for long. */
async function endlessIn(log: string, signal: AbortSignal): Promise<number | undefined> {
  let size = 0;
  for (let since = performance.now(); !signal.aborted; ) {
    await sleep(POLL_MS);
    const text = await readFile(log, 'utf8');
    if (text.length > size) since = performance.now();
    size = text.length;
    const end = text.lastIndexOf('\n');
    const [last] = linesOf(text.slice(text.lastIndexOf('\n', end - 1) + 1, Math.max(0, end)));
    if (last && 'endless' in last) return last.endless;
    if (last && 'trying' in last && performance.now() - since > SILENT_MS) return last.trying;
  }
  return undefined;
}
