import { expect, test } from 'vitest';
import { versionNumber } from './version.ts';

test('versions compare by number, not by text', () => {
  const versions = ['3.10.0', '3.6.2', '3.6.16', '4.0.0', '3.5.33'];
  const sorted = versions.sort((a, b) => versionNumber(a) - versionNumber(b));
  expect(sorted).toEqual(['3.5.33', '3.6.2', '3.6.16', '3.10.0', '4.0.0']);
});
