/** Runs one level of tests as its own vitest project and counts the results. */
import { mkdtempSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { withUndo } from '../interrupt.ts';
import { packageProgram, root } from '../paths.ts';
import { run } from '../process.ts';
import { Failure, interactive, type Progress, say } from '../terminal.ts';
import type { Level } from './arguments.ts';
import { filesOf } from './levels.ts';
import { MARK } from './reporter.ts';
import { describeTest, type FailedTest, type Reruns } from './rerun.ts';
import { add, countReport, failuresIn, oneFailed, type Tally, type VitestReport } from './tally.ts';

export interface VitestRequest {
  readonly level: Level;
  readonly filter?: string | undefined;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly progress: Progress;
  /** Called with every line as it arrives. */
  readonly onLine?: ((line: string) => void) | undefined;
  readonly reruns: Reruns;
  /** Called before tests are run again: keeps the logs of the failure. */
  readonly beforeRerun?: () => Promise<void>;
}

/** A test that failed and then, alone, passed. */
export interface FlakyTest {
  readonly test: string;
  readonly logs: readonly [failed: string, passed: string];
}

export interface Outcome {
  readonly tally: Tally;
  readonly log: string;
  readonly flaky?: readonly FlakyTest[];
}

interface Run extends Outcome {
  readonly failures: readonly FailedTest[];
}

/** Tests ran and some of them failed, or none ran. */
export class TestsFailed extends Failure {
  readonly outcome: Outcome;
  constructor(outcome: Outcome) {
    super(outcome.log);
    this.outcome = outcome;
  }
}

/** A filter that is part of a path picks files; any other is part of a test's name. */
export function filterArguments(filter: string, files: readonly string[]): readonly string[] {
  if (files.some((file) => file.includes(filter))) return [filter];
  return ['--testNamePattern', RegExp.escape(filter)];
}

/** Resolves when all tests passed, those that were run again included; otherwise rejects with TestsFailed. */
export async function runVitest(request: VitestRequest): Promise<Outcome> {
  const { level, filter, reruns } = request;
  const first = await runInTemporaryFolder(
    request,
    filter === undefined ? [] : filterArguments(filter, filesOf(level)),
  );
  if (first.tally.failed === 0) return first;
  const refused = reruns.refusedBecause(level, first.failures);
  if (refused !== undefined) {
    say(`    Not run again: ${refused}.`);
    throw new TestsFailed(first);
  }
  await request.beforeRerun?.();
  await reruns.untilAlone();
  return rerunEach(request, first);
}

async function rerunEach(request: VitestRequest, first: Run): Promise<Outcome> {
  let [tally, log]: [Tally, string] = [{ ...first.tally, failed: 0 }, first.log];
  const flaky: FlakyTest[] = [];
  for (const test of first.failures) {
    say(`    ${describeTest(test)} failed and is run once more, alone.`);
    const again = await runInTemporaryFolder(request, onlyThis(test));
    tally = add(tally, { ...again.tally, skipped: 0 });
    log = `${log}\n\nRun once more, alone:\n${again.log}`;
    if (again.tally.failed > 0) throw new TestsFailed({ tally, log, flaky });
    flaky.push({ test: describeTest(test), logs: [first.log, again.log] });
  }
  return { tally, log, flaky };
}

export const onlyThis = ({ file, name }: FailedTest): readonly string[] =>
  name === undefined ? [file] : [file, '--testNamePattern', `^${RegExp.escape(name)}$`];

async function runInTemporaryFolder(request: VitestRequest, selection: readonly string[]): Promise<Run> {
  let folder = '';
  const remove = async (): Promise<void> => {
    if (folder) rmSync(folder, { recursive: true, force: true });
  };
  return withUndo(remove, () => {
    folder = mkdtempSync(join(tmpdir(), 'etcd-operator-test-'));
    return runIn(folder, request, selection);
  });
}

/** The prefix of a command that the kernel ends with us, also when we are killed; empty where that program is missing. */
async function dieWithUs(): Promise<readonly string[]> {
  const words = ['setpriv', '--pdeathsig', 'KILL'] as const;
  const [program, ...args] = words;
  const works = await run(program, [...args, 'true']).catch(() => undefined);
  return works ? words : [];
}

async function runIn(
  folder: string,
  { level, filter, env, progress, onLine }: VitestRequest,
  selection: readonly string[],
): Promise<Run> {
  const report = join(folder, 'report.json');
  const reporters = [
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${report}`,
    `--reporter=${join(root, 'tools/test/reporter.ts')}`,
  ];
  const log: string[] = [];
  const lines = lineSplitter((line) => {
    if (line.startsWith(MARK)) return progress(line.slice(MARK.length));
    if (line.includes(report)) return; // vitest prints where the report is; the user does not need it
    log.push(line);
    onLine?.(line);
  });
  const colours = interactive ? { FORCE_COLOR: '1' } : { NO_COLOR: '1', FORCE_COLOR: undefined };
  // The checkout may be read-only and the user without a home: the native loader reads the configuration without
  // writing next to it, and vitest keeps a token, which is not needed here, in the folder for user data.
  const args = ['run', '--configLoader=native', `--project=${level}*`, ...reporters, ...selection];
  const [program = '', ...words] = [...(await dieWithUs()), process.execPath, packageProgram('vitest'), ...args];
  const { code } = await run(program, words, {
    cwd: root,
    env: { XDG_DATA_HOME: folder, ...colours, ...env },
    allowFailure: true,
    onOutput: lines,
  });
  const text = await readFile(report, 'utf8').catch(() => undefined);
  if (text === undefined)
    return { tally: oneFailed, log: [...log, 'vitest ended without a report.'].join('\n'), failures: [] };
  return judge(JSON.parse(text) as VitestReport, code, selection, { level, filter, log });
}

function judge(
  report: VitestReport,
  code: number,
  selection: readonly string[],
  { level, filter, log }: { readonly level: Level; readonly filter: string | undefined; readonly log: string[] },
): Run {
  const counted = countReport(report, code);
  const byName = selection.includes('--testNamePattern');
  const tally = byName ? { ...counted, skipped: 0 } : counted; // those that the name did not select
  const failures = failuresIn(report).map((test) => ({ ...test, file: relative(root, test.file) }));
  if (tally.passed + tally.failed > 0) return { tally, log: log.join('\n'), failures };
  const sentence = filter === undefined ? `No ${level} test ran.` : `No ${level} test matches "${filter}".`;
  return { tally: add(tally, oneFailed), log: sentence, failures };
}

function lineSplitter(onLine: (line: string) => void): (chunk: string) => void {
  let partial = '';
  return (chunk) => {
    const lines = (partial + chunk).split('\n');
    partial = lines.pop() ?? '';
    for (const line of lines) onLine(line);
  };
}
