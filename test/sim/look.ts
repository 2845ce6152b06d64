/** A look at a few worlds, always the same, for whoever wants to know soon whether something is broken: the first sentence. */
import fc from 'fast-check';
import { run } from './run.ts';
import { SCOPE } from './scope.ts';
import { scripts } from './script.ts';

const WORLDS = 60;

for (const script of fc.sample(scripts(SCOPE), { numRuns: WORLDS, seed: 1 })) {
  const { broken } = await run(script);
  if (broken === undefined) continue;
  process.stdout.write(`${broken}\n`);
  process.exit(1);
}
