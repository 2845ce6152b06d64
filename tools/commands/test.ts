/** `./dev test`: the stages in order, the quick ones first; it stops at the first that fails and always ends with the tally. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { errnoSentence } from '../errno.ts';
import { wasInterrupted } from '../interrupt.ts';
import { logsDir } from '../paths.ts';
import { Failure, say, step, UsageFailure } from '../terminal.ts';
import { type Level, levels, parseArguments, type TestRequest } from '../test/arguments.ts';
import { withTestCluster } from '../test/cluster.ts';
import { filesOf, namedOnly, requiredLevels } from '../test/levels.ts';
import { staticChecks } from '../test/static.ts';
import { add, nothing, oneFailed, onePassed, tallyLine } from '../test/tally.ts';
import { type FlakyTest, type Outcome, runVitest, TestsFailed, type VitestRequest } from '../test/vitest.ts';

interface Stage {
  readonly name: string;
  readonly run: (alreadyRerun: number) => Promise<Outcome>;
}

export async function test(args: readonly string[]): Promise<number> {
  const request = parseArguments(args);
  const stages = request.level ? [namedLevel(request.level, request)] : everything(request);
  let tally = nothing;
  const flaky: string[] = [];
  for (const stage of stages) {
    const outcome = await runStage(stage, request, flaky.length);
    if (wasInterrupted()) return 130;
    tally = add(tally, outcome.tally);
    for (const test of outcome.flaky ?? []) flaky.push(keepBothLogs(test, flaky.length + 1));
    if (outcome.tally.failed > 0) break;
  }
  for (const line of flaky) process.stdout.write(`flaky: ${line}\n`);
  process.stdout.write(`${tallyLine(tally)}\n`);
  return tally.failed > 0 ? 1 : 0;
}

function namedLevel(level: Level, request: TestRequest): Stage {
  if (filesOf(level).length === 0) throw new UsageFailure(`there are no ${level} tests yet.`);
  return levelStage(level, request);
}

function everything(request: TestRequest): readonly Stage[] {
  const usual = levels.filter((level) => !namedOnly.includes(level));
  const present = usual.filter((level) => filesOf(level).length > 0 || requiredLevels.includes(level));
  const checks = staticChecks.map(({ name, check }) => ({
    name,
    run: () =>
      step(name, async () => {
        const log = await check();
        if (log !== undefined) throw new Failure(log);
        return { tally: onePassed, log: '' };
      }),
  }));
  return [...checks, ...present.map((level) => levelStage(level, request))];
}

/** Builds what tests need before they start: a cold build takes longer than a test's timeout, and parallel test files would build twice. */
const preparations: Partial<Record<Level, () => Promise<void>>> = {
  contract: async () => {
    const { build } = await import('../../local/binaries.ts');
    await build(['etcd-3.5', 'etcd-3.6', 'etcd-3.7', 'kubernetes', 'versitygw', 'fake-gcs-server', 'azurite']);
  },
  sweep: async () => {
    const { build } = await import('../../local/binaries.ts');
    await build(['kubernetes', 'etcd-3.6']);
  },
  integration: async () => {
    const { build } = await import('../../local/binaries.ts');
    await build(['kubernetes', 'etcd-3.5', 'etcd-3.5.10', 'etcd-3.6', 'etcd-3.7', 'helm', 'cert-manager', 'versitygw']);
  },
  e2e: async () => {
    const { build } = await import('../../local/binaries.ts');
    await build(['cert-manager']); // `up` builds the rest
  },
};

type TestRun = Pick<VitestRequest, 'alreadyRerun' | 'beforeRerun'>;

function levelStage(level: Level, { level: named, filter, all }: TestRequest): Stage {
  const tests = (env: Readonly<Record<string, string>>, rest: TestRun): Promise<Outcome> =>
    step(level, (progress) =>
      runVitest({
        ...rest,
        level,
        filter,
        env: { ...env, DEV_TEST_ALL: all ? '1' : undefined },
        progress,
        onLine: named ? say : undefined, // a user who names one level wants to see its tests
      }),
    );
  const run = async (alreadyRerun: number): Promise<Outcome> => {
    await preparations[level]?.();
    const outcome = await (level === 'e2e'
      ? withTestCluster((env, beforeRerun) => tests(env, { alreadyRerun, beforeRerun }))
      : tests({}, { alreadyRerun }));
    say(`    ${level}: ${tallyLine(outcome.tally)}`);
    return outcome;
  };
  return { name: level, run };
}

/** A stage that cannot start, or that hits a bug of the tools, has failed: the last line must report it too. */
async function runStage({ name, run }: Stage, { level: named }: TestRequest, alreadyRerun: number): Promise<Outcome> {
  try {
    const outcome = await run(alreadyRerun);
    keepLog(name, outcome.log);
    return outcome;
  } catch (error) {
    if (wasInterrupted()) return { tally: oneFailed, log: '' };
    const outcome = error instanceof TestsFailed ? error.outcome : { tally: oneFailed, log: describeError(error) };
    const file = keepLog(name, outcome.log);
    const shown = named && error instanceof TestsFailed && outcome.log.includes('\n');
    if (!shown) say(outcome.log);
    say(`${name} failed${file ? `; its log is in ${file}` : ''}.`);
    return outcome;
  }
}

function describeError(error: unknown): string {
  if (error instanceof Failure) return error.message;
  const refused = errnoSentence(error);
  if (refused !== undefined) return refused;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** Keeps the log of the failed run beside that of the passed one: only the first shows what to fix. */
function keepBothLogs({ test, logs: [failed, passed] }: FlakyTest, number: number): string {
  const kept = [keepLog(`flaky-${number}-failed`, failed), keepLog(`flaky-${number}-passed`, passed)];
  return `${test} failed, then passed alone${kept[0] ? `; the logs are ${kept.join(' and ')}` : ''}`;
}

/** Unit tests also run in a checkout that is read-only. */
function keepLog(name: string, log: string): string | undefined {
  const file = join(logsDir, `${name.replaceAll(' ', '-')}.log`);
  try {
    mkdirSync(logsDir, { recursive: true });
    writeFileSync(file, `${log}\n`);
    return file;
  } catch {
    return undefined;
  }
}
