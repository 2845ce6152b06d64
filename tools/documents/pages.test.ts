/** No link of a document leads nowhere: neither to a file nor to a heading that does not exist. */
import { existsSync, globSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { root } from '../paths.ts';
import { anchorsOf, inlineCodeOf, linksOf, pages, read } from './pages.ts';

function deadIn(page: string, text: string): readonly string[] {
  return linksOf(text).filter((link) => {
    const [file = '', anchor] = link.split('#');
    const target = file === '' ? page : join(dirname(page), decodeURIComponent(file));
    if (!existsSync(join(root, target))) return true;
    return anchor !== undefined && target.endsWith('.md') && !anchorsOf(read(target)).has(anchor);
  });
}

test.each(pages)('%s has no dead link', (page) => {
  expect(deadIn(page, read(page))).toEqual([]);
});

describe('a link is dead when', () => {
  test.each([
    ['its file does not exist', '[a](nothing.md)', 1],
    ['the page has no such heading', '[a](#nothing)', 1],
    ['another page has no such heading', '[a](operations.md#nothing)', 1],
    ['nothing: it leads to a heading', '[a](operations.md#auth)', 0],
    ['nothing: it leads to another site', '[a](https://example.com/x#y)', 0],
    ['nothing: it is code', '`[a](nothing.md)`', 0],
  ])('%s', (_why, text, dead) => expect(deadIn('docs/x.md', text)).toHaveLength(dead));
});

test('anchors are those of GitHub', () => {
  const text = '# A `b` c: d?\n## [Link](x.md), and\n## Twice\n## Twice\n```sh\n# comment\n```\n';
  expect([...anchorsOf(text)]).toEqual(['a-b-c-d', 'link-and', 'twice', 'twice-1']);
});

/** A test or an example that a document names as its proof. */
const PATH = /^(?:src|test|tools|bench|local|charts|docs|proto)\/[\w./-]*\w$/;

/** One page names files that do not exist: those that its readers guessed. */
test.each(pages.filter((page) => page !== 'docs/twelve-changes.md'))('files that %s names exist', (page) => {
  const named = inlineCodeOf(read(page)).filter((code) => PATH.test(code));
  expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});

test.each([
  ['docs', '*.md'],
  ['docs/examples', '**/*.{yaml,sh}'],
])('the index of %s has all of it', (folder, pattern) => {
  const links = new Set(linksOf(read(`${folder}/README.md`)).map((link) => link.split('#')[0]));
  const files = globSync(pattern, { cwd: join(root, folder) }).filter((file) => file !== 'README.md');
  expect(files.filter((file) => !links.has(file))).toEqual([]);
});
