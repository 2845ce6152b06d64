/** Child processes for the tools: run to the end and collect, or hand over the terminal. */
import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { constants } from 'node:os';
import { isAbsolute } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Failure } from './terminal.ts';
import { refuseWhenInterrupted } from './undo.ts';

export interface RunOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly input?: string | Buffer;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** Called with every whole line of standard error, for progress. */
  readonly onLine?: (line: string) => void;
  /** Called with all output as it arrives, to show or keep it. */
  readonly onOutput?: (chunk: string) => void;
  /** Resolve with any exit code; otherwise a non-zero one rejects. */
  readonly allowFailure?: boolean;
}

export interface Finished {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const TAIL_LINES = 20;
const POLL_MS = 20;
/** How long the kernel may take to end a killed process. */
const KILLED_MS = 500;
const tail = (text: string): string => text.trimEnd().split('\n').slice(-TAIL_LINES).join('\n');

const live = new Set<ChildProcess>();

/**
 * Each child leads its own process group, so that stopping it stops its children too. Not so in a test: there everything
 * belongs to the group of the test run, so that stopping the run stops it all.
 */
const ownGroup = (): boolean => process.env['VITEST'] === undefined;

function start(command: string, args: readonly string[], options: RunOptions, stdio: StdioOptions): ChildProcess {
  refuseWhenInterrupted();
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: options.env ? { ...process.env, ...options.env } : process.env,
    stdio,
    detached: ownGroup(),
  });
  live.add(child);
  child.on('error', () => live.delete(child));
  child.on('close', () => live.delete(child));
  return child;
}

/** Whether any process received the signal; 0 only checks. */
function signalGroup(child: ChildProcess, signal: NodeJS.Signals | 0): boolean {
  try {
    return child.pid !== undefined && process.kill(ownGroup() ? -child.pid : child.pid, signal);
  } catch {
    return false;
  }
}

/** Its children may outlive it when it has no group of its own, and must not delay us by holding its output open. */
function cutShort(child: ChildProcess): void {
  signalGroup(child, 'SIGTERM');
  if (ownGroup()) return;
  child.once('exit', () => {
    child.stdout?.destroy();
    child.stderr?.destroy();
  });
}

/**
 * Ends the commands that `run` waits for now, with all their children: SIGTERM first, SIGKILL after the grace period. Children
 * that end after their command are awaited, too: they may hold what the undo needs.
 */
export async function stopChildren(graceMs: number): Promise<void> {
  const children = [...live];
  const rest = (): readonly ChildProcess[] => children.filter((child) => live.has(child) || signalGroup(child, 0));
  const ended = async (withinMs: number): Promise<void> => {
    const deadline = performance.now() + withinMs;
    while (rest().length > 0 && performance.now() < deadline) await sleep(POLL_MS);
  };
  for (const child of children) signalGroup(child, 'SIGTERM');
  await ended(graceMs);
  for (const child of rest()) signalGroup(child, 'SIGKILL');
  await ended(KILLED_MS);
}

/** Ends them at once. */
export function killChildren(): void {
  for (const child of live) signalGroup(child, 'SIGKILL');
}

/** A folder on the PATH that is not readable makes a missing command look like a forbidden one. */
function notStarted(command: string, error: NodeJS.ErrnoException): Error {
  if (error.code === 'EACCES' && isAbsolute(command))
    return new Failure(`this user has no permission to run ${command}: run this as its owner, or as root.`);
  return error.code === 'ENOENT' || error.code === 'EACCES'
    ? new Failure(`${command} is not installed or not on the PATH.`)
    : error;
}

/** Runs a command to its end. Rejects with a Failure that contains the end of its output. */
export function run(command: string, args: readonly string[], options: RunOptions = {}): Promise<Finished> {
  const timeout = options.timeoutMs ? AbortSignal.timeout(options.timeoutMs) : undefined;
  const abort = AbortSignal.any([options.signal, timeout].filter((signal) => signal !== undefined));
  const name = [command, ...args].join(' ');
  return new Promise((resolve, reject) => {
    const child = start(command, args, options, ['pipe', 'pipe', 'pipe']);
    const output = collect(child, options);
    const onAbort = (): void => cutShort(child);
    if (abort.aborted) onAbort();
    abort.addEventListener('abort', onAbort, { once: true });
    child.on('error', (error: NodeJS.ErrnoException) => {
      reject(notStarted(command, error));
    });
    child.on('close', (code, signal) => {
      abort.removeEventListener('abort', onAbort);
      const { stdout, stderr } = output;
      if (abort.aborted) {
        const message = timeout?.aborted ? `it did not end within ${options.timeoutMs} ms` : 'interrupted';
        reject(new Failure(`${name} was stopped: ${message}.`));
      } else if (code !== null && (code === 0 || options.allowFailure)) resolve({ code, stdout, stderr });
      else {
        const how = signal ? `was ended by ${signal}` : `failed with exit code ${code}`;
        reject(new Failure(`${name} ${how}:\n${tail(stderr || stdout)}`));
      }
    });
    child.stdin?.on('error', () => {}); // the child may exit without reading; its exit code is reported
    child.stdin?.end(options.input);
  });
}

/** Collects the output of a child; the result fills while it runs. */
function collect(child: ChildProcess, options: RunOptions): { stdout: string; stderr: string } {
  const output = { stdout: '', stderr: '' };
  let partial = '';
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    output.stdout += chunk;
    options.onOutput?.(chunk);
  });
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    output.stderr += chunk;
    options.onOutput?.(chunk);
    const lines = (partial + chunk).split('\n');
    partial = lines.pop() ?? '';
    for (const line of lines) options.onLine?.(line);
  });
  return output;
}

let terminalLent = false;

/** Whether a command that was given the terminal runs now: it handles Ctrl-C itself then. */
export const terminalIsLent = (): boolean => terminalLent;

/** Gives the command this terminal and resolves to its exit code. */
export function handOver(
  command: string,
  args: readonly string[],
  options: Pick<RunOptions, 'cwd' | 'env'> = {},
): Promise<number> {
  return new Promise((resolve, reject) => {
    terminalLent = true;
    const child = spawn(command, args, {
      cwd: options.cwd,
      env: options.env ? { ...process.env, ...options.env } : process.env,
      stdio: 'inherit',
    });
    const ignore = (): void => {}; // Ctrl-C reaches the child through the terminal; it decides
    const passOn = (signal: NodeJS.Signals): void => void child.kill(signal);
    const release = (): void => {
      terminalLent = false;
      process.off('SIGINT', ignore);
      process.off('SIGTERM', passOn);
    };
    process.on('SIGINT', ignore);
    process.on('SIGTERM', passOn);
    child.on('error', (error: NodeJS.ErrnoException) => {
      release();
      reject(notStarted(command, error));
    });
    child.on('close', (code, signal) => {
      release();
      resolve(code ?? (signal ? 128 + constants.signals[signal] : 1)); // as in a shell
    });
  });
}
