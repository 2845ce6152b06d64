/** The agent's tasks. Each is loaded on demand: a restore does not need the libraries of a snapshot. */
import type { Success } from '../../domain/agent-result.ts';
import type { Task, TaskName } from '../../domain/agent-task.ts';
import { misconfigured } from '../failure.ts';

type Run<T> = (task: T, signal: AbortSignal) => Promise<Success>;
type Loaders = { readonly [Name in TaskName]: () => Promise<Run<Extract<Task, { readonly task: Name }>>> };

const LOADERS: Loaders = {
  snapshot: async () => (await import('./snapshot.ts')).snapshot,
  lookup: async () => (await import('./lookup.ts')).lookup,
  restore: async () => (await import('./restore.ts')).restore,
  drill: async () => (await import('./drill.ts')).drill,
  'install-tools': async () => (await import('./install-tools.ts')).install,
  scrub: async () => (await import('./scrub.ts')).runScrub,
  copy: async () => (await import('./copy.ts')).runCopy,
  probe: async () => (await import('./probe.ts')).runProbe,
  prune: async () => (await import('./prune.ts')).runPrune,
};

/** Runs the task of the command line, which AGENT_TASK must match: a container with a wrong spec does nothing. */
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
    throw misconfigured('AGENT_TASK is not JSON: the agent is started by the operator only');
  }
  const declared = typeof json === 'object' && json !== null && 'task' in json ? json.task : undefined;
  if (!Object.hasOwn(LOADERS, name)) throw misconfigured(`unknown task "${name}": use the operator's image`);
  if (declared !== name) throw misconfigured(`the task is "${name}", and AGENT_TASK declares "${String(declared)}"`);
  return json as Task;
}
