import { execFile } from 'node:child_process';
import { constants } from 'node:http2';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { root } from '../../tools/paths.ts';

const ENOUGH_KIB = 4_000_000;

test('a call that is given up before its body has left is over, and costs no memory', async () => {
  const program = join(root, 'test/support/faults/gives-up.ts');
  // What is prevented here takes all memory that there is, in seconds: so this one has little.
  const limited = `ulimit -v ${ENOUGH_KIB}; exec "$0" --no-warnings "$1"`;
  const { stdout } = await promisify(execFile)('sh', ['-c', limited, process.execPath, program], { timeout: 20_000 });
  expect(JSON.parse(stdout)).toEqual(Array.from({ length: 5 }, () => constants.NGHTTP2_CANCEL));
}, 30_000);
