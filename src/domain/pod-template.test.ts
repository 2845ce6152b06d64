/** What the stamp of a Pod tells about the member that it was built from. */
import { expect, test } from 'vitest';
import { aMember } from '../../test/support/builders/builders.ts';
import type { EtcdMemberSpec } from '../api/etcd-member.ts';
import { RESTARTED_AT_ANNOTATION, TEMPLATE_ANNOTATION } from '../api/names.ts';
import {
  hasOtherRepository,
  isBeforeRestart,
  RESTART_FIELDS,
  stampAnnotation,
  stampIn,
  stampOf,
  unstampedFields,
} from './pod-template.ts';

const REPOSITORY = 'quay.io/coreos/etcd';
const built = (spec: Partial<EtcdMemberSpec> = {}) =>
  stampIn(stampAnnotation(stampOf(aMember({ spec }), REPOSITORY))) ?? {};
const requested = (value: string) => {
  const member = aMember();
  return { ...member, metadata: { ...member.metadata, annotations: { [RESTARTED_AT_ANNOTATION]: value } } };
};

test.each<[string, Partial<EtcdMemberSpec>, Partial<EtcdMemberSpec>, readonly string[]]>([
  ['nothing', {}, {}, []],
  ['the version', { version: '3.6.16' }, { version: '3.6.17' }, ['version']],
  ['an option', { options: { snapshotCount: 1 } }, { options: { snapshotCount: 2 } }, ['options']],
  ['the order of keys', { nodeSelector: { a: '1', b: '2' } }, { nodeSelector: { b: '2', a: '1' } }, []],
  ['a field that is not set any more', { nodeSelector: { a: '1' } }, {}, ['nodeSelector']],
  ['a field that was not set', {}, { tolerations: [{ key: 'a' }] }, ['tolerations']],
  ['the order of a list', { extraArgs: ['--a=1', '--b=2'] }, { extraArgs: ['--b=2', '--a=1'] }, ['extraArgs']],
  ['labels', {}, { additionalMetadata: { labels: { team: 'a' } } }, []],
  ['the size of the volume', {}, { storage: { size: '7Gi', medium: '' } }, []],
  ['the deletionPolicy', {}, { deletionPolicy: 'Retain' }, []],
  ['the other members', {}, { initialCluster: 'another=http://list' }, []],
])('since the Pod was built, its member has changed: %s', (_, before, after, fields) => {
  expect(unstampedFields(built(before), aMember({ spec: after }))).toEqual(fields);
});

test('every field that needs a restart is in the stamp', () => {
  const all = Object.fromEntries(RESTART_FIELDS.map((field) => [field, { x: '1' }]));
  expect(Object.keys(built(all as Partial<EtcdMemberSpec>)).toSorted()).toEqual(
    [...RESTART_FIELDS, 'imageRepository'].toSorted(),
  );
});

test('a restart that was requested after the Pod was built', () => {
  const stamp = stampOf(requested('a'));
  expect(isBeforeRestart(stamp, requested('a'))).toBe(false);
  expect(isBeforeRestart(stamp, requested('b'))).toBe(true);
  expect(isBeforeRestart(built(), requested('a'))).toBe(true);
});

test.each<[string, Partial<EtcdMemberSpec>, string, boolean]>([
  ['the same', {}, REPOSITORY, false],
  ['another one', {}, 'mirror.local/etcd', true],
  ['another one, but the spec names its own', { image: { repository: 'own.local/etcd' } }, 'mirror.local/etcd', false],
])('the administrator has configured %s', (_, spec, repository, expected) => {
  expect(hasOtherRepository(built(spec), aMember({ spec }), repository)).toBe(expected);
});

test('a Pod that an earlier operator built, or that the stamp of was not recorded with a repository', () => {
  expect(hasOtherRepository(stampOf(aMember()), aMember(), 'mirror.local/etcd')).toBe(false);
});

test.each(['', 'x', '[]', '{"version":1}', 'null'])('an annotation that is no stamp is ignored: %s', (text) => {
  expect(stampIn({ [TEMPLATE_ANNOTATION]: text })).toBeUndefined();
  expect(stampIn()).toBeUndefined();
});
