/** The agent as Kubernetes runs it: a process with one task, a folder in place of its mounts, and a file for its result. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseResult, type Result } from '../../../src/domain/agent-result.ts';
import { TASK_VARIABLE, type Task } from '../../../src/domain/agent-task.ts';
import { root } from '../../../tools/paths.ts';
import { type Child, Processes } from './processes.ts';

export interface Run {
  readonly code: number | null;
  /** `undefined` when it left none, or none that an operator would accept. */
  readonly result: Result | undefined;
  /** Its log output. */
  readonly output: string;
}

export class Agent {
  /** The folder in place of `/` of its container. */
  readonly root: string;
  readonly #processes: Processes;
  #runs = 0;

  constructor(folder: string) {
    this.root = join(folder, 'agent-root');
    mkdirSync(this.root, { recursive: true });
    this.#processes = new Processes(folder);
  }

  /** Writes a mounted Secret. */
  mount(mount: string, files: Readonly<Record<string, string | Buffer>>): void {
    for (const [name, content] of Object.entries(files)) {
      const file = join(this.root, mount, name);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, content);
    }
  }

  /** `more`: the paths of its tools, which are otherwise in its image. */
  start(
    task: Task,
    more: Readonly<Record<string, string>> = {},
  ): { readonly process: Child; readonly ended: Promise<Run> } {
    const resultFile = join(this.root, `result-${++this.#runs}`);
    rmSync(resultFile, { force: true });
    const env = {
      ...process.env,
      [TASK_VARIABLE]: JSON.stringify(task),
      AGENT_ROOT: this.root,
      AGENT_RESULT: resultFile,
      ...more,
    };
    const program = join(root, 'src', 'bin', 'agent.ts');
    const child = this.#processes.start('agent', process.execPath, [program, task.task], env);
    const ended = child.ended.then((code) => ({
      code,
      result: parseResult(existsSync(resultFile) ? readFileSync(resultFile, 'utf8') : undefined),
      output: child.log(),
    }));
    return { process: child, ended };
  }

  run(task: Task, more: Readonly<Record<string, string>> = {}): Promise<Run> {
    return this.start(task, more).ended;
  }

  close(): Promise<void> {
    return this.#processes.stopAll();
  }
}
