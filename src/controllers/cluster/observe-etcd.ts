/** What the members of a cluster report: the member list of the quorum, and each member's own status. */
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import { HASH_TIMEOUT_MS } from '../../domain/timing.ts';
import { askMember } from '../../etcd/ask-member.ts';
import type { Ask } from '../../etcd/call.ts';
import type { Access, EtcdPort, MemberStatus } from '../../etcd/client.ts';
import { hexId } from '../../etcd/ids.ts';
import type { MaintenancePort } from '../../etcd/maintenance.ts';
import { endpointsOf } from './etcd-calls.ts';
import { type EtcdView, isInconsistent, type MemberView } from './observed.ts';

/** What requests to members in this reconcile share. */
interface Requests {
  readonly etcd: EtcdPort & { readonly maintenance: Pick<MaintenancePort, 'hashKV' | 'downgrade'> };
  readonly ask: Omit<Ask, 'endpoint'> & { readonly access: Access };
}

type Answers = Extract<EtcdView, { readonly is: 'answers' }>;

/** A member with the status that its etcd reported. */
type AskedMember = MemberView & { readonly status?: MemberStatus };

/** Asks every member of a bootstrapped cluster for its own status. */
export function askEach(
  { etcd, ask }: Requests,
  cluster: EtcdCluster,
  members: readonly MemberView[],
): Promise<readonly AskedMember[]> {
  const clusterID = cluster.status?.clusterID;
  const askOne = async (m: MemberView): Promise<AskedMember> => {
    const [endpoint] = endpointsOf(m);
    if (clusterID === undefined || endpoint === undefined) return m;
    const expected = { clusterID, memberID: m.object.status?.memberID };
    const answer = await askMember(etcd, { ...ask, endpoint }, expected);
    if (answer.is === 'otherMember') return { ...m, answersAs: answer.id };
    return answer.is === 'answers' ? { ...m, self: answer.self, status: answer.status } : m;
  };
  return Promise.all(members.map(askOne));
}

export const alarmsOf = (members: readonly { readonly status?: Pick<MemberStatus, 'alarms'> }[]): Answers['alarms'] => {
  const all = members.flatMap(({ status }) => status?.alarms ?? []);
  const named = all.map(({ memberId, alarm }) => ({ id: hexId(memberId), alarm }));
  return [...new Map(named.map((each) => [`${each.id} ${each.alarm}`, each])).values()];
};

/** All members have it. */
export const lowestRevision = (statuses: readonly MemberStatus[]): bigint =>
  statuses.reduce((min, s) => (s.revision < min ? s.revision : min), statuses[0]?.revision ?? 0n);

/** When corruption is reported, asks all members for the hash at the lowest revision, which all of them have, to find whose data differs. */
export async function withHashes(
  { etcd, ask }: Requests,
  members: readonly AskedMember[],
): Promise<readonly AskedMember[]> {
  const statuses = members.flatMap((m) => m.status ?? []);
  const alarmed = statuses.some((s) => s.alarms.some(({ alarm }) => alarm === 'CORRUPT'));
  if (!alarmed && !members.some(isInconsistent)) return members;
  const revision = lowestRevision(statuses);
  return Promise.all(
    members.map(async (m) => {
      const [endpoint] = endpointsOf(m);
      if (!m.self || endpoint === undefined) return m;
      const answer = await etcd.maintenance.hashKV({ ...ask, endpoint, timeoutMs: HASH_TIMEOUT_MS }, revision);
      if (!answer.ok) return m;
      return { ...m, self: { ...m.self, hash: `${answer.value.compactRevision}:${answer.value.hash}` } };
    }),
  );
}

/**
 * etcd 3.5 exits when it joins a cluster that has no cluster version yet, which is so for a moment after the seed has started.
 * No RPC returns the cluster version; validating a downgrade changes nothing and fails differently without one.
 */
async function lacksVersion(
  { etcd, ask }: Requests,
  cluster: EtcdCluster,
  members: readonly MemberView[],
  list: Listed,
): Promise<boolean> {
  const alone = list.is === 'answers' && list.view.members.length === 1 && (cluster.spec.replicas ?? 1) > 1;
  const old = members.find(({ self }) => self?.version.startsWith('3.5.'));
  const [endpoint] = alone && old ? endpointsOf(old) : [];
  if (endpoint === undefined) return false;
  const answer = await etcd.maintenance.downgrade({ ...ask, endpoint }, 'validate', '0.0.1');
  return !answer.ok && answer.error.kind === 'busy';
}

/** The member list, with the cluster version where a rule needs it. */
export async function etcdView(
  requests: Requests,
  cluster: EtcdCluster,
  members: readonly AskedMember[],
  list: Listed,
): Promise<EtcdView> {
  if (list.is !== 'answers') return list;
  const unversioned = await lacksVersion(requests, cluster, members, list);
  return { ...list.view, ...(unversioned && { unversioned }), alarms: alarmsOf(members) };
}

/** Voters with a ready Pod are the most likely to return a linearizable member list. */
const rank = ({ object, pod }: MemberView): number =>
  (object.status?.isVoter === true ? 2 : 0) + (pod.is === 'present' && pod.ready ? 1 : 0);

type Listed =
  | Exclude<EtcdView, Answers>
  /** With the endpoint that returned the list. */
  | { readonly is: 'answers'; readonly view: Answers; readonly from: string };

/**
 * Asks voters first. The list is linearizable, so the first response is that of the quorum. One member with the volume of another
 * cluster must not keep the others from being repaired: its list counts only when no other member responds.
 */
export async function askEtcd(
  { etcd, ask }: Requests,
  { status }: EtcdCluster,
  members: readonly MemberView[],
): Promise<Listed> {
  const order = [...members].sort((a, b) => rank(b) - rank(a));
  let view: Listed = { is: 'notAsked' };
  let ofAnother: Listed | undefined;
  for (const endpoint of order.flatMap(endpointsOf)) {
    const response = await etcd.memberList({ ...ask, endpoint, linearizable: true });
    if (!response.ok) {
      const { kind, message } = response.error;
      if (kind === 'authFailed') return { is: 'authRejected', message }; // every member would reject it too, and each attempt takes long
      const authRequired: boolean = kind === 'authRequired' || view.is === 'authRequired';
      view = { is: authRequired ? 'authRequired' : 'unreachable', message };
      continue;
    }
    const { clusterId, members: entries } = response.value;
    const listed = entries.map(({ id, name, peerURLs, isLearner }) => ({ id: hexId(id), name, peerURLs, isLearner }));
    const clusterID = hexId(clusterId);
    const answer: Listed = {
      is: 'answers',
      from: endpoint,
      view: { is: 'answers', clusterID, members: listed, alarms: [] },
    };
    if (clusterID === (status?.clusterID ?? clusterID)) return answer;
    ofAnother ??= answer;
  }
  return ofAnother ?? view;
}
