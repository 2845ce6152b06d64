/** `./dev gen`: writes the generated files, or reports which of them no longer match their sources. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, extname, join } from 'node:path';
import { packageProgram, root } from '../paths.ts';

import { run } from '../process.ts';
import { Failure, say, UsageFailure } from '../terminal.ts';

/** The generated files whose content differs from the checkout, with the content that they should have. */
export async function drifted(): Promise<ReadonlyMap<string, string>> {
  const { generate } = await import('../gen/all.ts');
  const changed = new Map<string, string>();
  for (const [path, content] of await generate()) {
    const wanted = await format(path, content);
    const present = await readFile(join(root, path), 'utf8').catch(() => undefined);
    if (present !== wanted) changed.set(path, wanted);
  }
  return changed;
}

/** Generated sources have to satisfy the same format check as written ones. Files that Biome is configured to ignore come back unchanged. */
async function format(path: string, content: string): Promise<string> {
  if (!['.ts', '.js', '.json'].includes(extname(path))) return content;
  const args = [packageProgram('biome'), 'check', '--write', `--stdin-file-path=${path}`];
  return (await run(process.execPath, args, { cwd: root, input: content })).stdout;
}

export async function gen(args: readonly string[]): Promise<number> {
  const check = args[0] === '--check';
  if (args.length > (check ? 1 : 0)) throw new UsageFailure('./dev gen takes --check or nothing.');
  const changed = await drifted();
  if (check && changed.size > 0) throw new Failure(driftSentence([...changed.keys()]));
  for (const [path, content] of changed) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), content);
    say(`wrote ${path}`);
  }
  if (changed.size === 0) say('The generated files are up to date.');
  return 0;
}

export const driftSentence = (paths: readonly string[]): string =>
  `${paths.join(', ')} ${paths.length === 1 ? 'does' : 'do'} not match the sources: run ./dev gen and commit the result.`;
