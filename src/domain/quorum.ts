/** Quorum arithmetic: which members of an etcd cluster count as healthy, which one is corrupt, and who leads. */

export const quorumOf = (voters: number): number => Math.floor(voters / 2) + 1;

/** What a member's own etcd reports. Ids are hexadecimal, as etcdctl prints them. */
export interface Report {
  readonly id: string;
  readonly leader: string | undefined;
  readonly alarms: readonly string[];
  /** The raft index that it has applied. */
  readonly applied: number;
  /** Hash of all keys at one revision, requested only while a member reports corruption. Equal hashes mean equal data. */
  readonly hash?: string;
}

export interface Reporting {
  /** Its id in etcd's member list; `undefined` when etcd does not list it. */
  readonly id: string | undefined;
  /** The response at its address. */
  readonly self: Report | undefined;
  /** Its etcd exits at every start, because its data differs from that of a peer. */
  readonly isInconsistent: boolean;
}

/** A member that lags by more raft entries does not count as healthy. etcd keeps about this number of entries for slow followers. */
const MAX_LAG = 5_000;

/**
 * An address can be reused within the cluster: a response with another id than that of the member's entry comes from another
 * member, and would count one voter twice.
 */
const reportOf = ({ id, self }: Reporting): Report | undefined =>
  id === undefined || id === self?.id ? self : undefined;

/**
 * Its data differs from the data of a quorum. An alarm alone does not identify the corrupt member, and two halves that differ
 * do not either. Hashes are requested only while corruption is reported. A member whose etcd exits because a peer has other data
 * has no hash: it is the corrupt one only if the hashes of all other voters are equal.
 */
export function isCorrupt(voters: readonly Reporting[], member: Reporting): boolean {
  const hashes = voters.map((voter) => ({ id: voter.id, hash: reportOf(voter)?.hash }));
  const votes = (hash: string | undefined): number => hashes.filter((other) => other.hash === hash).length;
  const agreed = hashes.find(({ hash }) => votes(hash) >= quorumOf(hashes.length))?.hash;
  if (agreed === undefined) return false;
  const hash = reportOf(member)?.hash;
  if (hash !== undefined) return hash !== agreed;
  return member.isInconsistent && hashes.every((other) => other.id === member.id || other.hash === agreed);
}

/**
 * Its report, if it responds, follows a leader, does not lag and is not corrupt. A member with a full database still serves
 * reads. `applied`: the highest raft index that any member has applied.
 */
export function healthyReport(voters: readonly Reporting[], member: Reporting, applied: number): Report | undefined {
  const report = reportOf(member);
  if (!report || report.leader === undefined || report.alarms.includes('CORRUPT')) return undefined;
  return !isCorrupt(voters, member) && applied - report.applied <= MAX_LAG ? report : undefined;
}

/** The leader, if all healthy voters agree on it. */
export function agreedLeader(healthy: readonly Report[]): string | undefined {
  const leaders = new Set(healthy.map(({ leader }) => leader));
  return leaders.size === 1 ? [...leaders][0] : undefined;
}
