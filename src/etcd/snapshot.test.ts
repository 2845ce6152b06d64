import { createHash } from 'node:crypto';
import { createRouterTransport } from '@connectrpc/connect';
import { expect, test } from 'vitest';
import { Maintenance } from '../gen/etcd/maintenance_pb.ts';
import { EtcdClient } from './client.ts';

interface Piece {
  readonly blob: Uint8Array;
  readonly remainingBytes: bigint;
}
const ask = { endpoint: 'http://10.0.0.1:2379', timeoutMs: 1000 };
const DATA = [Buffer.from('first page'), Buffer.from('second page'), Buffer.from('third')];
const DIGEST = createHash('sha256').update(Buffer.concat(DATA)).digest();
const TOTAL = Buffer.concat(DATA).length;

function honest(): Piece[] {
  let left = TOTAL;
  const pages = DATA.map((blob) => ({ blob, remainingBytes: BigInt((left -= blob.length)) }));
  return [...pages, { blob: DIGEST, remainingBytes: 0n }];
}

function snapshotOf(pieces: readonly Piece[], maxBytes?: number) {
  const transport = createRouterTransport(({ service }) =>
    service(Maintenance, {
      async *snapshot() {
        yield* pieces;
      },
    }),
  );
  const session = { control: transport, bulk: transport, state: () => 'open' as const, close: () => {} };
  const client = new EtcdClient(() => performance.now(), { open: () => session });
  return client.maintenance.snapshot(ask, maxBytes === undefined ? {} : { maxBytes });
}

const read = async (stream: AsyncIterable<Uint8Array>): Promise<Buffer> => Buffer.concat(await Array.fromAsync(stream));

test('the bytes are those of a snapshot file: the database and its digest', async () => {
  const stream = snapshotOf(honest());
  expect(await read(stream)).toEqual(Buffer.concat([...DATA, DIGEST]));
  expect(stream).toMatchObject({ totalBytes: TOTAL, receivedBytes: TOTAL, digest: DIGEST.toString('hex') });
  const all = createHash('sha256').update(Buffer.concat([...DATA, DIGEST]));
  expect(stream.fileDigest).toBe(all.digest('hex'));
});

test.each([
  ['a flipped bit', honest().with(1, { blob: Buffer.from('sekond page'), remainingBytes: 5n })],
  ['no digest', honest().slice(0, -1)],
  ['a digest of the wrong length', honest().with(3, { blob: DIGEST.subarray(1), remainingBytes: 0n })],
  ['another digest', honest().with(3, { blob: Buffer.alloc(32), remainingBytes: 0n })],
  ['a missing page', honest().toSpliced(1, 1)],
  ['a stream that ends early', honest().slice(0, 2)],
  ['pages after the digest', [...honest(), { blob: Buffer.from('more'), remainingBytes: 0n }]],
  ['nothing at all', []],
])('%s fails the snapshot, and its digest stays unknown', async (_, pieces) => {
  const stream = snapshotOf(pieces);
  await expect(read(stream)).rejects.toMatchObject({ error: { kind: 'badDigest' } });
  expect(stream.digest).toBeUndefined();
});

test('a database that is larger than the limit of the caller is refused at its first page', async () => {
  await expect(read(snapshotOf(honest(), 20))).rejects.toMatchObject({ error: { kind: 'tooLarge' } });
});
