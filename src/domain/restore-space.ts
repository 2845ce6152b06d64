/** The space that a restored database needs: the agent checks it before it starts, and a drill against the cluster's own spec. */
const MIB = 2 ** 20;
/** etcd preallocates WAL files of this size: the one in use, and the next one. */
const WAL_BYTES = 64 * MIB;
/** bbolt grows its file while etcdutl changes the identity of the members. */
export const MARGIN_BYTES = 16 * MIB;

/** On the data volume of a member, from the restore until etcd serves. */
export const dataBytesFor = (databaseBytes: number): number => databaseBytes + 2 * WAL_BYTES + MARGIN_BYTES;

/** In one folder with the fetched file. */
export const bytesInOneFolder = (databaseBytes: number): number => databaseBytes + dataBytesFor(databaseBytes);

export const mebibytes = (bytes: number): string => `${Math.ceil(bytes / MIB)} MiB`;
