/** How commands are declared: operands, flags that several have, and the call that loads the command when it is used. */
import type { Command } from 'commander';
import type { Context } from './context.ts';
import type { GlobalFlags, Run } from './flags.ts';

/** Loads a command and calls it with the operands and all flags. */
type Call = (context: Context, flags: object, operands: readonly string[]) => Promise<number>;

/** Commander hands over the operands, then the flags, then the command. */
export const action =
  (run: Run, call: Call) =>
  (...given: readonly unknown[]): Promise<void> => {
    const command = given.at(-1) as Command;
    const operands = given
      .slice(0, -2)
      .flat()
      .filter((operand) => typeof operand === 'string');
    return run(command.optsWithGlobals<GlobalFlags>(), (context, flags) => call(context, flags, operands));
  };

export const asking = (command: Command): Command =>
  command.option('-y, --yes', 'do not ask').option('--dry-run', 'say what would be done, and do nothing');

export const forced = (command: Command, why: string): Command => command.option('--force', why);

export const waiting = (command: Command): Command =>
  asking(command)
    .option('--no-wait', 'do not wait until the operator has done it')
    .option('--timeout <duration>', 'wait at most for this time, such as 30m; then the exit code is 1');

export const ofOneCluster = (command: Command): Command => command.argument('<cluster>', 'the EtcdCluster');
export const onCluster = (command: Command): Command =>
  command.argument('[cluster]', 'the EtcdCluster; or one Pod with -p');
export const ofCluster = (command: Command): Command =>
  command.option('-c, --cluster <name>', 'the EtcdCluster; or one Pod with -p');

export const formatted = (command: Command, formats = 'json, yaml or wide'): Command =>
  command.option('-o, --output <format>', formats);

export const checked = (command: Command, when: string): Command =>
  command.option('--check', `exit with code 2 when ${when}`);

/** Below the flags of a command. */
export const examples = (command: Command, ...lines: readonly string[]): Command =>
  command.addHelpText('after', `\nExamples:\n${lines.map((line) => `  ${line}\n`).join('')}`);
