/**
 * The code, its messages and its documents speak the language of Kubernetes, etcd and cert-manager: a maintainer of those finds
 * a behaviour by the word that they would search for. These words stood for such a word before, or for no actor at all.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from './paths.ts';

const BANNED: Readonly<Record<string, string>> = {
  whoever: 'name the actor: the operator, a user, a client, the API server',
  somebody: 'name the actor',
  nobody: 'name the actor, or what does not happen',
  anew: 'again',
  'of before': 'previous',
  told: 'reports, receives, is notified',
  heir: 'transferee, or replacement voter',
  stranger: 'foreign object, unknown member',
  strangers: 'foreign objects, unknown members',
  papers: 'certificates and Secrets',
  paperwork: 'managed Secrets',
  authority: 'CA',
  authorities: 'CAs',
  'log-in': 'auth, authenticate',
  'log-ins': 'auth',
  begun: 'bootstrapped, started',
  aside: 'out of the client Service, draining',
  'so many': 'N',
  brain: 'reconciler',
  thrift: 'memory release',
  victim: 'the member',
};

const FILES = [
  '*.md',
  'dev',
  '{src,test,bench,tools,local}/**/*.ts',
  '{docs,test,charts}/**/*.{md,yaml,txt}',
  'charts/**/*.json',
];
const EXCLUDED = ['src/gen/**', 'tools/words.test.ts', '**/node_modules/**'];

/** Names that Kubernetes, HTTP/2 and connect-node give, a message of Go's that users search for, and the two earlier annotations that are still read. */
const ALLOWED =
  /certificate-authority(-data)?|:authority|signed by unknown authority|(?<=readonly |this\.)authority|rotate-authority|aside-since/gi;

const pattern = new RegExp(String.raw`(?<![\w-])(${Object.keys(BANNED).join('|')})(?![\w-])`, 'gi');

const bannedIn = (text: string): readonly string[] =>
  text
    .replaceAll(ALLOWED, '')
    .split('\n')
    .flatMap((line, index) =>
      [...line.matchAll(pattern)].map(([word]) => `${index + 1}: ${word} (${BANNED[word.toLowerCase()]})`),
    );

test.each([
  ['Whoever comes later waits', 1],
  ['the trust of before', 1],
  ['const told = 1;', 1],
  ['a log-in and log-ins', 2],
  ['certificate-authority-data', 0],
  ['a toldFoo, untold and heirloom', 0],
])('%s: %d', (text, count) => {
  expect(bannedIn(text)).toHaveLength(count);
});

const files = globSync(FILES, { cwd: root, exclude: EXCLUDED }).sort();

test.each(files)('%s', (file) => {
  expect(bannedIn(readFileSync(join(root, file), 'utf8'))).toEqual([]);
});
