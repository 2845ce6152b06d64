/** The deny list for objects that no rule of a CRD has checked decides as those rules do. */
import { describe, expect, test } from 'vitest';
import { specs } from '../../test/integration/api/option-rows.ts';
import { deniedArgument } from './extra-args.ts';

const rows = specs.flatMap(([name, spec, refused]) => {
  const { extraArgs } = spec as { readonly extraArgs?: readonly string[] };
  return extraArgs && extraArgs.length <= 32 ? [[name, extraArgs, refused !== undefined] as const] : [];
});

describe('S3: an entry of extraArgs is refused exactly where the API server refuses it', () => {
  test.each(rows)('%s', (_name, entries, refused) => {
    expect(entries.some((entry) => deniedArgument(entry) !== undefined)).toBe(refused);
  });
  test('there are rows of both kinds', () => {
    expect(new Set(rows.map(([, , refused]) => refused)).size).toBe(2);
  });
  test('a name that every object has in JavaScript is not taken for a field', () => {
    expect(deniedArgument('--constructor=1')).toBeUndefined();
  });
  test('an entry that is longer than the rules allow is refused', () => {
    expect(deniedArgument(`--cors=${'x'.repeat(512)}`)).toBeDefined();
  });
});
