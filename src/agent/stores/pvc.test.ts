import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { ROOT_VARIABLE } from '../secrets.ts';
import { openVolume } from './pvc.ts';

let root: string;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'volume-'));
  vi.stubEnv(ROOT_VARIABLE, root);
  mkdirSync(join(root, 'data/nightly-x'), { recursive: true });
  mkdirSync(join(root, 'data/app'));
  for (const name of ['nightly-1.db', 'nightly-x/2.db', 'other.db', 'of\\another', 'app/of\\another'])
    writeFileSync(join(root, 'data', name), '');
});
afterAll(() => {
  vi.unstubAllEnvs();
  rmSync(root, { recursive: true, force: true });
});

test('foreign files on the volume, whatever their names, do not keep our objects from being listed', async () => {
  const keys: string[] = [];
  for await (const { key } of openVolume('/data').list('nightly-')) keys.push(key);
  expect(keys).toEqual(['nightly-1.db', 'nightly-x/2.db']);
});
