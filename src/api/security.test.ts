import { expect, test } from 'vitest';
import { forbiddenImage } from './security.ts';

const images = { repository: 'quay.io/coreos/etcd', allowed: ['mirror.example/etcd', 'own.example/team/*'] };

test.each([
  ['none is asked for', undefined, true],
  ['the default', 'quay.io/coreos/etcd', true],
  ['one that an administrator allows', 'mirror.example/etcd', true],
  ['one below a folder that an administrator allows', 'own.example/team/etcd', true],
  ['one that begins like an allowed one', 'mirror.example/etcd-evil', false],
  ['one outside the allowed folder', 'own.example/other/etcd', false],
  ['the pattern itself, without its folder', 'own.example/team', false],
])('an image repository is allowed or not: %s', (_what, repository, isAllowed) => {
  expect(forbiddenImage(images, repository) === undefined).toBe(isAllowed);
});
