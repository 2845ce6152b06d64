/** Disables auth in a restored database that no etcd has opened yet: its root password may be unknown. */
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { readFacts } from '../format/bolt.ts';

/** Clears the flag in its place: pages of bbolt have no checksum. Users and roles stay. */
export async function disableAuth(dataDir: string): Promise<void> {
  const file = await open(join(dataDir, 'member/snap/db'), 'r+');
  try {
    const { authFlagAt } = await readFacts(file, (await file.stat()).size);
    if (authFlagAt !== undefined) await file.write(Buffer.of(0), 0, 1, authFlagAt);
  } finally {
    await file.close();
  }
}
