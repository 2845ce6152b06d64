/** Which flags of a typed command the program's own help does not know. */

/** Asks for the help of a subcommand, such as `create secret generic`. */
export type HelpOf = (words: readonly string[]) => Promise<string>;

/** As cobra prints them: `  -n, --namespace='':` or `      --all=false:` or `  -w, --watch   text`. */
export function flagsIn(help: string): ReadonlySet<string> {
  const lines = help.matchAll(/^ *(?:(-\w), )?(--[\w-]+)/gm);
  return new Set([...lines].flatMap(([, short, long = '']) => [long, ...(short ? [short] : [])]));
}

const isFlag = (word: string): boolean => /^--?[A-Za-z]/.test(word);

/** `-w` of `-wo yaml` and of `-w`; `--watch` of `--watch=true`. */
const namesOf = (word: string, known: ReadonlySet<string>): readonly string[] => {
  if (word.startsWith('--')) return [word.split('=')[0] ?? ''];
  const [name = ''] = word.match(/^-\w/) ?? [];
  return known.has(name) ? [name] : [word];
};

/** What follows `--` belongs to another program. */
export const ownWords = (words: readonly string[]): readonly string[] => {
  const end = words.indexOf('--');
  return end < 0 ? words : words.slice(0, end);
};

/** The words of the subcommand: those before the first flag that look like one, at most three. */
function subcommandOf(words: readonly string[], subcommands: readonly string[]): readonly string[] {
  const plain = words.filter((word) => !isFlag(word));
  const found = subcommands.map((each) => each.split(' ')).filter((each) => each.every((word) => plain.includes(word)));
  return found.toSorted((a, b) => b.length - a.length)[0] ?? [];
}

export async function unknownFlags(
  words: readonly string[],
  subcommands: readonly string[],
  helpOf: HelpOf,
): Promise<readonly string[]> {
  const own = ownWords(words.slice(1));
  const subcommand = subcommandOf(own, subcommands);
  if (subcommand.length === 0) return [`${words.join(' ')}: an unknown subcommand`];
  const known = flagsIn(await helpOf(subcommand));
  return own
    .filter(isFlag)
    .flatMap((word) => namesOf(word, known))
    .filter((name) => !known.has(name))
    .map((name) => `${words.join(' ')}: ${name}`);
}
