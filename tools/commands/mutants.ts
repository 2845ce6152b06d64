/**
 * `./dev mutants [--sim] [text]`: makes deliberate faults, one at a time, and fails when the tests do not notice one of them;
 * with --sim the most dangerous ones, and the simulation has to notice them alone.
 */
import { availableParallelism } from 'node:os';
import { refuseWhenInterrupted } from '../interrupt.ts';
import { dangerous } from '../mutants/dangerous.ts';
import { mutants as all } from '../mutants/list.ts';
import type { Mutant } from '../mutants/mutant.ts';
import { type Copy, simulated, tryNothing, tryOut, withCopy } from '../mutants/trial.ts';
import { type Progress, say, seconds, step, UsageFailure } from '../terminal.ts';

interface Tried {
  readonly mutant: Mutant;
  /** `undefined`: it survived. */
  readonly noticedBy: string | undefined;
  readonly ms: number;
}

export async function mutants(args: readonly string[]): Promise<number> {
  const alone = args.includes('--sim');
  const chosen = select(
    alone ? dangerous : all,
    args.filter((arg) => arg !== '--sim'),
  );
  const files = chosen.map(({ file }) => file);
  await step('without a fault', () => withCopy((copy) => tryNothing(copy, alone ? undefined : files)));
  const how = alone ? simulated : tryOut;
  const tried = await step(`${chosen.length} faults`, (progress) => tryAll(chosen, how, progress));
  for (const one of tried) process.stdout.write(`${line(one)}\n`);
  const survivors = tried.filter(({ noticedBy }) => noticedBy === undefined);
  process.stdout.write(`${tried.length - survivors.length} noticed, ${survivors.length} survived\n`);
  return survivors.length > 0 ? 1 : 0;
}

function select(from: readonly Mutant[], args: readonly string[]): readonly Mutant[] {
  const [text = '', ...rest] = args;
  if (rest.length > 0) throw new UsageFailure('./dev mutants takes one text at most.');
  const chosen = from.filter(({ file, lets }) => `${file}: ${lets}`.includes(text));
  if (chosen.length === 0) throw new UsageFailure(`no fault has "${text}" in its file or its sentence.`);
  return chosen;
}

const line = ({ mutant: { file, lets }, noticedBy, ms }: Tried): string =>
  noticedBy === undefined
    ? `✗ ${file}: ${lets}\n      SURVIVED (${seconds(ms)})`
    : `✓ ${file}: ${lets}\n      ${noticedBy} (${seconds(ms)})`;

/** As many at once as there are cores, each in a copy of its own. */
async function tryAll(chosen: readonly Mutant[], how: typeof tryOut, progress: Progress): Promise<readonly Tried[]> {
  const tried: Tried[] = [];
  const left = [...chosen];
  const worker = async (copy: Copy): Promise<void> => {
    for (let mutant = left.shift(); mutant; mutant = left.shift()) {
      refuseWhenInterrupted();
      const started = performance.now();
      const noticedBy = await how(copy, mutant);
      const one = { mutant, noticedBy, ms: performance.now() - started };
      tried.push(one);
      if (noticedBy === undefined) say(line(one));
      const survived = tried.filter((t) => t.noticedBy === undefined).length;
      progress(`${tried.length} tried, ${survived} survived`);
    }
  };
  const workers = Math.min(availableParallelism(), chosen.length);
  await Promise.all(Array.from({ length: workers }, () => withCopy(worker)));
  return tried.toSorted((a, b) => chosen.indexOf(a.mutant) - chosen.indexOf(b.mutant));
}
