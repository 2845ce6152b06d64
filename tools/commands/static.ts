/** `./dev fmt` and `./dev lint`. */

import { packageProgram, root } from '../paths.ts';
import { handOver } from '../process.ts';
import { Failure, say, step, UsageFailure } from '../terminal.ts';
import { sourceChecks } from '../test/static.ts';

function refuseArguments(command: string, args: readonly string[]): void {
  if (args.length > 0) throw new UsageFailure(`./dev ${command} takes no arguments, and got "${args.join(' ')}".`);
}

export function fmt(args: readonly string[]): Promise<number> {
  refuseArguments('fmt', args);
  return handOver(process.execPath, [packageProgram('biome'), 'check', '--write', '.'], { cwd: root });
}

/** Runs every check even when one fails: the user wants the whole list. */
export async function lint(args: readonly string[]): Promise<number> {
  refuseArguments('lint', args);
  const failed: string[] = [];
  for (const { name, check } of sourceChecks) {
    await step(name, async () => {
      const log = await check();
      if (log !== undefined) throw new Failure(log);
    }).catch((error: unknown) => {
      if (!(error instanceof Failure)) throw error;
      say(error.message);
      failed.push(name);
    });
  }
  if (failed.length === 0) return 0;
  throw new Failure(
    `${failed.join(', ')} failed${failed.includes('format') ? '; ./dev fmt corrects the format' : ''}.`,
  );
}
