/** `./dev test`: the quick stages first, in order; it stops at the first that fails and always ends with the tally. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Part } from '../../local/binaries.ts';
import { errnoSentence } from '../errno.ts';
import { wasInterrupted } from '../interrupt.ts';
import { logsDir } from '../paths.ts';
import { Failure, say, step, UsageFailure } from '../terminal.ts';
import { type Level, levels, parseArguments, type TestRequest } from '../test/arguments.ts';
import { withTestCluster } from '../test/cluster.ts';
import { filesOf, namedOnly, requiredLevels } from '../test/levels.ts';
import { Reruns } from '../test/rerun.ts';
import { staticChecks } from '../test/static.ts';
import { add, nothing, oneFailed, onePassed, tallyLine } from '../test/tally.ts';
import { type FlakyTest, type Outcome, runVitest, TestsFailed, type VitestRequest } from '../test/vitest.ts';

interface Stage {
  readonly name: string;
  readonly run: (reruns: Reruns) => Promise<Outcome>;
}

/** Stages that run one after the other; the lanes of a round run side by side. */
type Lane = readonly Stage[];
type Round = readonly Lane[];

export async function test(args: readonly string[]): Promise<number> {
  const request = parseArguments(args);
  const rounds = request.level ? [[[namedLevel(request.level, request)]]] : everything(request);
  const reruns = new Reruns();
  let tally = nothing;
  const flaky: string[] = [];
  const runLane = async (lane: Lane): Promise<void> => {
    for (const stage of lane) {
      const outcome = await runStage(stage, request, reruns);
      tally = add(tally, outcome.tally);
      for (const test of outcome.flaky ?? []) flaky.push(keepBothLogs(test, flaky.length + 1));
      if (wasInterrupted() || outcome.tally.failed > 0) return;
    }
  };
  for (const round of rounds) {
    await Promise.all(round.map((lane) => reruns.lane(() => runLane(lane))));
    if (wasInterrupted()) return 130;
    if (tally.failed > 0) break;
  }
  for (const line of flaky) process.stdout.write(`flaky: ${line}\n`);
  process.stdout.write(`${tallyLine(tally)}\n`);
  return tally.failed > 0 ? 1 : 0;
}

function namedLevel(level: Level, request: TestRequest): Stage {
  if (filesOf(level).length === 0) throw new UsageFailure(`there are no ${level} tests yet.`);
  return levelStage(level, request);
}

/**
 * The end-to-end tests mostly wait for Pods, those before them for a core: side by side they take as long as the longer lane.
 * Everything is built before: a compiler beside tests with time limits would fail them.
 */
function everything(request: TestRequest): readonly Round[] {
  const usual = levels.filter((level) => !namedOnly.includes(level));
  const present = usual.filter((level) => filesOf(level).length > 0 || requiredLevels.includes(level));
  const stages = (...wanted: readonly Level[]): Lane =>
    present.filter((level) => wanted.includes(level)).map((level) => levelStage(level, request));
  const checks = staticChecks.map(({ name, check }) => ({
    name,
    run: () =>
      step(name, async () => {
        const log = await check();
        if (log !== undefined) throw new Failure(log);
        return { tally: onePassed, log: '' };
      }),
  }));
  const builds = {
    name: 'programs of the tests',
    run: () => prepare(present).then(() => ({ tally: nothing, log: '' })),
  };
  return [[[...checks, ...stages('unit', 'sim'), builds]], [stages('contract', 'integration'), stages('e2e')]];
}

/** What the tests of a level start. A cold build takes longer than a test's timeout, and parallel test files would build twice. */
const programs: Partial<Record<Level, readonly Part[]>> = {
  contract: ['etcd-3.5', 'etcd-3.6', 'etcd-3.7', 'kubernetes', 'versitygw', 'fake-gcs-server', 'azurite'],
  sweep: ['kubernetes', 'etcd-3.6'],
  fuzz: ['kubernetes', 'etcd-3.6'],
  integration: ['kubernetes', 'etcd-3.5', 'etcd-3.5.10', 'etcd-3.6', 'etcd-3.7', 'helm', 'cert-manager', 'versitygw'],
  e2e: ['kubernetes', 'coredns', 'helm', 'local-path-provisioner', 'pause', 'etcd-3.6', 'versitygw', 'cert-manager'],
};

async function prepare(of: readonly Level[]): Promise<void> {
  const parts = new Set(of.flatMap((level) => programs[level] ?? []));
  if (parts.size === 0) return; // unit tests also run where the programs cannot be built
  const { build } = await import('../../local/binaries.ts');
  await build([...parts]);
}

type TestRun = Pick<VitestRequest, 'reruns' | 'beforeRerun'>;

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
  const run = async (reruns: Reruns): Promise<Outcome> => {
    await prepare([level]);
    const outcome = await (level === 'e2e'
      ? withTestCluster((env, beforeRerun) => tests(env, { reruns, beforeRerun }))
      : tests({}, { reruns }));
    say(`    ${level}: ${tallyLine(outcome.tally)}`);
    return outcome;
  };
  return { name: level, run };
}

/** A stage that cannot start, or that hits a bug of the tools, has failed: the last line must report it too. */
async function runStage({ name, run }: Stage, { level: named }: TestRequest, reruns: Reruns): Promise<Outcome> {
  try {
    const outcome = await run(reruns);
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
