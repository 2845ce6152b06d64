/** Tries one fault in the source itself, for faults that a switch cannot cover: modules are loaded with it. */
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { run } from '../process.ts';
import { Failure } from '../terminal.ts';
import { type Copy, firstFailure, startVitest, stopVitest } from './copy.ts';
import { type Fault, isStrict, withFault } from './fault.ts';
import type { Reached } from './switched.ts';

/** A fault can make a test or a world wait for ever; on a busy machine, either takes half a minute. */
const TIMEOUT_MS = 180_000;
/** As many worlds as the simulation runs in CI: a fault that it misses there counts as missed. */
const ALONE = { steps: 1_000_000, timeoutMs: 1_200_000 };

/** One vitest for all faults of a copy: starting vitest takes longer than the tests. A new one after tests that did not end. */
export class Trial {
  readonly #copy: Copy;

  constructor(copy: Copy) {
    this.#copy = copy;
  }

  /** Which test next to the code detects this fault, or else which invariant of the simulation. `undefined`: it survives. */
  tryOut(fault: Fault): Promise<string | undefined> {
    return this.#with(fault, async () => {
      const test = await this.#tests([testsOf(fault.file)]);
      return test !== undefined || !isStrict(fault) ? test : simulation(this.#copy);
    });
  }

  /** Which invariant of the simulation is broken, without any other test. */
  simulate(fault: Fault): Promise<string | undefined> {
    return this.#with(fault, () => simulation(this.#copy, ALONE));
  }

  /** Without a fault nothing may fail: every fault would count as detected otherwise. */
  async tryNothing(isAlone: boolean): Promise<void> {
    const failed = await simulation(this.#copy, isAlone ? ALONE : undefined);
    if (failed !== undefined) throw new Failure(`without any fault, this fails: ${failed}`);
  }

  async #with<T>(fault: Fault, work: () => Promise<T>): Promise<T> {
    const path = join(this.#copy.folder, fault.file);
    const before = await readFile(path, 'utf8');
    const write = async (text: string): Promise<void> => {
      await writeFile(path, text);
      this.#copy.vitest?.invalidateFile(path);
    };
    await write(withFault(before, fault));
    try {
      return await work();
    } finally {
      await write(before);
    }
  }

  async #tests(paths: readonly string[]): Promise<string | undefined> {
    const vitest = this.#copy.vitest ?? (await startVitest(this.#copy, { bail: 1 }));
    const specifications = await vitest.globTestSpecifications([...paths]);
    if (specifications.length === 0) throw new Failure(`there are no tests in ${paths.join(', ')}.`);
    const late = sleep(TIMEOUT_MS, 'late' as const, { ref: false });
    const result = await Promise.race([vitest.runTestSpecifications(specifications, true), late]);
    if (result !== 'late') return firstFailure(result, specifications);
    await stopVitest(this.#copy);
    return `the tests do not end within ${TIMEOUT_MS / 1000} s`;
  }
}

/** The tests next to the code; those of rules are next to their folder. */
const testsOf = (file: string): string => `${dirname(file).replace(/\/rules$/, '')}/`;

/** What a few worlds, always the same, reach in a copy with switches. */
export async function reachedInWorlds({ folder }: Copy): Promise<Pick<Reached, 'reached' | 'asked'>> {
  const { stdout } = await run(process.execPath, [join(folder, 'tools/mutants/worlds.ts')], { timeoutMs: TIMEOUT_MS });
  return JSON.parse(stdout) as Reached;
}

/** The first invariant that breaks in a few worlds, always the same. */
async function simulation({ folder }: Copy, more: Partial<typeof ALONE> = {}): Promise<string | undefined> {
  const { code, stdout } = await run(process.execPath, [join(folder, 'test/sim/look.ts')], {
    cwd: folder,
    allowFailure: true,
    timeoutMs: more.timeoutMs ?? TIMEOUT_MS,
    ...(more.steps !== undefined && { env: { STEPS: String(more.steps) } }),
  });
  return code === 0 ? undefined : `simulation: ${stdout.trim()}`;
}
