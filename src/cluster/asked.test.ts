import { expect, test } from 'vitest';
import { aCluster, aMember, FORMED } from '../../test/support/builders.ts';
import type { EtcdClusterSpec } from '../api/etcd-cluster.ts';
import { unapplied } from './asked.ts';
import type { Observed } from './observed.ts';

const left = (has: Partial<EtcdClusterSpec>, asked: Partial<EtcdClusterSpec>): readonly string[] => {
  const { resources, additionalMetadata } = has;
  const object = aMember({
    spec: { ...(resources && { resources }), ...(additionalMetadata && { additionalMetadata }) },
  });
  const members = [{ object, pod: { is: 'absent' } as const }];
  const o: Partial<Observed> = { cluster: aCluster({ status: FORMED, spec: asked }), members };
  return unapplied(o as Observed).map((text) => text.split(' ')[0] ?? '');
};
const memory = (amount: string | number) => ({ resources: { limits: { memory: amount } } });

test.each<[string, Partial<EtcdClusterSpec>, Partial<EtcdClusterSpec>, readonly string[]]>([
  ['the same', memory('1Gi'), memory('1Gi'), []],
  ['the same in other words', memory('1024Mi'), memory('1Gi'), []],
  ['the same as a number', memory(1073741824), memory('1Gi'), []],
  ['nothing and an empty object', {}, { resources: {} }, []],
  ['more', memory('1Gi'), memory('2Gi'), ['resources']],
  ['something else', memory('1Gi'), { resources: { limits: { cpu: '1Gi' } } }, ['resources']],
  ['a request instead of a limit', memory('1Gi'), { resources: { requests: { memory: '1Gi' } } }, ['resources']],
  ['a label', {}, { additionalMetadata: { labels: { team: 'a' } } }, ['additionalMetadata']],
])('what members lack: %s', (_what, has, asked, expected) => {
  expect(left(has, asked)).toEqual(expected);
});
