/** The process around a command: arguments, terminal, signals, errors as one sentence, exit codes. */
import { homedir } from 'node:os';
import type { Readable } from 'node:stream';
import { type Command, CommanderError, type OutputConfiguration } from 'commander';
import { type Context, UserError } from './context.ts';
import type { GlobalFlags, Handler, OperatorRules } from './flags.ts';
import { program } from './program.ts';

export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdout: { write(text: string): unknown; readonly isTTY?: boolean; readonly columns?: number };
  readonly stderr: { write(text: string): unknown };
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly signal: AbortSignal;
}

const NARROWEST = 60;
const IN_A_PIPE = 100;
const HELP_IN_A_PIPE = 80;

/** https://no-color.org; a terminal that calls itself dumb has no colours either. */
const wantsColour = ({ env, stdout }: Io): boolean =>
  stdout.isTTY === true && !env['NO_COLOR'] && env['TERM'] !== 'dumb';

async function contextFor(flags: GlobalFlags, io: Io): Promise<Context> {
  const { connect, forwarding } = await import('./connection.ts');
  const { client, namespace } = await connect(flags, io.env, homedir());
  return {
    client,
    namespace,
    reach: forwarding(client.transport, io.signal),
    env: io.env,
    now: () => Date.now(),
    signal: io.signal,
    paper: { colour: wantsColour(io), width: Math.max(NARROWEST, io.stdout.columns ?? IN_A_PIPE) },
    isTerminal: io.stdout.isTTY === true,
    isInteractive: io.stdin.isTTY === true,
    confirm: (question) => confirm(io, question),
    print: (text) => void io.stdout.write(`${text}\n`),
    note: (text) => void io.stderr.write(`${text}\n`),
  };
}

/** Anything but yes is no. */
async function confirm({ stdin, stderr, signal }: Io, question: string): Promise<boolean> {
  const { createInterface } = await import('node:readline/promises');
  stderr.write(question);
  const lines = createInterface({ input: stdin });
  try {
    return /^y(es)?$/i.test((await lines.question('', { signal })).trim());
  } finally {
    lines.close();
  }
}

async function answerShell(root: Command, words: readonly string[], io: Io): Promise<number> {
  const { answerShell: answer } = await import('./commands/completion.ts');
  return answer(root, words, { env: io.env, home: homedir(), print: (text) => void io.stdout.write(`${text}\n`) });
}

async function messageOf(error: unknown): Promise<string> {
  if (error instanceof UserError) return error.message;
  const { explain } = await import('./gather/access-error.ts');
  return explain(error);
}

/** Commands copy the settings of their parent when they are declared: later ones have to be made everywhere. */
function writingTo(command: Command, output: OutputConfiguration): void {
  command.configureOutput(output);
  for (const each of command.commands) writingTo(each, output);
}

/** Resolves to the exit code: 0, 1 for an error, 2 for `--check`. */
export async function main(args: readonly string[], io: Io, version: string, rules: OperatorRules): Promise<number> {
  let code = 0;
  const run = async (flags: GlobalFlags, handler: Handler): Promise<void> => {
    const context = await contextFor(flags, io);
    try {
      code = await handler(context, flags);
    } finally {
      await context.client.transport.close();
    }
  };
  const print = (text: string): void => void io.stdout.write(text);
  const root = program({ run, print, rules }, version);
  writingTo(root, {
    writeOut: (text) => void io.stdout.write(text),
    writeErr: (text) => void io.stderr.write(text),
    getOutHelpWidth: () => io.stdout.columns ?? HELP_IN_A_PIPE,
    getErrHelpWidth: () => io.stdout.columns ?? HELP_IN_A_PIPE,
    getOutHasColors: () => wantsColour(io),
    getErrHasColors: () => wantsColour(io),
  });
  try {
    // Before the arguments are parsed: the words that a shell asks about are not this command's own.
    if (args[0] === '__complete') return await answerShell(root, args.slice(1), io);
    await root.parseAsync(args, { from: 'user' });
    return code;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 1;
    if (io.signal.aborted) return 130;
    io.stderr.write(`error: ${await messageOf(error)}\n`);
    return 1;
  }
}
