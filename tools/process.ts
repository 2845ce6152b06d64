/** Child processes for the tools: run to the end and collect, or hand over the terminal. */
import { spawn } from 'node:child_process';
import { Failure } from './terminal.ts';

export interface RunOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly input?: string | Buffer;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** Called with every whole line of standard error, for progress. */
  readonly onLine?: (line: string) => void;
  /** Resolve whatever the exit code is; otherwise a non-zero one rejects. */
  readonly allowFailure?: boolean;
}

export interface Finished {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const TAIL_LINES = 20;
const tail = (text: string): string => text.trimEnd().split('\n').slice(-TAIL_LINES).join('\n');

/** Runs a command to its end. Rejects with a Failure that carries the end of its output. */
export function run(command: string, args: readonly string[], options: RunOptions = {}): Promise<Finished> {
  const signals = [options.signal, options.timeoutMs ? AbortSignal.timeout(options.timeoutMs) : undefined];
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: options.cwd,
      env: options.env ? { ...process.env, ...options.env } : process.env,
      stdio: ['pipe', 'pipe', 'pipe'],
      signal: AbortSignal.any(signals.filter((s) => s !== undefined)),
    });
    let stdout = '';
    let stderr = '';
    let partial = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      stdout += chunk;
    });
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      stderr += chunk;
      const lines = (partial + chunk).split('\n');
      partial = lines.pop() ?? '';
      for (const line of lines) options.onLine?.(line);
    });
    child.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') reject(new Failure(`${command} is not installed or not on the PATH.`));
      else if (error.name === 'AbortError')
        reject(
          new Failure(
            `${command} ${args.join(' ')} was stopped: ${options.signal?.aborted ? 'interrupted' : `no answer within ${options.timeoutMs} ms`}`,
          ),
        );
      else reject(error);
    });
    child.on('close', (code, signal) => {
      if (code === 0 || (options.allowFailure && code !== null)) resolve({ code: code ?? 1, stdout, stderr });
      else
        reject(
          new Failure(
            `${command} ${args.join(' ')} ${signal ? `was ended by ${signal}` : `failed with exit code ${code}`}:\n${tail(stderr || stdout)}`,
          ),
        );
    });
    child.stdin.on('error', () => {}); // the child may exit without reading; its exit code tells
    child.stdin.end(options.input);
  });
}

/** Gives the command this terminal and resolves to its exit code. */
export function handOver(
  command: string,
  args: readonly string[],
  options: Pick<RunOptions, 'cwd' | 'env'> = {},
): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: options.cwd,
      env: options.env ? { ...process.env, ...options.env } : process.env,
      stdio: 'inherit',
    });
    const ignore = (): void => {}; // Ctrl-C reaches the child through the terminal; it decides
    process.on('SIGINT', ignore);
    child.on('error', reject);
    child.on('close', (code, signal) => {
      process.off('SIGINT', ignore);
      resolve(code ?? (signal ? 130 : 1));
    });
  });
}
