/** What the members of a cluster respond: each about itself, and one of them about all. */

import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import { askMember } from '../../etcd/ask-member.ts';
import { atAny } from '../../etcd/failover.ts';
import { hexId } from '../../etcd/ids.ts';
import type { MemberFacts, MemberList, MemberReport, Unanswered } from '../assess/facts.ts';
import type { Context } from '../context.ts';
import { deniedForward } from './access-error.ts';
import type { Member } from './objects.ts';
import { causeOf, type Session } from './session.ts';

export interface Answers {
  readonly members: readonly MemberFacts[];
  readonly list: MemberList;
}

export async function askAll(
  context: Pick<Context, 'client'>,
  cluster: EtcdCluster,
  members: readonly Member[],
  session: Session,
): Promise<Answers> {
  const { missing } = session.credentials;
  const silent = (answer: Unanswered): Answers => ({
    members: members.map((member) => ({ ...member, answer })),
    list: answer,
  });
  if (missing !== undefined) return silent({ is: 'notAsked', message: missing });
  const [answers, list] = await Promise.all([
    Promise.all(members.map(async (member) => ({ ...member, answer: await askOne(cluster, member, session) }))),
    askList(session),
  ]);
  const failed = session.reached.find(({ way }) => way.error() !== undefined);
  if (!failed || list.is === 'answers') return { members: answers, list };
  const denied = await deniedForward(context.client.transport, cluster.metadata.namespace ?? '');
  return denied === undefined ? { members: answers, list } : silent({ is: 'notAsked', message: denied });
}

async function askOne(cluster: EtcdCluster, member: Member, session: Session): Promise<MemberFacts['answer']> {
  const reached = session.reached.find(({ name }) => name === member.object.metadata.name);
  if (!reached) return { is: 'failed', message: 'its Pod is not running' };
  const expected = { clusterID: cluster.status?.clusterID, memberID: member.object.status?.memberID };
  const answer = await askMember(session.etcd, session.ask(reached), expected);
  if (answer.is !== 'answers') return { is: 'failed', message: causeOf(reached, answer.message) };
  const { self, status } = answer;
  const report: MemberReport = {
    id: self.id,
    leader: self.leader,
    alarms: self.alarms,
    applied: self.applied,
    isLearner: self.isLearner,
    version: self.version,
    term: self.term,
    raftIndex: Number(status.raftIndex),
    revision: Number(status.revision),
    databaseBytes: status.dbSize,
    inUseBytes: status.dbSizeInUse,
  };
  return { is: 'answers', report };
}

async function askList({ etcd, ask, reached, credentials }: Session): Promise<MemberList> {
  if (credentials.missing !== undefined) return { is: 'notAsked', message: credentials.missing };
  const endpoints = reached.map(({ endpoint }) => endpoint);
  const { endpoint: _, ...rest } = ask({ endpoint: '' });
  for (const linearizable of [true, false]) {
    const listed = await atAny(endpoints, rest, { repeatable: true }, (each) =>
      etcd.memberList({ ...each, linearizable }),
    );
    if (listed.ok)
      return {
        is: 'answers',
        confirmed: linearizable,
        members: listed.value.members.map(({ id, name, peerURLs, isLearner }) => ({
          id: hexId(id),
          name,
          peerURLs,
          isLearner,
        })),
      };
    if (!linearizable) return { is: 'failed', message: listed.error.message };
  }
  return { is: 'failed', message: 'no member responded' };
}
