/** Tries faults in a copy of the checkout, one at a time, and tells what notices them. The checkout itself is not touched. */
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createVitest, type Vitest } from 'vitest/node';
import { withUndo } from '../interrupt.ts';
import { root } from '../paths.ts';
import { run } from '../process.ts';
import { Failure } from '../terminal.ts';
import type { Mutant } from './mutant.ts';

const COPIED = ['src', 'local', 'test', 'tools', 'package.json', 'tsconfig.json', 'vitest.config.ts'];
/** A fault can make a test or a world wait for ever; on a busy machine, either takes half a minute. */
const TIMEOUT_MS = 180_000;
/** As much as the simulation looks at in CI: what it does not notice there, it does not notice. */
const ALONE = { steps: 1_000_000, timeoutMs: 1_200_000 };

export interface Copy {
  readonly folder: string;
  /** One for all faults: to start one takes longer than to run the tests. Another one after tests that did not end. */
  vitest: Vitest;
}

export async function withCopy<T>(work: (copy: Copy) => Promise<T>): Promise<T> {
  let folder = '';
  let copy: Copy | undefined;
  const remove = async (): Promise<void> => {
    await copy?.vitest.close();
    if (folder) await rm(folder, { recursive: true, force: true });
  };
  return withUndo(remove, async () => {
    folder = await mkdtemp(join(tmpdir(), 'etcd-operator-mutants-'));
    for (const name of COPIED) await cp(join(root, name), join(folder, name), { recursive: true });
    await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
    copy = { folder, vitest: await startVitest(folder) };
    return work(copy);
  });
}

/** One thread for all files: they are small, and share what they import. It stops at the first that fails. */
const startVitest = (folder: string): Promise<Vitest> =>
  createVitest('test', {
    root: folder,
    config: join(folder, 'vitest.config.ts'),
    configLoader: 'native',
    project: ['unit'],
    watch: false,
    pool: 'threads',
    maxWorkers: 1,
    isolate: false,
    bail: 1,
    reporters: [{}],
  });

/** What notices this fault: a test, or a promise that the simulation sees broken. Nothing, when it survives. */
export const tryOut = (copy: Copy, mutant: Mutant): Promise<string | undefined> =>
  withFault(copy, mutant, async () => (await tables(copy, [testsOf(mutant.file)])) ?? (await simulation(copy)));

/** Which promise the simulation sees broken, without any other test. */
export const simulated = (copy: Copy, mutant: Mutant): Promise<string | undefined> =>
  withFault(copy, mutant, () => simulation(copy, ALONE));

async function withFault<T>(copy: Copy, { file, from, to }: Mutant, work: () => Promise<T>): Promise<T> {
  const path = join(copy.folder, file);
  const before = await readFile(path, 'utf8');
  const write = async (text: string): Promise<void> => {
    await writeFile(path, text);
    copy.vitest.invalidateFile(path);
  };
  await write(before.replace(from, () => to));
  try {
    return await work();
  } finally {
    await write(before);
  }
}

/** Without a fault, nothing may be noticed: everything would look noticed otherwise. */
export async function tryNothing(copy: Copy, files: readonly string[] | undefined): Promise<void> {
  const failed = files && (await tables(copy, [...new Set(files.map(testsOf))]));
  const noticed = failed ?? (await simulation(copy, files ? undefined : ALONE));
  if (noticed !== undefined) throw new Failure(`without any fault, this fails: ${noticed}`);
}

/** The tests next to the code; those of rules are next to their folder. */
const testsOf = (file: string): string => `${dirname(file).replace(/\/rules$/, '')}/`;

/** The first test that fails, or whose table cannot be made. What is no code at all is no fault that could be made. */
async function tables(copy: Copy, paths: readonly string[]): Promise<string | undefined> {
  const specifications = await copy.vitest.globTestSpecifications([...paths]);
  if (specifications.length === 0) throw new Failure(`there are no tests in ${paths.join(', ')}.`);
  const result = await inTime(copy.vitest.runTestSpecifications(specifications, true));
  if (result === 'late') {
    await stopAtOnce(copy.vitest);
    copy.vitest = await startVitest(copy.folder);
    return `the tests do not end within ${TIMEOUT_MS / 1000} s`;
  }
  const { testModules, unhandledErrors } = result;
  const asked = new Set(specifications.map(({ moduleId }) => moduleId));
  // It also has what failed under earlier faults: that would notice everything.
  for (const file of testModules.filter(({ moduleId }) => asked.has(moduleId))) {
    const [error] = file.errors();
    if (error && isNoCode(error)) throw new Failure(`${file.relativeModuleId} cannot be loaded: ${error.message}`);
    if (error) return `${file.relativeModuleId} cannot be loaded: ${error.message}`;
    for (const test of file.children.allTests('failed')) return test.name;
  }
  return unhandledErrors.length > 0 ? `an error outside any test: ${String(unhandledErrors[0])}` : undefined;
}

const isNoCode = ({ name = '', message }: { readonly name?: string; readonly message: string }): boolean =>
  /syntax|parse|transform|rolldown/i.test(`${name} ${message}`);

/** Asked once, it waits for a thread that may be in a loop; asked again, it ends it. */
async function stopAtOnce(vitest: Vitest): Promise<void> {
  await Promise.all([vitest.cancelCurrentRun('test-failure'), vitest.cancelCurrentRun('test-failure')]);
  await vitest.close();
}

/** The first promise that a few worlds, always the same, see broken. */
async function simulation({ folder }: Copy, more: Partial<typeof ALONE> = {}): Promise<string | undefined> {
  const { code, stdout } = await run(process.execPath, [join(folder, 'test/sim/look.ts')], {
    cwd: folder,
    allowFailure: true,
    timeoutMs: more.timeoutMs ?? TIMEOUT_MS,
    ...(more.steps !== undefined && { env: { STEPS: String(more.steps) } }),
  });
  return code === 0 ? undefined : `simulation: ${stdout.trim()}`;
}

async function inTime<T>(work: Promise<T>): Promise<T | 'late'> {
  const { promise: late, resolve } = Promise.withResolvers<'late'>();
  const timer = setTimeout(() => resolve('late'), TIMEOUT_MS);
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
