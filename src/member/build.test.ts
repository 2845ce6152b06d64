import { expect, test } from 'vitest';
import { aMember } from '../../test/support/builders.ts';
import { memberPod, volumeClaim } from './build.ts';

const options = { imageRepository: 'quay.io/coreos/etcd', state: 'new', votes: false } as const;

test('the Pod of a seed', () => {
  expect(memberPod(aMember(), options)).toMatchSnapshot();
});

test('the Pod of a member that votes carries the role that the client Service selects', () => {
  expect(memberPod(aMember(), { ...options, votes: true }).metadata.labels?.['etcd-operator.cozystack.io/role']).toBe(
    'voter',
  );
});

test('a member that exists already joins instead of beginning', () => {
  const command = memberPod(aMember(), { ...options, state: 'existing' }).spec?.containers[0]?.command;
  expect(command).toContain('--initial-cluster-state=existing');
});

test('data in memory is a tmpfs of the asked size', () => {
  const member = aMember({ spec: { storage: { size: '64Mi', medium: 'Memory' } } });
  expect(memberPod(member, options).spec?.volumes).toEqual([
    { name: 'data', emptyDir: { medium: 'Memory', sizeLimit: '64Mi' } },
  ]);
});

test('the volume', () => {
  expect(volumeClaim(aMember())).toMatchSnapshot();
});

test.each([
  [undefined, undefined],
  ['', ''],
  ['fast', 'fast'],
])('storage class %j is asked for as %j', (storageClassName, asked) => {
  const storage = {
    size: 1073741824,
    medium: '',
    ...(storageClassName !== undefined && { storageClassName }),
  } as const;
  const { spec } = volumeClaim(aMember({ spec: { storage } }));
  expect([spec?.storageClassName, spec?.resources?.requests]).toEqual([asked, { storage: '1073741824' }]);
});
