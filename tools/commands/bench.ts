/** `./dev bench [name]`: runs the benchmarks in `bench/`, prints their figures and stores them in `.cache/bench`. */
import { globSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os';
import { basename, join } from 'node:path';
import { type Figure, table } from '../figures.ts';
import { nearest } from '../nearest.ts';
import { cacheDir, root } from '../paths.ts';
import { say, step, UsageFailure } from '../terminal.ts';

/** What every file in `bench/` exports. */
interface Benchmark {
  readonly about: string;
  readonly measure: (progress: (detail: string) => void) => Promise<readonly Figure[]>;
}

export async function bench(args: readonly string[]): Promise<number> {
  const names = globSync('bench/*.ts', { cwd: root })
    .map((file) => basename(file, '.ts'))
    .toSorted();
  for (const name of select(names, args)) {
    const { about, measure } = (await import(join(root, 'bench', `${name}.ts`))) as Benchmark;
    const [load = 0] = loadavg();
    const figures = await step(`${name}: ${about}`, measure);
    process.stdout.write(`${table(figures)}\n`);
    if (load > availableParallelism())
      say(
        `  The machine was busy before the benchmark started (load ${load.toFixed(1)}): run it again when the machine is idle.`,
      );
    say(`  kept in ${await keep(name, figures, load)}`);
  }
  return 0;
}

function select(names: readonly string[], args: readonly string[]): readonly string[] {
  const [wanted, ...rest] = args;
  if (rest.length > 0) throw new UsageFailure('./dev bench takes one name at most.');
  if (wanted === undefined || names.includes(wanted)) return wanted === undefined ? names : [wanted];
  const meant = nearest(wanted, names);
  throw new UsageFailure(
    `there is no benchmark "${wanted}"; ${meant ? `did you mean ${meant}?` : `there are: ${names.join(', ')}.`}`,
  );
}

/** A figure means nothing without the machine it was taken on. */
async function keep(name: string, figures: readonly Figure[], load: number): Promise<string> {
  const folder = join(cacheDir, 'bench');
  const file = join(folder, `${name}.json`);
  const machine = {
    cores: availableParallelism(),
    model: cpus()[0]?.model ?? 'unknown',
    memoryGiB: Math.round(totalmem() / 1024 ** 3),
    node: process.version,
    load: Math.round(load * 10) / 10,
  };
  await mkdir(folder, { recursive: true });
  await writeFile(file, `${JSON.stringify({ name, taken: new Date().toISOString(), machine, figures }, null, 2)}\n`);
  return file;
}
