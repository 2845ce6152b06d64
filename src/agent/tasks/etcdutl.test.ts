/** Output of etcdutl for deliberately damaged databases, and for other failures. For etcdutl itself see test/contract. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { makeDataDirectory } from './etcdutl.ts';

const folder = mkdtempSync(join(tmpdir(), 'etcd-operator-etcdutl-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const INFO = '2026-11-16T17:38:12Z\tinfo\tsnapshot/v3_snapshot.go:265\trestoring snapshot\t{"path": "x.db"}';
const STACK = '\ngoroutine 1 [running]:\ngo.etcd.io/bbolt._assert(...)\n\tgo.etcd.io/bbolt@v1.3.12/db.go:1395';

const rebirth = {
  file: 'x.db',
  folder: 'r',
  name: 'a',
  initialCluster: 'a=http://h:1',
  token: 't',
  peerURL: 'http://h:1',
  bumpRevision: 0,
};

test.each([
  [
    'a page with the id of another',
    2,
    `panic: assertion failed: Page expected to be: 19, but self identifies as 0${STACK}`,
  ],
  [
    'a page that is reached twice',
    2,
    'panic: freepages: failed to get all reachable pages (page 4: multiple references)',
  ],
  ['a page outside of the file', 2, 'unexpected fault address 0x7ff2ce2ff000\nfatal error: fault\n[signal SIGSEGV: …]'],
  ['damaged meta pages', 1, 'Error: checksum error'],
  ['no database at all', 1, 'Error: invalid database'],
  ['less than a page', 1, 'Error: file size too small 100'],
])('%s: the snapshot is damaged', async (_name, code, output) => {
  await expect(ended(code, output)).rejects.toMatchObject({ reason: 'SnapshotDamaged' });
});

test.each([
  ['no disk space', 2, 'panic: failed to write: no space left on device', 'NoSpace'],
  ['no memory for mmap', 2, 'panic: failed to open database: mmap: cannot allocate memory', 'RestoreToolFailed'],
  ['no memory for Go', 2, `fatal error: runtime: out of memory${STACK}`, 'RestoreToolFailed'],
  ['contradicting flags', 1, 'Error: couldn\'t find local name "a"', 'RestoreToolFailed'],
])('%s: the snapshot is not reported as damaged', async (_name, code, output, reason) => {
  await expect(ended(code, output)).rejects.toMatchObject({ reason });
});

test('the message contains the line with the cause', async () => {
  await expect(ended(2, `panic: page 3: multiple references${STACK}`)).rejects.toThrow(
    'the database in the snapshot is damaged: etcdutl snapshot restore failed with "panic: page 3: multiple references"',
  );
});

/** A fake etcdutl with this output and exit code. */
function ended(code: number, output: string): Promise<void> {
  const program = join(mkdtempSync(join(folder, 'tool-')), 'etcdutl');
  writeFileSync(`${program}.txt`, `${INFO}\n${output}\n`);
  writeFileSync(program, `#!/bin/sh\ncat "$0.txt" >&2\nexit ${code}\n`, { mode: 0o755 });
  return makeDataDirectory(program, rebirth, AbortSignal.timeout(10_000));
}
