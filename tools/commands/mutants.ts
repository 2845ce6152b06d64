/**
 * `./dev mutants [--sim|--record] [text]`: injects deliberate faults, one at a time. Fails when the tests miss one, or of those in
 * expressions a larger share than recorded; with --sim it injects the dangerous ones, and the simulation alone has to detect them.
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { refuseWhenInterrupted } from '../interrupt.ts';
import { type Copy, withCopy } from '../mutants/copy.ts';
import { type Fault, isStrict, lineOf } from '../mutants/fault.ts';
import { allFaults, faultOf, sourceOf } from '../mutants/list.ts';
import { DANGEROUS } from '../mutants/sentences.ts';
import { noticedShares, type Shares, tooLow } from '../mutants/share.ts';
import { installSwitches, type Reached, record, trySwitched } from '../mutants/switched.ts';
import { reachedInWorlds, Trial } from '../mutants/trial.ts';
import { root } from '../paths.ts';
import { type Progress, say, step, UsageFailure } from '../terminal.ts';

const SHARES = join(root, 'tools/mutants/share.json');
/** These tests measure time, and switches cost time. */
const TIMED = ['**/hostile.test.ts'];
const WORKERS = availableParallelism();

export async function mutants(args: readonly string[]): Promise<number> {
  const isAlone = args.includes('--sim');
  const [text = '', ...rest] = args.filter((arg) => arg !== '--sim' && arg !== '--record');
  if (rest.length > 0) throw new UsageFailure('./dev mutants takes one text at most.');
  const chosen = (isAlone ? DANGEROUS.map(faultOf) : allFaults()).filter(({ file, what }) =>
    `${file}: ${what}`.includes(text),
  );
  if (chosen.length === 0) throw new UsageFailure(`no fault has "${text}" in its file or its description.`);
  const noticed = isAlone ? await simulateAll(chosen) : await tryAll(chosen);
  const survivors = chosen.filter((fault) => !noticed.has(fault));
  for (const fault of chosen) if (isStrict(fault) || !noticed.has(fault)) print(fault, noticed.get(fault));
  process.stdout.write(`${chosen.length} faults: ${noticed.size} noticed, ${survivors.length} survived\n`);
  const missed = survivors.filter(isStrict);
  if (missed.length > 0) say(`the tests must detect all faults outside expressions, and missed ${missed.length}.`);
  const isBelow = !isAlone && text === '' && isShareBelow(chosen, noticed, args.includes('--record'));
  return missed.length > 0 || isBelow ? 1 : 0;
}

const print = (fault: Fault, by: string | undefined): void => {
  const where = `${fault.file}:${lineOf(sourceOf(fault.file), fault.start)}`;
  process.stdout.write(`${by === undefined ? '✗' : '✓'} ${where}: ${fault.what}\n      ${by ?? 'SURVIVED'}\n`);
};

/** Whether a smaller share is detected than recorded. With `isRecording`, records the current shares. */
function isShareBelow(chosen: readonly Fault[], noticed: ReadonlyMap<Fault, string>, isRecording: boolean): boolean {
  const shares = noticedShares(chosen, (fault) => noticed.has(fault));
  for (const [folder, share] of Object.entries(shares)) process.stdout.write(`${folder}: ${share} % noticed\n`);
  if (isRecording) writeFileSync(SHARES, `${JSON.stringify(shares, undefined, 2)}\n`);
  const low = tooLow(shares, JSON.parse(readFileSync(SHARES, 'utf8')) as Shares);
  for (const sentence of low) say(sentence);
  return low.length > 0;
}

type Noticed = Map<Fault, string>;

async function simulateAll(chosen: readonly Fault[]): Promise<Noticed> {
  await step('without a fault', () => withCopy((copy) => new Trial(copy).tryNothing(true)));
  return step(`${chosen.length} faults`, (progress) =>
    inTurns(chosen, (trial, fault) => trial.simulate(fault), progress),
  );
}

