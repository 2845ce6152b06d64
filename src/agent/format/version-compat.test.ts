import { expect, test } from 'vitest';
import { checkVersionCompat } from './version-compat.ts';

test.each<[string | undefined, string, boolean]>([
  [undefined, '3.5.35', true],
  [undefined, '3.7.3', true],
  ['3.6', '3.5.35', true],
  ['3.6', '3.6.16', true],
  ['3.6', '3.7.3', true],
  ['3.7', '3.5.35', false],
  ['3.7', '3.6.16', false],
  ['3.7', '3.7.0', true],
  ['3.10', '3.9.1', false],
  ['4.0', '3.99.0', false],
])('a snapshot of etcd %s, restored by %s: %s', (storageVersion, version, readable) => {
  const check = (): void => checkVersionCompat({ storageVersion }, version);
  if (readable) expect(check).not.toThrow();
  else expect(check).toThrow(`set spec.version to ${storageVersion} or later`);
});
