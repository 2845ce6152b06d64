/** What may follow the words of a command line: commands, flags, or names of objects that have to be listed. */
import type { Argument, Command, Option } from 'commander';
import type { ConnectionFlags } from './connection.ts';

export type Listed = 'cluster' | 'member' | 'schedule' | 'snapshot' | 'pod' | 'namespace';

export interface Candidate {
  readonly word: string;
  readonly about?: string;
}

export interface Completion {
  readonly candidates: readonly Candidate[];
  /** Names of these objects in addition. */
  readonly list?: Listed;
  /** Names of files: the shell knows them. */
  readonly files?: boolean;
}

const WORDS: Readonly<Record<string, readonly string[]>> = {
  output: ['json', 'yaml', 'wide'],
  shell: ['kubectl', 'bash', 'zsh', 'fish'],
};
const FILES = ['file', 'out', 'kubeconfig'];
const LISTED: Readonly<Record<string, Listed>> = {
  cluster: 'cluster',
  like: 'cluster',
  member: 'member',
  schedule: 'schedule',
  snapshot: 'snapshot',
  pod: 'pod',
  namespace: 'namespace',
};

const optionsOf = (command: Command): readonly Option[] =>
  command.parent ? [...command.options, ...optionsOf(command.parent)] : command.options;
const optionOf = (command: Command, word: string): Option | undefined =>
  optionsOf(command).find(({ long, short }) => word === long || word === short);
const takesValue = (option: Option | undefined): boolean => option?.required === true || option?.optional === true;

/** What the flag --to names. */
const TO: Readonly<Record<string, string>> = { 'move-leader': 'member' };

function valuesOf(name = ''): Completion {
  const list = LISTED[name];
  return {
    candidates: (WORDS[name] ?? []).map((word) => ({ word })),
    ...(list && { list }),
    ...(FILES.includes(name) && { files: true }),
  };
}

const operandsOf = (argument: Argument | undefined): Completion => valuesOf(argument?.name());

const subcommands = (command: Command): readonly Candidate[] =>
  command.commands
    .filter((each) => each.name() !== 'help')
    .map((each) => ({ word: each.name(), about: each.description() }));

/** `--flag=value` as two words: bash breaks it into three, and no shell replaces what is before the `=`. */
export function separated(words: readonly string[]): readonly string[] {
  const last = words.length - 1;
  return words.flatMap((word, index) => {
    if (word === '=') return index === last ? [''] : [];
    const equals = word.startsWith('--') ? word.indexOf('=') : -1;
    return equals < 0 ? [word] : [word.slice(0, equals), word.slice(equals + 1)];
  });
}

/** The last word is the one that is being typed. */
export function complete(root: Command, line: readonly string[]): Completion {
  const words = separated(line);
  const given = words.slice(0, -1);
  const typed = words.at(-1) ?? '';
  let [command, operands] = [root, 0];
  let value: Option | undefined;
  for (const word of given) {
    if (word === '--') return { candidates: [] };
    if (value) {
      value = undefined;
      continue;
    }
    if (word.startsWith('-')) {
      const option = optionOf(command, word);
      if (takesValue(option)) value = option;
      continue;
    }
    const inner = operands === 0 ? command.commands.find((each) => each.name() === word) : undefined;
    if (inner) command = inner;
    else operands++;
  }
  if (value)
    return matching(valuesOf(value.attributeName() === 'to' ? TO[command.name()] : value.attributeName()), typed);
  if (typed.startsWith('-')) return matching({ candidates: flagsOf(command) }, typed);
  const operand = operandsOf(command.registeredArguments[operands]);
  const inner = operands === 0 ? subcommands(command) : [];
  // Names of files would hide the commands: only `snapshot -p POD` takes a file in their place.
  if (inner.length > 0) return matching({ candidates: inner }, typed);
  return matching(operand, typed);
}

const flagsOf = (command: Command): readonly Candidate[] =>
  optionsOf(command).flatMap(({ long, description }) => (long ? [{ word: long, about: description }] : []));

const matching = ({ candidates, ...rest }: Completion, typed: string): Completion => ({
  ...rest,
  candidates: candidates.filter(({ word }) => word.startsWith(typed)),
});

/** The flags that say where to list names. */
export function connectionIn(words: readonly string[]): ConnectionFlags {
  const valueOf = (...names: readonly string[]): string | undefined => {
    const joined = words.find((word) => names.some((name) => word.startsWith(`${name}=`)));
    if (joined !== undefined) return joined.slice(joined.indexOf('=') + 1);
    const at = words.findIndex((word) => names.includes(word));
    return at < 0 || at >= words.length - 2 ? undefined : words[at + 1];
  };
  const found = {
    kubeconfig: valueOf('-k', '--kubeconfig'),
    context: valueOf('--context'),
    namespace: valueOf('-n', '--namespace'),
    as: valueOf('--as'),
  };
  return Object.fromEntries(Object.entries(found).filter(([, value]) => value !== undefined));
}
