/** Copies of the checkout into which faults are injected. The checkout itself is not changed. */
import { cp, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createVitest, type InlineConfig, type TestRunResult, type TestSpecification, type Vitest } from 'vitest/node';
import { withUndo } from '../interrupt.ts';
import { root } from '../paths.ts';

const COPIED = ['src', 'local', 'test', 'tools', 'package.json', 'tsconfig.json', 'vitest.config.ts'];

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

export interface Copy {
  readonly folder: string;
  /** The test run in progress: it would write into a folder that is being deleted. */
  vitest?: Vitest | undefined;
}

export async function withCopy<T>(work: (copy: Copy) => Promise<T>): Promise<T> {
  let copy: Copy | undefined;
  const remove = async (): Promise<void> => {
    if (!copy) return;
    await stopVitest(copy);
    await rm(copy.folder, { recursive: true, force: true });
  };
  return withUndo(remove, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'etcd-operator-mutants-'));
    copy = { folder };
    for (const name of COPIED) await cp(join(root, name), join(folder, name), { recursive: true });
    await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
    return work(copy);
  });
}

/** The unit tests of the copy, in one thread: they are small, and share their imports. */
export async function startVitest(copy: Copy, more: InlineConfig): Promise<Vitest> {
  const before = SIGNALS.map((signal) => process.listeners(signal));
  copy.vitest = await createVitest('test', {
    root: copy.folder,
    config: false,
    include: ['src/**/*.test.ts'],
    watch: false,
    update: 'none',
    pool: 'threads',
    maxWorkers: 1,
    isolate: false,
    reporters: [{}],
    ...more,
  });
  // vitest exits a millisecond after a signal, and the copies would not be removed.
  for (const [i, signal] of SIGNALS.entries())
    for (const listener of process.listeners(signal)) if (!before[i]?.includes(listener)) process.off(signal, listener);
  return copy.vitest;
}

/** The first cancel waits for a thread that may be in an endless loop; the second ends it. */
export async function stopVitest(copy: Copy): Promise<void> {
  const { vitest } = copy;
  copy.vitest = undefined;
  await Promise.all([vitest?.cancelCurrentRun('test-failure'), vitest?.cancelCurrentRun('test-failure')]);
  await vitest?.close();
}

/** The first test that fails, or whose file cannot be loaded. */
export function firstFailure(
  { testModules, unhandledErrors }: TestRunResult,
  specifications: readonly TestSpecification[],
): string | undefined {
  const asked = new Set(specifications.map(({ moduleId }) => moduleId));
  // It also contains the failures of earlier faults: each fault would count as detected.
  for (const file of testModules.filter(({ moduleId }) => asked.has(moduleId))) {
    const [error] = file.errors();
    if (error) return `${file.relativeModuleId} cannot be loaded: ${error.message}`;
    for (const test of file.children.allTests('failed')) return test.name;
  }
  return unhandledErrors.length > 0 ? `an error outside any test: ${String(unhandledErrors[0])}` : undefined;
}
