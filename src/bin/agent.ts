/** The agent: one task, its result for Kubernetes to keep, and a line for people. */
import { writeFileSync } from 'node:fs';
import { AgentFailure } from '../agent/failure.ts';
import { withoutSecrets } from '../agent/secrets.ts';
import { runTask } from '../agent/tasks/tasks.ts';
import { exitCodeOf, type Result, resultText } from '../domain/agent-result.ts';
import { RESULT_FILE, TASK_VARIABLE } from '../domain/agent-task.ts';

const INTERRUPTED = new AgentFailure(
  'TimedOut',
  'interrupted: the Pod was told to end before the task was done, because its time was over or its node is drained',
);

/** Kubernetes kills after 30 s: a store that does not answer must not cost the result. */
const CLEANING_MS = 20_000;

function failed(error: unknown): Result {
  const { reason, message } =
    error instanceof AgentFailure ? error : { reason: 'Internal' as const, message: unforeseen(error) };
  return { ok: false, reason, message: withoutSecrets(message) };
}

const unforeseen = (error: unknown): string =>
  `this was not foreseen: ${error instanceof Error ? `${error.name}: ${error.message}` : typeof error}`;

const say = (line: string): void => void process.stderr.write(`${line}\n`);

/** Ends the process: connections that libraries keep would let it live on. */
function end(result: Result): never {
  say(result.ok ? `${result.task}: done` : `${result.reason}: ${result.message}`);
  try {
    writeFileSync(process.env['AGENT_RESULT'] ?? RESULT_FILE, resultText(result));
  } catch (error) {
    say(`the result cannot be written: ${String(error)}`);
    process.exit(1);
  }
  process.exit(exitCodeOf(result));
}

async function main(): Promise<never> {
  const stop = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    process.once(signal, () => {
      stop.abort(INTERRUPTED);
      setTimeout(() => end(failed(INTERRUPTED)), CLEANING_MS).unref();
    });
  for (const event of ['uncaughtException', 'unhandledRejection'] as const)
    process.once(event, (error: unknown) => end(failed(error)));
  return end(await runTask(process.argv[2] ?? '', process.env[TASK_VARIABLE], stop.signal).catch(failed));
}

if (import.meta.main) await main();
