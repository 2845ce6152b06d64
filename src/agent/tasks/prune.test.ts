/** On a volume. For the other stores see test/contract. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll } from 'vitest';
import { pruneSuite } from '../../../test/support/suites/prune.ts';
import { openVolume } from '../stores/pvc.ts';

const root = mkdtempSync(join(tmpdir(), 'etcd-operator-prune-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const putByOthers = async (key: string, content: string): Promise<void> => {
  mkdirSync(dirname(join(root, key)), { recursive: true });
  writeFileSync(join(root, key), content);
};

pruneSuite(async () => ({ store: openVolume(root), putByOthers }));
