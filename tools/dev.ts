/** `./dev <command>`: finds the command, runs it, and turns errors into one sentence and an exit code. */
import { commands, listing } from './commands.ts';
import { errnoSentence } from './errno.ts';
import { handleLostOutput, handleSignals, wasInterrupted } from './interrupt.ts';
import { nearest } from './nearest.ts';
import { Failure, say, UsageFailure } from './terminal.ts';

async function dispatch(name: string | undefined, args: readonly string[]): Promise<number> {
  if (name === undefined || ['help', '--help', '-h'].includes(name)) {
    process.stdout.write(`${listing()}\n`);
    return 0;
  }
  const command = commands.find((candidate) => candidate.name === name);
  if (command) return (await command.load())(args);
  const meant = nearest(
    name,
    commands.map((candidate) => candidate.name),
  );
  throw new UsageFailure(
    `there is no command "${name}"; ${meant ? `did you mean ./dev ${meant}?` : './dev alone lists them.'}`,
  );
}

function report(error: unknown): number {
  const refused = errnoSentence(error);
  if (refused !== undefined) {
    say(`./dev: ${refused}`);
    return 1;
  }
  if (!(error instanceof Failure)) {
    say(error instanceof Error ? (error.stack ?? error.message) : String(error));
    say('./dev: this is a bug in the tools, please report it with the lines above.');
    return 1;
  }
  say(`./dev: ${error.message}`);
  return error instanceof UsageFailure ? 2 : 1;
}

async function main(): Promise<void> {
  handleSignals();
  handleLostOutput();
  const [name, ...args] = process.argv.slice(2);
  const code = await dispatch(name, args).catch((error: unknown) => (wasInterrupted() ? 130 : report(error)));
  if (!wasInterrupted()) process.exit(code); // otherwise the interruption ends the process once everything is undone
}

await main();
