/** Reads from an ELF file what decides whether it can run in an image: its machine, its loader, the libraries it needs. */

export type Architecture = 'amd64' | 'arm64';

export interface Elf {
  /** Undefined for a machine that no image is built for. */
  readonly machine: Architecture | undefined;
  /** The loader that the kernel starts, for a program. */
  readonly interpreter: string | undefined;
  readonly needed: readonly string[];
}

const MACHINES: Readonly<Record<number, Architecture>> = { 62: 'amd64', 183: 'arm64' };
const PT_LOAD = 1;
const PT_DYNAMIC = 2;
const PT_INTERP = 3;
const DT_NULL = 0;
const DT_NEEDED = 1;
const DT_STRTAB = 5;

interface Segment {
  readonly type: number;
  readonly offset: number;
  readonly address: number;
  readonly size: number;
}

const long = (bytes: Buffer, offset: number): number => Number(bytes.readBigUInt64LE(offset));
const text = (bytes: Buffer, offset: number): string => bytes.toString('latin1', offset, bytes.indexOf(0, offset));

function segments(bytes: Buffer): Segment[] {
  const start = long(bytes, 32);
  const entrySize = bytes.readUInt16LE(54);
  return Array.from({ length: bytes.readUInt16LE(56) }, (_, index) => {
    const at = start + index * entrySize;
    return {
      type: bytes.readUInt32LE(at),
      offset: long(bytes, at + 8),
      address: long(bytes, at + 16),
      size: long(bytes, at + 32),
    };
  });
}

/** The names of DT_NEEDED; their string table is given by its address in memory, not in the file. */
function needed(bytes: Buffer, all: readonly Segment[]): string[] {
  const dynamic = all.find((segment) => segment.type === PT_DYNAMIC);
  if (!dynamic) return [];
  const names: number[] = [];
  let table = 0;
  for (let at = dynamic.offset; at < dynamic.offset + dynamic.size; at += 16) {
    const tag = long(bytes, at);
    if (tag === DT_NULL) break;
    if (tag === DT_NEEDED) names.push(long(bytes, at + 8));
    if (tag === DT_STRTAB) table = long(bytes, at + 8);
  }
  const home = all.find((s) => s.type === PT_LOAD && s.address <= table && table < s.address + s.size);
  if (!home) return [];
  return names.map((name) => text(bytes, table - home.address + home.offset + name));
}

/** Undefined when the bytes are not a 64-bit little-endian ELF file. */
export function readElf(bytes: Buffer): Elf | undefined {
  if (bytes.length < 64 || bytes.readUInt32BE(0) !== 0x7f454c46 || bytes[4] !== 2 || bytes[5] !== 1) return undefined;
  const all = segments(bytes);
  const interpreter = all.find((segment) => segment.type === PT_INTERP);
  return {
    machine: MACHINES[bytes.readUInt16LE(18)],
    interpreter: interpreter && text(bytes, interpreter.offset),
    needed: needed(bytes, all),
  };
}
