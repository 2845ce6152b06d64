import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { kinds } from '../../src/api/crds.ts';
import { root } from '../paths.ts';
import { generateApiReference } from './api-reference.ts';

test('the API reference is that of the code ("./dev gen" makes it so)', async () => {
  expect(await readFile(join(root, 'docs', 'api.md'), 'utf8')).toBe(generateApiReference());
});

test('every field of a spec has a row, or is within one that names its type', () => {
  const text = generateApiReference();
  for (const { names, spec } of kinds) {
    if (names.kind === 'EtcdMember') continue; // its template equals the spec of the cluster
    const { properties } = JSON.parse(JSON.stringify(spec)) as { properties: Record<string, unknown> };
    for (const field of Object.keys(properties)) expect(text, `${names.kind} ${field}`).toContain(`| \`${field}\` |`);
  }
});
