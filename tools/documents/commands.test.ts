/** Every line of a document that a person types is understood: by the plugin's own declarations, and by the chart's values. */
import { describe, expect, test } from 'vitest';
import { pages, read } from './pages.ts';
import { complaintAbout } from './plugin-words.ts';
import { commandsIn, hereDocumentsOf, typed } from './shell.ts';
import { isValue, setPaths, values } from './values.ts';

describe('kubectl etcd', () => {
  test.each(pages)('in %s has only commands and flags that exist', async (page) => {
    const text = read(page);
    const lines = [...typed(text, 'kubectl', 'etcd'), ...typed(text, './dev', 'kubectl', 'etcd')];
    const wrong = await Promise.all(
      lines.map(async ({ words, line }) => {
        const own = words.slice(words.indexOf('etcd') + 1);
        const complaint = own.length === 0 ? undefined : await complaintAbout(own);
        // In a line of prose, a command may be named without what it needs.
        const needs = /^error: (missing required argument|required option)/;
        if (line === undefined && complaint !== undefined && needs.test(complaint)) return undefined;
        return complaint && `${line ?? ''} ${words.join(' ')}: ${complaint}`;
      }),
    );
    expect(wrong.filter(Boolean)).toEqual([]);
  });

  test('is found in blocks, in tables and in prose', () => {
    const found = pages.flatMap((page) => typed(read(page), 'kubectl', 'etcd'));
    expect(found.filter(({ line }) => line !== undefined).length).toBeGreaterThan(60);
    expect(found.filter(({ line }) => line === undefined).length).toBeGreaterThan(30);
  });

  test.each([
    ['a command that does not exist', ['statsu'], /unknown command/],
    ['a flag that does not exist', ['status', 'db', '--all'], /unknown option/],
    ['an operand too much', ['status', 'db', 'db2'], /too many arguments/],
    ['an operand too few', ['scale', 'db'], /missing required/],
  ])('%s is noticed', async (_what, words, complaint) => expect(await complaintAbout(words)).toMatch(complaint));
  test.each([['status', '-A'], ['etcdctl', 'db', '--', 'get', 'a', '--prefix'], ['--help']])(
    '%s is understood',
    async (...words) => expect(await complaintAbout(words)).toBeUndefined(),
  );
});

/** A path in backticks that begins like a value of the chart; fields of our kinds begin like that as well. */
const DOTTED =
  /`((?:crds|image|etcdImage|tenancy|manager|kubeRbacProxy|metricsService|metrics|workloads|memberDeletionProtection|admissionPolicies|serviceAccount)\.[\w.]+)`/g;
const FIELDS_OF_A_SPEC = ['image.repository', 'image.digest'];

describe('values of the chart', () => {
  test.each(pages)('in %s exist', (page) => {
    const text = read(page);
    const helm = [...typed(text, 'helm'), ...typed(text, './dev', 'helm')].flatMap(({ words }) => setPaths(words));
    const named = [...text.matchAll(DOTTED)].map(([, path = '']) => path);
    const wrong = [...helm, ...named].filter((path) => !isValue(path) && !FIELDS_OF_A_SPEC.includes(path));
    expect(wrong).toEqual([]);
  });
  test('are read, and others are noticed', () => {
    expect(Object.keys(values)).toContain('tenancy');
    expect(['manager.observeOnly', 'podAnnotations.a', 'nothing', 'manager.nothing'].map(isValue)).toEqual([
      true,
      true,
      false,
      false,
    ]);
    expect(setPaths(['helm', '--set', 'a.b=1,c=2', '--set=d=x'])).toEqual(['a.b', 'c', 'd']);
  });
});

describe('a block is read as a shell reads it', () => {
  test.each([
    ['a b # c', [['a', 'b']]],
    ['a \\\n  b', [['a', 'b']]],
    ['a | b && c; d', [['a'], ['b'], ['c'], ['d']]],
    [`a "b c"='d' "$(e f)"`, [['a', 'b c=d', '$(e f)']]],
    ['a#b\nc', [['a#b'], ['c']]],
  ])('%s', (script, commands) => expect(commandsIn(script)).toEqual(commands));
  test('what is fed to a command is no command', () => {
    const page = '```sh\nkubectl apply -f - <<END\nspec:\n  kubectl: etcd\nEND\nkubectl etcd status > file\n```\n';
    expect(typed(page, 'kubectl').map(({ words }) => words.join(' '))).toEqual([
      'kubectl apply -f -',
      'kubectl etcd status',
    ]);
    expect(hereDocumentsOf(page)).toEqual([{ text: 'spec:\n  kubectl: etcd\n', line: 3 }]);
  });
});
