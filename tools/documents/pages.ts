/** The Markdown files of the repository: their headings, links and code. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../paths.ts';

export interface Block {
  /** The word after the fence: sh, yaml; empty without one. */
  readonly language: string;
  readonly text: string;
  /** Of its first line in the file. */
  readonly line: number;
}

const FOLDERS = ['*.md', '.github/**/*.md', '{docs,test,charts,local,bench}/**/*.md'];
/** Written by hand or generated; without what a tool wrote into `node_modules` and `.cache`. */
export const pages: readonly string[] = globSync(FOLDERS, { cwd: root, exclude: ['**/node_modules/**'] }).sort();

export const read = (file: string): string => readFileSync(join(root, file), 'utf8');

const FENCE = /^ *```(\w*)\n([\s\S]*?)^ *```$/gm;

export const blocksOf = (text: string): readonly Block[] =>
  [...text.matchAll(FENCE)].map(({ 1: language = '', 2: content = '', index }) => ({
    language,
    text: content,
    line: text.slice(0, index).split('\n').length + 1,
  }));

/** Without code: what it has that looks like a link or a heading is none. */
const prose = (text: string): string => text.replaceAll(FENCE, '').replaceAll(/`[^`\n]*`/g, '`');

/** As GitHub derives them: lower case, words joined by hyphens, without punctuation; the second of the same name ends with -1. */
export function anchorsOf(text: string): ReadonlySet<string> {
  const seen = new Map<string, number>();
  const anchors = [...text.replaceAll(FENCE, '').matchAll(/^#{1,6} +(.+?) *#*$/gm)].map(([, title = '']) => {
    const words = title.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
    const slug = words.replaceAll(/[^\p{L}\p{N}\p{M}_\- ]/gu, '').replaceAll(' ', '-');
    const count = seen.get(slug) ?? 0;
    seen.set(slug, count + 1);
    return count === 0 ? slug : `${slug}-${count}`;
  });
  return new Set(anchors);
}

/** Targets of links and images, without those to other sites. */
export const linksOf = (text: string): readonly string[] =>
  [...prose(text).matchAll(/\]\(<?([^)\s>]+)>?\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target));

/** Code in a line of prose: what stands between backticks. */
export const inlineCodeOf = (text: string): readonly string[] =>
  [...text.replaceAll(FENCE, '').matchAll(/`([^`\n]+)`/g)].map(([, code = '']) => code);
