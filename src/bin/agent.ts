/** The agent: runs one task, writes its result to the termination message and a line to the log. */
import { writeFileSync } from 'node:fs';
import { AgentFailure } from '../agent/failure.ts';
import { withoutSecrets } from '../agent/secrets.ts';
import { runTask } from '../agent/tasks/tasks.ts';
import { exitCodeOf, type Result, resultText } from '../domain/agent-result.ts';
import { RESULT_FILE, SNAPSHOT_AGENT, TASK_VARIABLE } from '../domain/agent-task.ts';

const INTERRUPTED = new AgentFailure(
  'TimedOut',
  'interrupted: the Pod was terminated before the task was done, because its deadline had passed or its node was drained',
);

/** The kubelet kills the container after 30 s: an unreachable store must not cost the result. */
const CLEANUP_MS = 20_000;

function failed(error: unknown): Result {
  const { reason, message } =
    error instanceof AgentFailure ? error : { reason: 'Internal' as const, message: unexpected(error) };
  return { ok: false, reason, message: withoutSecrets(message) };
}

const unexpected = (error: unknown): string =>
  `unexpected error: ${error instanceof Error ? `${error.name}: ${error.message}` : typeof error}`;

const log = (line: string): void => void process.stderr.write(`${line}\n`);

/** Exits explicitly: connections that libraries keep open would keep the process running. */
function end(result: Result): never {
  log(result.ok ? `${result.task}: done` : `${result.reason}: ${result.message}`);
  try {
    writeFileSync(process.env['AGENT_RESULT'] ?? RESULT_FILE, resultText(result));
  } catch (error) {
    log(`cannot write the result: ${String(error)}`);
    process.exit(1);
  }
  process.exit(exitCodeOf(result));
}

/** Also for the operator's program, under the names of the Go operator's sub-commands. */
export async function main(): Promise<never> {
  const stop = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    process.once(signal, () => {
      stop.abort(INTERRUPTED);
      setTimeout(() => end(failed(INTERRUPTED)), CLEANUP_MS).unref();
    });
  for (const event of ['uncaughtException', 'unhandledRejection'] as const)
    process.once(event, (error: unknown) => end(failed(error)));
  if (process.argv[2] === SNAPSHOT_AGENT) return end(await snapshotOfGo(stop.signal).catch(failed));
  return end(await runTask(process.argv[2] ?? '', process.env[TASK_VARIABLE], stop.signal).catch(failed));
}

async function snapshotOfGo(signal: AbortSignal): Promise<Result> {
  const { markerOf, snapshotAgent } = await import('../agent/tasks/snapshot-agent.ts');
  const result = await snapshotAgent(process.env, signal);
  process.stdout.write(`${markerOf(result)}\n`);
  return result;
}

if (import.meta.main) await main();
