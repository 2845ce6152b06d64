/** With `--all`, the operator is killed at random moments of every journey that shares it with others. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll } from 'vitest';
import { killOperator } from '../support/journeys/operator.ts';

/** Its successor waits for the dead process's Lease, and must have time to act before it is killed too. */
const LIVES_MS = { least: 40_000, most: 120_000 };

const over = new AbortController();
let killing: Promise<number> = Promise.resolve(0);

async function killAgainAndAgain(): Promise<number> {
  for (let kills = 0; ; kills++) {
    const ms = LIVES_MS.least + Math.random() * (LIVES_MS.most - LIVES_MS.least);
    await sleep(ms, undefined, { signal: over.signal }).catch(() => undefined);
    if (over.signal.aborted) return kills;
    await killOperator().catch(() => undefined); // a journey beside this one has just killed it
  }
}

beforeAll(() => {
  if (process.env['DEV_TEST_ALL']) killing = killAgainAndAgain();
});
afterAll(async () => {
  over.abort();
  const kills = await killing;
  if (kills > 0) process.stdout.write(`the operator was killed ${kills} times meanwhile\n`);
});
