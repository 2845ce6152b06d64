/** On a volume. For the other stores see test/contract. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { pruneSuite } from '../../../test/support/suites/prune.ts';
import { openVolume } from '../stores/pvc.ts';

const root = mkdtempSync(join(tmpdir(), 'etcd-operator-prune-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

pruneSuite(() => Promise.resolve(openVolume(root)));
