import { execFile } from 'node:child_process';
import { constants } from 'node:http2';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { root } from '../../tools/paths.ts';

const ENOUGH_KIB = 4_000_000;

test('a call that is aborted before its body was sent ends, and does not grow the heap', async () => {
  const program = join(root, 'test/support/faults/gives-up.ts');
  // The bug fills all memory within seconds, so this process gets a small heap.
  const limited = `ulimit -v ${ENOUGH_KIB}; exec "$0" --no-warnings "$1"`;
  const { stdout } = await promisify(execFile)('sh', ['-c', limited, process.execPath, program], { timeout: 20_000 });
  expect(JSON.parse(stdout)).toEqual(Array.from({ length: 5 }, () => constants.NGHTTP2_CANCEL));
}, 30_000);
