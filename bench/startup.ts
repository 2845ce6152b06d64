/** How long a person waits for the everyday commands once all is installed. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Figure, measureTimes } from '../tools/figures.ts';
import { bundle } from '../tools/image/bundle.ts';
import { root } from '../tools/paths.ts';
import { run } from '../tools/process.ts';

export const about = 'what the everyday commands take';

const dev = (...args: readonly string[]) => run(join(root, 'dev'), args);

export async function measure(progress: (detail: string) => void): Promise<readonly Figure[]> {
  progress('./dev');
  const listing = await measureTimes('./dev', 5, () => dev());
  progress('./dev test unit');
  const unit = await measureTimes('./dev test unit', 3, () => dev('test', 'unit'));
  progress('operator --help');
  return [listing, unit, await operatorHelp()];
}

/** Starts the operator as its image does: one bundled file on the pinned Node. */
async function operatorHelp(): Promise<Figure> {
  const folder = await mkdtemp(join(tmpdir(), 'etcd-operator-bench-'));
  try {
    const file = join(folder, 'manager.mjs');
    await writeFile(file, (await bundle('src/bin/operator.ts')).code);
    return await measureTimes('operator --help', 5, () => run(process.execPath, [file, '--help']));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
