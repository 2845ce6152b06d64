/** Asks the members of a cluster through ports that the API server forwards. */

import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import { CLIENT_PORT } from '../../api/names.ts';
import { memberClientScheme, memberHost } from '../../domain/member-address.ts';
import { isPodOver } from '../../domain/pod.ts';
import { askMember } from '../../etcd/ask-member.ts';
import { type Access, type Ask, type Etcd, EtcdClient } from '../../etcd/client.ts';
import { atAny } from '../../etcd/failover.ts';
import { hexId } from '../../etcd/ids.ts';
import type { MemberFacts, MemberList, MemberReport, Unanswered } from '../assess/facts.ts';
import type { Context, Way } from '../context.ts';
import { type ClusterAccess, clusterAccess } from './access.ts';
import { explain, isAllowed } from './access-error.ts';
import type { Member } from './objects.ts';

/** For a port-forward through a busy API server, a TLS handshake and the response. */
const ASK_MS = 5_000;

/** A member that can be asked. */
export interface Reached {
  readonly member: Member;
  readonly way: Way;
  readonly endpoint: string;
}

/** Open ways to the members of a cluster, and the client to ask them with. */
export interface Session {
  readonly etcd: Etcd;
  readonly access: Access;
  readonly credentials: ClusterAccess;
  readonly reached: readonly Reached[];
  readonly ask: (endpoint: string, timeoutMs?: number) => Ask;
  readonly close: () => void;
}

const refOf = ({ object: { metadata } }: Member) => ({
  namespace: metadata.namespace ?? '',
  name: metadata.name ?? '',
});

const mayRun = ({ pod }: Member): boolean => pod !== undefined && pod.status?.podIP !== undefined && !isPodOver(pod);

export async function openSession(
  context: Pick<Context, 'client' | 'reach' | 'now' | 'signal'>,
  cluster: EtcdCluster,
  members: readonly Member[],
): Promise<Session> {
  const reached = await Promise.all(
    members.filter(mayRun).map(async (member): Promise<Reached> => {
      const way = await context.reach(refOf(member), CLIENT_PORT);
      return { member, way, endpoint: `${memberClientScheme(member.object)}://${way.address}` };
    }),
  );
  const hostAt = (endpoint: string): string | undefined => {
    const found = reached.find((each) => each.endpoint === endpoint);
    return found && memberHost(found.member.object);
  };
  const credentials = await clusterAccess(context.client, cluster, members, hostAt, context.now);
  const etcd = new EtcdClient(() => performance.now());
  return {
    etcd,
    access: credentials.access,
    credentials,
    reached,
    ask: (endpoint, timeoutMs = ASK_MS) => ({
      endpoint,
      timeoutMs,
      access: credentials.access,
      signal: context.signal,
    }),
    close: () => {
      etcd.close();
      for (const { way } of reached) way.close();
    },
  };
}

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
  const denied = await deniedForward(context, cluster);
  return denied === undefined ? { members: answers, list } : silent({ is: 'notAsked', message: denied });
}

/** The reason of a refused WebSocket is not visible to its client, so the API server is asked for the permission. */
async function deniedForward(
  { client }: Pick<Context, 'client'>,
  { metadata: { namespace = '' } }: EtcdCluster,
): Promise<string | undefined> {
  const verbs = ['get', 'create'];
  const allowed = await Promise.all(
    verbs.map((verb) => isAllowed(client.transport, { verb, resource: 'pods', subresource: 'portforward', namespace })),
  );
  const lacking = verbs.filter((_, index) => allowed[index] === false);
  return lacking.length === 0
    ? undefined
    : `you lack the permission to ${lacking.join(' and ')} pods/portforward in namespace ${namespace}`;
}

async function askOne(cluster: EtcdCluster, member: Member, session: Session): Promise<MemberFacts['answer']> {
  const reached = session.reached.find((each) => each.member === member);
  if (!reached) return { is: 'failed', message: 'its Pod is not running' };
  const expected = { clusterID: cluster.status?.clusterID, memberID: member.object.status?.memberID };
  const answer = await askMember(session.etcd, session.ask(reached.endpoint), expected);
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

/** The port-forward knows better than etcd's client why there is no connection. */
const causeOf = ({ way }: Reached, message: string): string => {
  const error = way.error();
  return error === undefined ? message : explain(error);
};

async function askList({ etcd, ask, reached, access, credentials }: Session): Promise<MemberList> {
  if (credentials.missing !== undefined) return { is: 'notAsked', message: credentials.missing };
  const endpoints = reached.map(({ endpoint }) => endpoint);
  const { endpoint: _, ...rest } = ask('');
  for (const linearizable of [true, false]) {
    const listed = await atAny(endpoints, { ...rest, access }, { repeatable: true }, (each) =>
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
