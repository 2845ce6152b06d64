import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';
import { run } from './run.ts';
import type { Script } from './script.ts';

/** A failure that the simulation once found: a sentence on its cause, and the script that reproduces it. */
interface Counterexample {
  readonly why: string;
  readonly script: Script;
}

const files = globSync('counterexamples/*.json', { cwd: import.meta.dirname }).sort();

test.each(files)('%s does not break any more', async (file) => {
  const { script, why } = JSON.parse(readFileSync(join(import.meta.dirname, file), 'utf8')) as Counterexample;
  expect(why, `${basename(file)} says why it is kept`).not.toBe('');
  const { broken, story } = await run(script, true);
  expect(broken, story.join('\n')).toBeUndefined();
});

test.each(['rebooted-memory-seed', 'user-ca-replaced-without-mtls'])('%s has the same story again', async (name) => {
  const file = join(import.meta.dirname, 'counterexamples', `${name}.json`);
  const { script } = JSON.parse(readFileSync(file, 'utf8')) as Counterexample;
  expect((await run(script, true)).story).toEqual((await run(script, true)).story);
});
