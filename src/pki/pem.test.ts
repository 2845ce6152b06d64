/** Certificates out of texts that somebody else has written. */
import { expect, test } from 'vitest';
import { systemChance } from './chance.ts';
import { createAuthority } from './issue.ts';
import { certificatesIn } from './pem.ts';

const NOW = Date.parse('2026-01-01T12:00:00Z');

test('what was read a moment ago is not read again', async () => {
  const { cert } = await createAuthority('a', NOW, systemChance);
  const [first] = certificatesIn(cert);
  expect(certificatesIn(cert)[0]).toBe(first);
  expect(certificatesIn(`${cert}x`)[0]).not.toBe(first);
});

test('what was read long ago is not kept', async () => {
  const { cert } = await createAuthority('a', NOW, systemChance);
  const [first] = certificatesIn(cert);
  for (let i = 0; i < 3; i++) certificatesIn(`${cert}${String(i).repeat(512 * 1024)}`);
  expect(certificatesIn(cert)[0]).not.toBe(first);
});
