import { expect, test } from 'vitest';
import type { CopyTask } from '../../domain/agent-task.ts';
import { runCopy } from './copy.ts';

test('a second location that is the first one is refused: its retention would delete the only copy', async () => {
  const place = { kind: 'pvc', root: '/nowhere' } as const;
  const task: CopyTask = { task: 'copy', from: place, key: 'a.db', to: place, toKey: 'a.db', uid: 'u', sha256: '0' };
  await expect(runCopy(task, new AbortController().signal)).rejects.toMatchObject({ reason: 'Misconfigured' });
});
