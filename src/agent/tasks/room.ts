/** Where a snapshot is downloaded to, so that it and the data directory fit. */
import { statfs } from 'node:fs/promises';
import { bytesInOneFolder, dataBytesFor, MARGIN_BYTES, mebibytes } from '../../domain/restore-space.ts';
import { AgentFailure } from '../failure.ts';

export interface Folders {
  /** Of the data directory. */
  readonly data: string;
  /** On the node, for the downloaded file; without one, the data volume has to hold both. */
  readonly scratch?: string;
  /** At most this many bytes of `data`, whatever its file system has. */
  readonly limitBytes?: number;
}

export interface Room {
  /** For the downloaded file. */
  readonly folder: string;
  /** Why a database of this size does not fit. */
  readonly lack: (databaseBytes: number) => AgentFailure | undefined;
}

/** The kubelet evicts Pods, members among them, when less than a tenth of the node's disk is free. */
const RESERVED_OF_NODE = 0.15;

async function freeIn(folder: string, reserved = 0): Promise<number> {
  const { bavail, blocks, bsize } = await statfs(folder);
  return Math.max(0, (bavail - reserved * blocks) * bsize);
}

export const freeOnNode = (folder: string): Promise<number> => freeIn(folder, RESERVED_OF_NODE);

export const noSpace = (how: string, options?: ErrorOptions): AgentFailure =>
  new AgentFailure(
    'NoSpace',
    `the volume is too small for the snapshot: ${how}. Set a larger storage.size, or storageSize of the drill`,
    options,
  );

const check =
  (free: number, needed: (databaseBytes: number) => number, also = '') =>
  (databaseBytes: number): AgentFailure | undefined =>
    needed(databaseBytes) <= free
      ? undefined
      : noSpace(
          `${mebibytes(needed(databaseBytes))} are needed for a database of ${mebibytes(databaseBytes)}, and ${mebibytes(free)} are free${also}`,
        );

/**
 * The scratch folder, so that a cluster that fills most of its volume can be restored into a volume of the same size. If the
 * node lacks room, the data volume, which then has to hold the database twice.
 */
export async function findRoom({ data, scratch, limitBytes }: Folders, databaseBytes: number): Promise<Room> {
  const free = Math.min(await freeIn(data), limitBytes ?? Number.POSITIVE_INFINITY);
  const inData = check(free, dataBytesFor);
  const onNode = scratch === undefined ? 0 : await freeOnNode(scratch);
  const inScratch = check(onNode, (bytes) => bytes + MARGIN_BYTES);
  if (scratch !== undefined && (inData(databaseBytes) ?? inScratch(databaseBytes)) === undefined)
    return { folder: scratch, lack: (bytes) => inData(bytes) ?? inScratch(bytes) };
  const also = scratch === undefined ? '' : `; of the node’s disk, ${mebibytes(onNode)} may be used`;
  const room = { folder: data, lack: check(free, bytesInOneFolder, also) };
  const lack = (scratch === undefined ? undefined : inData(databaseBytes)) ?? room.lack(databaseBytes);
  if (lack) throw lack;
  return room;
}
