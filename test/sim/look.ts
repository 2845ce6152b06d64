/** Runs a fixed set of worlds as a quick check, and prints the first invariant that is violated. */
import { run } from './run.ts';
import { search } from './search.ts';

const STEPS = Number(process.env['STEPS'] ?? 90_000);

let stepsDone = 0;
const found = await search({
  seed: 1,
  steps: STEPS,
  shrink: false,
  seen: ({ steps }) => {
    stepsDone += steps;
  },
});
if (found) {
  const { broken } = await run(found.script);
  process.stdout.write(`${broken} (after ${stepsDone} steps)\n`);
  process.exit(1);
}
