/** What an agent can do. Each is loaded when it is asked for: a restore does not need what a snapshot does. */
import type { Success } from '../../domain/agent-result.ts';
import type { Task, TaskName } from '../../domain/agent-task.ts';
import { AgentFailure } from '../failure.ts';

type Run<T> = (task: T, signal: AbortSignal) => Promise<Success>;
type Loaders = { readonly [Name in TaskName]: () => Promise<Run<Extract<Task, { readonly task: Name }>>> };

const LOADERS: Loaders = {
  snapshot: async () => (await import('./snapshot.ts')).snapshot,
  restore: async () => (await import('./restore.ts')).restore,
  drill: async () => (await import('./drill.ts')).drill,
  'install-tools': async () => (await import('./install-tools.ts')).install,
  prune: async () => (await import('./prune.ts')).runPrune,
};

/** The task of the command line, which the variable must agree with: a container that was put together wrongly does nothing. */
export async function runTask(name: string, text: string | undefined, signal: AbortSignal): Promise<Success> {
  const task = parseTask(name, text);
  const load = LOADERS[task.task] as () => Promise<Run<Task>>;
  return (await load())(task, signal);
}

function parseTask(name: string, text: string | undefined): Task {
  let json: unknown;
  try {
    json = JSON.parse(text ?? '');
  } catch {
    throw new AgentFailure('Misconfigured', 'AGENT_TASK is not JSON: the operator starts agents, not people');
  }
  const said = typeof json === 'object' && json !== null && 'task' in json ? json.task : undefined;
  if (!Object.hasOwn(LOADERS, name))
    throw new AgentFailure('Misconfigured', `this agent cannot do "${name}": use the image of the operator`);
  if (said !== name)
    throw new AgentFailure('Misconfigured', `the task is "${name}", and AGENT_TASK is about "${String(said)}"`);
  return json as Task;
}
