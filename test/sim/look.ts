/** A look at some worlds, always the same, for whoever wants to know soon whether something is broken: the first sentence. */
import { run } from './run.ts';
import { search } from './search.ts';

const STEPS = Number(process.env['STEPS'] ?? 90_000);

let looked = 0;
const found = await search({
  seed: 1,
  steps: STEPS,
  shrink: false,
  seen: ({ steps }) => {
    looked += steps;
  },
});
if (found) {
  const { broken } = await run(found.script);
  process.stdout.write(`${broken} (after ${looked} steps)\n`);
  process.exit(1);
}
