/** Whether the kubectl plugin understands a line: its own declarations parse it, and nothing is run. */
import { type Command, CommanderError } from 'commander';
import { program } from '../../src/cli/program.ts';

const HELP = new Set(['commander.helpDisplayed', 'commander.help', 'commander.version']);

function silence(command: Command): void {
  command.configureOutput({ writeOut: () => undefined, writeErr: () => undefined });
  for (const each of command.commands) silence(each);
}

const nothing = () => Promise.resolve(undefined);

/** Its complaint; `undefined` when it understands. Words follow `kubectl etcd`. */
export async function complaintAbout(words: readonly string[]): Promise<string | undefined> {
  const root = program(
    { run: () => Promise.resolve(), print: () => undefined, rules: { explain: nothing, checkVersion: nothing } },
    'x',
  );
  silence(root);
  try {
    await root.parseAsync(words, { from: 'user' });
    return undefined;
  } catch (error) {
    if (error instanceof CommanderError && HELP.has(error.code)) return undefined;
    return error instanceof Error ? error.message : String(error);
  }
}
