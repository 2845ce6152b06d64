/** A reason, a kind or an Event that a document names can be found in the sources: what the operator never reports explains nothing. */
import { globSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { root } from '../paths.ts';
import { inlineCodeOf, pages, read } from './pages.ts';

/** Of Kubernetes, etcd and others, as users see them: the operator itself does not write them. */
const OF_OTHERS = [
  'CrashLoopBackOff',
  'ErrImagePull',
  'FailedAttachVolume',
  'IfNotPresent',
  'FailedCreate',
  'FailedMount',
  'FailedScheduling',
  'ImagePullBackOff',
  'IfHealthyBudget',
  'AlwaysAllow',
  'CrossNamespacePodAffinity',
  'SecondLevelDomainForbidden',
];

const WORD = /^(?:[A-Z][a-z0-9]+|CA|CRD|PVC|API|TLS|DNS){2,}$/;

const sources = globSync(
  [
    'src/{api,access,agent,bin,cli,controllers,domain,pki,runtime,kube,gen}/**/*.ts',
    'charts/etcd-operator/templates/*.{yaml,tpl}',
  ],
  { cwd: root },
).filter((file) => !file.includes('.test.'));
const written = new Set(sources.flatMap((file) => read(file).match(/[A-Za-z0-9]+/g) ?? []));

const unknownIn = (text: string): readonly string[] =>
  [...new Set(inlineCodeOf(text).filter((code) => WORD.test(code)))].filter(
    (word) => !written.has(word) && !OF_OTHERS.includes(word),
  );

describe('reasons, kinds and Events', () => {
  /** The decisions are about libraries, and name their classes. */
  test.each(pages.filter((page) => page !== 'docs/decisions.md'))('that %s names exist', (page) =>
    expect(unknownIn(read(page))).toEqual([]),
  );
  test.each([
    ['`True` / `QuorumHealthy`', []],
    ['`False` / `QuorumUnwell`', ['QuorumUnwell']],
    ['`CrashLoopBackOff` of a Pod', []],
  ])('%s', (text, unknown) => expect(unknownIn(text)).toEqual(unknown));
});
