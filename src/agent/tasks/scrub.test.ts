/** On a volume. For the other stores see test/contract. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { scrubSuite } from '../../../test/support/suites/scrub.ts';
import { openVolume } from '../stores/pvc.ts';

const root = mkdtempSync(join(tmpdir(), 'etcd-operator-scrub-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

scrubSuite(async () => ({ store: openVolume(root), putByOthers: () => Promise.reject(new Error('not needed')) }));
