import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { folder } from '../../../test/support/suites/prune-kit.ts';
import { type CopyTask, MANIFEST } from '../../domain/agent-task.ts';
import { openVolume } from '../stores/pvc.ts';
import { copy, runCopy } from './copy.ts';

const root = mkdtempSync(join(tmpdir(), 'etcd-operator-copy-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

test('a second location that is the first one is refused: its retention would delete the only copy', async () => {
  const place = { kind: 'pvc', root: '/nowhere' } as const;
  const task: CopyTask = { task: 'copy', from: place, key: 'a.db', to: place, toKey: 'a.db', uid: 'u', sha256: '0' };
  await expect(runCopy(task, new AbortController().signal)).rejects.toMatchObject({ reason: 'Misconfigured' });
});

test('the same volume under another name is refused as well', async () => {
  symlinkSync(root, join(root, 'again'));
  const [from, to] = [openVolume(root), openVolume(join(root, 'again'))];
  const name = await folder({ store: from, putByOthers: () => Promise.resolve() }, 'x').snapshot(3);
  const key = `x/${name}`;
  const place = { kind: 'pvc', root } as const;
  const about = { uid: `uid-${name}`, sha256: 'a'.repeat(64) };
  const task: CopyTask = { task: 'copy', from: place, key, to: place, toKey: key, ...about };
  await expect(copy(from, to, task, new AbortController().signal)).rejects.toMatchObject({ reason: 'Misconfigured' });
  expect(await from.head(`${key}${MANIFEST}`)).toBeDefined();
});
