/**
 * The status of one member. A Pod address is reused: a response counts only from the expected cluster and the expected
 * member.
 */
import { present } from '../lib/present.ts';
import type { Ask } from './call.ts';
import { hexId } from './ids.ts';
import type { MaintenancePort, MemberStatus } from './maintenance.ts';

export interface SelfReport {
  readonly id: string;
  readonly clusterID: string;
  /** `undefined` without a leader. */
  readonly leader: string | undefined;
  readonly isLearner: boolean;
  readonly version: string;
  /** The member's own alarms, as etcd spells them. */
  readonly alarms: readonly string[];
  readonly databaseBytes: number;
  /** Without free pages, which only a defragmentation returns to the volume. */
  readonly databaseBytesInUse: number;
  readonly term: number;
  readonly applied: number;
  /** From etcd 3.6 on. */
  readonly storageVersion?: string;
  /** The version that a downgrade has been enabled to; from etcd 3.6 on. */
  readonly downgradeTo?: string;
}

/** Ids that are not recorded yet are not compared. */
export interface Expected {
  readonly clusterID?: string | undefined;
  readonly memberID?: string | undefined;
}

export type AskedMember =
  | { readonly is: 'failed' | 'otherCluster'; readonly message: string }
  | { readonly is: 'otherMember'; readonly id: string; readonly message: string }
  | { readonly is: 'answers'; readonly self: SelfReport; readonly status: MemberStatus };

export async function askMember(
  etcd: Pick<MaintenancePort, 'status'>,
  ask: Ask,
  { clusterID, memberID }: Expected,
): Promise<AskedMember> {
  const answer = await etcd.status(ask);
  if (!answer.ok) return { is: 'failed', message: answer.error.message };
  const self = selfReport(answer.value);
  if (clusterID !== undefined && self.clusterID !== clusterID)
    return { is: 'otherCluster', message: 'a member of another cluster responds at its address' };
  if (memberID !== undefined && self.id !== memberID)
    return { is: 'otherMember', id: self.id, message: `member ${self.id} responds at its address` };
  return { is: 'answers', self, status: answer.value };
}

const selfReport = (s: MemberStatus): SelfReport => ({
  id: hexId(s.memberId),
  clusterID: hexId(s.clusterId),
  leader: s.leader === 0n ? undefined : hexId(s.leader),
  isLearner: s.isLearner,
  version: s.version,
  alarms: s.alarms.flatMap(({ memberId, alarm }) => (memberId === s.memberId ? [alarm] : [])),
  databaseBytes: s.dbSize,
  databaseBytesInUse: s.dbSizeInUse,
  term: Number(s.raftTerm),
  applied: Number(s.raftAppliedIndex),
  ...present({ storageVersion: s.storageVersion, downgradeTo: s.downgradeTo }),
});
