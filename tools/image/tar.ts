/** Tar entries that depend only on their arguments: no clock, no host user names, no umask. */

export const BLOCK = 512;

export interface TarHeader {
  readonly path: string;
  readonly kind: 'file' | 'link' | 'folder';
  readonly mode: number;
  readonly size: number;
  readonly uid: number;
  readonly gid: number;
  /** Where a symbolic link points. */
  readonly link?: string;
}

const TYPE_FLAG = { file: '0', link: '2', folder: '5' } as const;
const NAME_BYTES = 100;
const PREFIX_BYTES = 155;
const OCTAL_7_MAX = 0o7777777;
const OCTAL_11_MAX = 0o77777777777;

/** The zeros that fill up the last block of a body. */
export const padding = (size: number): Buffer => Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK);

/** What a tar file ends with. */
export const END_OF_ARCHIVE: Buffer = Buffer.alloc(2 * BLOCK);

interface Split {
  readonly name: string;
  readonly prefix: string;
}

/** A ustar header has room for 155 + 100 ASCII bytes, split at a slash; undefined when the path does not fit. */
function split(path: string): Split | undefined {
  if (/[^\x20-\x7e]/.test(path)) return undefined;
  if (path.length <= NAME_BYTES) return { name: path, prefix: '' };
  for (let cut = path.indexOf('/'); cut !== -1 && cut <= PREFIX_BYTES; cut = path.indexOf('/', cut + 1)) {
    const name = path.slice(cut + 1);
    if (cut > 0 && name !== '' && name.length <= NAME_BYTES) return { name, prefix: path.slice(0, cut) };
  }
  return undefined;
}

function octal(value: number, max: number, what: string): string {
  if (!Number.isInteger(value) || value < 0 || value > max)
    throw new RangeError(`${what} ${value} does not fit into a tar header`);
  return value.toString(8);
}

function block(header: TarHeader, at: Split, typeFlag: string): Buffer {
  const bytes = Buffer.alloc(BLOCK);
  const number = (offset: number, digits: number, value: number, max: number, what: string): void => {
    bytes.write(octal(value, max, what).padStart(digits, '0'), offset, 'latin1');
  };
  bytes.write(at.name, 0, 'latin1');
  number(100, 7, header.mode, 0o7777, 'mode');
  number(108, 7, header.uid, OCTAL_7_MAX, 'user id');
  number(116, 7, header.gid, OCTAL_7_MAX, 'group id');
  number(124, 11, header.size, OCTAL_11_MAX, 'size');
  number(136, 11, 0, 0, 'time');
  bytes.fill(' ', 148, 156);
  bytes.write(typeFlag, 156, 'latin1');
  bytes.write((header.link ?? '').slice(0, NAME_BYTES), 157, 'latin1');
  bytes.write('ustar\x0000', 257, 'latin1');
  bytes.write(at.prefix, 345, 'latin1');
  let sum = 0;
  for (const byte of bytes) sum += byte;
  bytes.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return bytes;
}

/** One PAX record counts its own length, digits included. */
function paxRecord(key: string, value: string): Buffer {
  const rest = Buffer.byteLength(` ${key}=${value}\n`);
  let length = rest + String(rest).length;
  if (String(length).length > String(rest).length) length = rest + String(length).length;
  return Buffer.from(`${length} ${key}=${value}\n`);
}

/** The header blocks of one entry; a path or link that a ustar header cannot hold goes into a PAX header before it. */
export function tarHeader(header: TarHeader): Buffer {
  const path = header.kind === 'folder' ? `${header.path}/` : header.path;
  const at = split(path);
  const link = header.link ?? '';
  const linkFits = link.length <= NAME_BYTES && !/[^\x20-\x7e]/.test(link);
  const plain = { ...header, link: linkFits ? link : '' };
  if (at && linkFits) return block(plain, at, TYPE_FLAG[header.kind]);
  const records = Buffer.concat([
    ...(linkFits ? [] : [paxRecord('linkpath', link)]),
    ...(at ? [] : [paxRecord('path', path)]),
  ]);
  const pax = { path: 'pax', kind: 'file', mode: 0o644, size: records.length, uid: 0, gid: 0 } as const;
  return Buffer.concat([
    block(pax, { name: 'pax', prefix: '' }, 'x'),
    records,
    padding(records.length),
    block(plain, at ?? { name: 'pax-path', prefix: '' }, TYPE_FLAG[header.kind]),
  ]);
}
