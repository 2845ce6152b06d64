/** zstd over streams, with Node's implementation. */
import { pipeline, Readable, type Transform } from 'node:stream';
import { constants, createZstdCompress, createZstdDecompress } from 'node:zlib';
import { AgentFailure } from '../failure.ts';

const { ZSTD_c_checksumFlag, ZSTD_c_compressionLevel, ZSTD_d_windowLogMax } = constants;
const LEVEL = 3;
/** Our window is 2 MiB; a hostile frame could ask for 128 MiB of memory. */
const WINDOW_LOG_MAX = 23;
const PIECE_BYTES = 256 * 1024;

export function compress(body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  const params = { [ZSTD_c_compressionLevel]: LEVEL, [ZSTD_c_checksumFlag]: 1 };
  return through(gathered(body), createZstdCompress({ params, chunkSize: PIECE_BYTES }));
}

/** etcd sends 32 KiB at a time, and each chunk costs two thread switches: on a busy machine those took all the time. */
async function* gathered(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let waiting: Uint8Array[] = [];
  let length = 0;
  for await (const piece of body) {
    waiting.push(piece);
    length += piece.length;
    if (length < PIECE_BYTES) continue;
    yield Buffer.concat(waiting);
    [waiting, length] = [[], 0];
  }
  yield Buffer.concat(waiting);
}

/**
 * Throws SnapshotDamaged when it is incomplete. The reader must limit the output: a small input can become very large.
 */
export async function* decompress(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const params = { [ZSTD_d_windowLogMax]: WINDOW_LOG_MAX };
  try {
    yield* through(body, createZstdDecompress({ params, chunkSize: PIECE_BYTES }));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (!/^(ZSTD_|Z_)/.test(String(code))) throw error; // an error of the source
    const message = 'the stored snapshot is not valid zstd data: restore from another one';
    throw new AgentFailure('SnapshotDamaged', message, { cause: error });
  }
}

/** A stage that fails, or stops reading, ends the others, and the reader gets the first error. */
const through = (body: AsyncIterable<Uint8Array>, transform: Transform): AsyncIterable<Uint8Array> =>
  pipeline(Readable.from(body), transform, () => {});
