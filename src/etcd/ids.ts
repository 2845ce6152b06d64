/** Ids of clusters and members, as etcd's log prints them and objects record them; etcdctl leaves out leading zeros. */
export const hexId = (id: bigint): string => id.toString(16).padStart(16, '0');
export const idOf = (hex: string): bigint => BigInt(`0x${hex}`);