async function tryAll(chosen: readonly Fault[]): Promise<Noticed> {
  const reached = await step('without a fault', () => recordAll(chosen));
  const noticed = await step(`${chosen.length} faults`, (progress) => switchAll(chosen, reached, progress));
  for (const [fault, why] of await exclusive(chosen, reached)) noticed.set(fault, why);
  const atLoad = new Set(reached.flatMap(({ test, reached: ids }) => (test === '' ? ids : [])));
  const left = chosen.filter(
    (fault, id) => !noticed.has(fault) && (isStrict(fault) || (atLoad.has(id) && fault.row === undefined)),
  );
  if (left.length === 0) return noticed;
  if (left.some(isStrict))
    await step('the simulation without a fault', () => withCopy((copy) => new Trial(copy).tryNothing(false)));
  const more = await step(`${left.length} faults in the source`, (progress) =>
    inTurns(left, (trial, fault) => trial.tryOut(fault), progress),
  );
  return new Map([...noticed, ...more]);
}

/** Swaps of rules that never both decide: neither for the observed states of the tests, nor in a few worlds. */
async function exclusive(chosen: readonly Fault[], inTests: readonly Reached[]): Promise<Noticed> {
  const isSwap = (id: number): boolean => chosen[id]?.kind === 'order';
  const together = new Set(inTests.flatMap(({ reached }) => reached.filter(isSwap)));
  const apart = [...chosen.keys()].filter((id) => isSwap(id) && !together.has(id));
  if (apart.length === 0) return new Map();
  const [inWorlds] = await step(`${apart.length} swaps in the simulation`, () =>
    onCopies(chosen, apart, reachedInWorlds, 1),
  );
  for (const id of inWorlds?.reached ?? []) together.add(id);
  const states = (id: number): number =>
    [...inTests, ...(inWorlds ? [inWorlds] : [])]
      .flatMap(({ asked }) => asked)
      .reduce((sum, [swap, n]) => sum + (swap === id ? n : 0), 0);
  const still = apart.filter((id) => !together.has(id));
  return new Map(still.map((id) => [chosen[id] as Fault, `exclusive: not both decide in any of ${states(id)} states`]));
}

/** Each worker has a copy with all switches, and its part of the work. */
const onCopies = <T, R>(
  chosen: readonly Fault[],
  work: readonly T[],
  how: (copy: Copy, part: T[]) => Promise<R>,
  workers = WORKERS,
): Promise<R[]> =>
  Promise.all(
    Array.from({ length: workers }, (_, worker) =>
      withCopy(async (copy) => {
        await installSwitches(copy, chosen);
        return how(
          copy,
          work.filter((__, i) => i % workers === worker),
        );
      }),
    ),
  );

async function recordAll(chosen: readonly Fault[]): Promise<readonly Reached[]> {
  const files = globSync('src/**/*.test.ts', { cwd: root, exclude: TIMED }).toSorted();
  return (await onCopies(chosen, files, record)).flat();
}

async function switchAll(chosen: readonly Fault[], reached: readonly Reached[], progress: Progress): Promise<Noticed> {
  let sum = 0;
  const parts = await onCopies(chosen, [...chosen.keys()], (copy, ids) =>
    trySwitched(copy, ids, reached, (more) => {
      sum += more;
      progress(`${sum} noticed`);
    }),
  );
  return new Map(parts.flatMap((part) => [...part].map(([id, by]) => [chosen[id] as Fault, by] as const)));
}

/** As many at once as there are cores, each in its own copy. */
async function inTurns(
  chosen: readonly Fault[],
  how: (trial: Trial, fault: Fault) => Promise<string | undefined>,
  progress: Progress,
): Promise<Noticed> {
  const noticed: Noticed = new Map();
  const left = [...chosen];
  const worker = async (copy: Copy): Promise<void> => {
    const trial = new Trial(copy);
    for (let fault = left.shift(); fault; fault = left.shift()) {
      refuseWhenInterrupted();
      const by = await how(trial, fault);
      if (by !== undefined) noticed.set(fault, by);
      else if (isStrict(fault)) say(`✗ ${fault.file}: ${fault.what}`);
      progress(`${chosen.length - left.length} tried, ${noticed.size} noticed`);
    }
  };
  await Promise.all(Array.from({ length: Math.min(WORKERS, chosen.length) }, () => withCopy(worker)));
  return noticed;
}
