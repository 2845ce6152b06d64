/** Every manifest of our kinds in a document and in docs/examples fits the schemas of the CRDs. */
import { globSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { root } from '../paths.ts';
import { manifestsOf, objectsIn, wrongIn } from './manifests.ts';
import { pages, read } from './pages.ts';

describe('manifests', () => {
  test.each(pages)('in %s have only fields and values that exist', (page) => {
    const wrong = manifestsOf(read(page)).flatMap(({ line, object }) =>
      wrongIn(object).map((what) => `${line}: ${what}`),
    );
    expect(wrong).toEqual([]);
  });
  test.each(globSync('docs/examples/*.yaml', { cwd: root }).sort())(
    '%s has only fields and values that exist',
    (file) => {
      const text = read(file);
      expect(text).toMatch(/^# /); // says what it is for
      expect(objectsIn(text).flatMap(wrongIn)).toEqual([]);
    },
  );
});

const apiVersion = 'etcd-operator.cozystack.io/v1alpha2';
const cluster = (spec: object): Readonly<Record<string, unknown>> => ({
  apiVersion,
  kind: 'EtcdCluster',
  metadata: { name: 'db' },
  spec,
});

test.each([
  ['a field that does not exist', cluster({ version: '3.6.16', sizes: 1 }), /spec\.sizes does not exist/],
  ['a required field that is missing', cluster({}), /spec\.version is missing/],
  ['another type', cluster({ version: '3.6.16', replicas: '3' }), /type string/],
  ['a value that is not allowed', cluster({ version: '3.6.16', spread: 'Never' }), /none of/],
  ['a text that does not match', cluster({ version: 'latest' }), /does not match/],
  ['a kind that does not exist', { ...cluster({}), kind: 'Etcd' }, /no kind/],
  ['an earlier version', { ...cluster({}), apiVersion: 'etcd-operator.cozystack.io/v1alpha1' }, /v1alpha1/],
  ['a wrong piece of a spec', { spec: { replica: 3 } }, /replica does not exist/],
])('%s is noticed', (_what, object, sentence) => expect(wrongIn(object).join()).toMatch(sentence));

test('a piece of a spec may leave out the rest, and other kinds are not judged', () => {
  expect(wrongIn({ spec: { replicas: 3 } })).toEqual([]);
  expect(wrongIn({ apiVersion: 'v1', kind: 'Secret', anything: 1 })).toEqual([]);
  expect(wrongIn(cluster({ version: '3.6.16', storage: { size: '1Gi' } }))).toEqual([]);
});
