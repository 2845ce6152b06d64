/** A stranger types what the documents say: every command and every link in them has to be there. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { commands } from './commands.ts';
import { root } from './paths.ts';

const documents = globSync(['*.md', '{docs,test,charts,local,bench}/**/*.md'], { cwd: root });
const names = commands.map(({ name }) => name);

test.each(documents)('%s names only commands of ./dev that exist', (document) => {
  const text = readFileSync(join(root, document), 'utf8');
  const typed = [...text.matchAll(/\.\/dev ([a-z]+)/g)].map(([, name]) => name);
  expect(typed.filter((name) => !names.includes(name ?? ''))).toEqual([]);
});

test.each(documents)('%s links only to files that exist', (document) => {
  const text = readFileSync(join(root, document), 'utf8').replaceAll(/`[^`\n]*`/g, ''); // a pattern in code is no link
  const links = [...text.matchAll(/\]\(([^)#]+)[^)]*\)/g)]
    .map(([, link]) => link ?? '')
    .filter((link) => !/^[a-z]+:/.test(link));
  expect(links.filter((link) => !existsSync(join(root, dirname(document), link)))).toEqual([]);
});

test('the README names the everyday commands', () => {
  const readme = readFileSync(join(root, 'README.md'), 'utf8');
  for (const name of ['demo', 'test', 'down', 'image']) expect(readme).toContain(`./dev ${name}`);
});
