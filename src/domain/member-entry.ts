/** An entry of etcd's member list, and the EtcdMember that it belongs to. */
import type { EtcdMember } from '../api/etcd-member.ts';
import { addedPeerURL } from './member-address.ts';

export interface EtcdMemberEntry {
  /** Hexadecimal, as etcdctl prints it. */
  readonly id: string;
  /** Empty until the member has started. */
  readonly name: string;
  readonly peerURLs: readonly string[];
  readonly isLearner: boolean;
}

/** Whether an entry of etcd's member list is this member. A member that never started has no name in the list. */
export const isEntryOf = (entry: EtcdMemberEntry, member: EtcdMember): boolean => {
  const id = member.status?.memberID;
  if (id !== undefined) return entry.id === id;
  return entry.name === member.metadata.name || entry.peerURLs.includes(addedPeerURL(member));
};
