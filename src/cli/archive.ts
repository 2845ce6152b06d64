/** A tar archive, compressed: one file that a user can send. */
import { gzipSync } from 'node:zlib';

export interface ArchiveFile {
  readonly name: string;
  readonly content: string;
}

const BLOCK = 512;

export function archive(files: readonly ArchiveFile[], modifiedAt: number): Buffer {
  const parts = files.flatMap(({ name, content }) => {
    const bytes = Buffer.from(content);
    const padding = Buffer.alloc((BLOCK - (bytes.length % BLOCK)) % BLOCK);
    return [header(name, bytes.length, modifiedAt), bytes, padding];
  });
  return gzipSync(Buffer.concat([...parts, Buffer.alloc(2 * BLOCK)]));
}

/** POSIX ustar. */
function header(name: string, size: number, modifiedAt: number): Buffer {
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, at: number, length: number): void =>
    void block.write(value.toString(8).padStart(length - 1, '0'), at);
  block.write(name.slice(0, 100), 0);
  octal(0o600, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(size, 124, 12);
  octal(Math.floor(modifiedAt / 1_000), 136, 12);
  block.fill(' ', 148, 156); // the checksum counts as spaces
  block.write('0', 156);
  block.write('ustar\u000000', 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\u0000 `, 148);
  return block;
}
