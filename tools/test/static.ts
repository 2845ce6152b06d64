/** The checks that read the sources without running them. */
import { packageProgram, root } from '../paths.ts';

import { run } from '../process.ts';

export interface StaticCheck {
  readonly name: string;
  /** Resolves to the log of a failed check, or to nothing when all is well. */
  readonly check: () => Promise<string | undefined>;
}

const program = (name: string, ...args: readonly string[]): (() => Promise<string | undefined>) => {
  return async () => {
    const { code, stdout, stderr } = await run(process.execPath, [packageProgram(name), ...args], {
      cwd: root,
      allowFailure: true,
    });
    return code === 0 ? undefined : `${stdout}${stderr}`.trim();
  };
};

async function generated(): Promise<string | undefined> {
  const { drifted, driftSentence } = await import('../commands/gen.ts');
  const changed = await drifted();
  return changed.size === 0 ? undefined : driftSentence([...changed.keys()]);
}

export const sourceChecks: readonly StaticCheck[] = [
  { name: 'format', check: program('biome', 'check', '--error-on-warnings', '.') },
  { name: 'lint', check: program('oxlint', '--deny-warnings', '.') },
  { name: 'types', check: program('tsc', '--project', root) },
];

export const staticChecks: readonly StaticCheck[] = [...sourceChecks, { name: 'generated files', check: generated }];
