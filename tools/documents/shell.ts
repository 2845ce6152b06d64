/** Splits what a document asks a person to type into commands, as a shell does. */
import { type Block, blocksOf, inlineCodeOf } from './pages.ts';

export interface Typed {
  readonly words: readonly string[];
  /** Of the document; absent for code in a line of prose. */
  readonly line?: number;
}

/** A document inside the commands: `<<END` and the lines up to `END`. */
export interface HereDocument {
  readonly text: string;
  readonly line: number;
}

const HERE = /^(.*)<<-?\s*['"]?(\w+)['"]?(.*)\n([\s\S]*?)^\s*\2$/gm;

export const hereDocumentsOf = (text: string): readonly HereDocument[] =>
  blocksOf(text)
    .filter(({ language }) => language === 'sh')
    .flatMap((block) =>
      [...block.text.matchAll(HERE)].map(({ 4: content = '', index }) => ({
        text: content,
        line: block.line + block.text.slice(0, index).split('\n').length,
      })),
    );

const isBreak = (rest: string): number => /^(?:\|\||&&|[|;&\n])/.exec(rest)?.[0].length ?? 0;

/** Where a quoted text or a `$(…)` that starts at this place ends. */
function endOfQuoted(text: string, start: number): number {
  if (text.startsWith('$(', start)) {
    let depth = 0;
    for (let at = start + 1; at < text.length; at++) {
      if (text[at] === '(') depth++;
      if (text[at] === ')' && --depth === 0) return at;
    }
    return text.length;
  }
  const end = text.indexOf(text[start] ?? '', start + 1);
  return end < 0 ? text.length : end;
}

/** Words of each command. A quoted text is a part of its word, without the quotes; what is substituted stays as it is. */
export function commandsIn(script: string): readonly (readonly string[])[] {
  const text = script.replaceAll(/\\\n\s*/g, ' ');
  const commands: string[][] = [[]];
  let word: string | undefined;
  const endWord = (): void => {
    if (word !== undefined) commands.at(-1)?.push(word);
    word = undefined;
  };
  for (let at = 0; at < text.length; at++) {
    const letter = text[at] ?? '';
    const broken = isBreak(text.slice(at));
    if (/['"]/.test(letter) || text.startsWith('$(', at)) {
      const end = endOfQuoted(text, at);
      word = (word ?? '') + (letter === '$' ? text.slice(at, end + 1) : text.slice(at + 1, end));
      at = end;
    } else if (letter === '#' && word === undefined) {
      const end = text.indexOf('\n', at);
      at = (end < 0 ? text.length : end) - 1;
    } else if (broken > 0) {
      endWord();
      commands.push([]);
      at += broken - 1;
    } else if (/\s/.test(letter)) endWord();
    else word = (word ?? '') + letter;
  }
  endWord();
  return commands.filter((words) => words.length > 0);
}

/** Up to a redirection: what follows it is a file. */
const withoutRedirections = (words: readonly string[]): readonly string[] => {
  const at = words.findIndex((word) => /^\d?[<>]/.test(word));
  return at < 0 ? words : words.slice(0, at);
};

/** A command inside `$(…)` is typed too. */
const nested = (words: readonly string[]): readonly (readonly string[])[] =>
  words.flatMap((word) => [...word.matchAll(/\$\(([^()]+)\)/g)].flatMap(([, inner = '']) => commandsIn(inner)));

function typedIn(script: string): readonly (readonly string[])[] {
  const outer = commandsIn(script.replaceAll(HERE, '$1 $3\n'));
  return [...outer, ...outer.flatMap(nested)].map(withoutRedirections);
}

const inBlock = (block: Block): readonly Typed[] => typedIn(block.text).map((words) => ({ words, line: block.line }));

/** Everything of a page that a person types whose first words are these. */
export function typed(text: string, ...program: readonly string[]): readonly Typed[] {
  const blocks = blocksOf(text).filter(({ language }) => language === 'sh');
  const inline = inlineCodeOf(text).flatMap((code) => typedIn(code).map((words): Typed => ({ words })));
  return [...blocks.flatMap(inBlock), ...inline].filter(({ words }) => program.every((word, at) => words[at] === word));
}
