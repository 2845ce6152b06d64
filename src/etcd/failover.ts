/** Asking a cluster instead of a member: elsewhere when one cannot answer, or at the leader where only it can. */
import type { Ask } from './call.ts';
import { type Answer, type EtcdErrorKind, mayHaveHappened } from './errors.ts';
import type { MaintenancePort } from './maintenance.ts';

/** With these, another member may have an answer. */
const ELSEWHERE: readonly EtcdErrorKind[] = [
  'unreachable',
  'disconnected',
  'timeout',
  'tls',
  'learnerRefused',
  'noLeader',
  'busy',
  'badAnswer',
  'wrongCluster',
  // Each member judges by its own connections to its peers, before it proposes anything. After a peer's address has changed,
  // that view can be wrong for ever: the leader of two healthy voters refused every MemberAdd, the other one accepted it.
  // 'notEnoughStarted' is not here: it follows from the replicated member list, and every member answers the same.
  'unhealthyCluster',
];

export interface AnyOptions {
  /** False for a change that must not be made twice: then it is tried elsewhere only if it was certainly not made here. */
  readonly repeatable: boolean;
}

const nobody = (why: string): Answer<never> => ({ ok: false, error: { kind: 'unreachable', message: why } });

/** The first answer, in the order of the endpoints; without one, what the last said. */
export async function atAny<T>(
  endpoints: readonly string[],
  ask: Omit<Ask, 'endpoint'>,
  { repeatable }: AnyOptions,
  call: (ask: Ask) => Promise<Answer<T>>,
): Promise<Answer<T>> {
  let last: Answer<T> = nobody('there is no member to ask');
  for (const endpoint of endpoints) {
    if (ask.signal?.aborted) return last;
    last = await call({ ...ask, endpoint });
    if (last.ok || !ELSEWHERE.includes(last.error.kind)) return last;
    if (!repeatable && mayHaveHappened(last.error)) return last;
  }
  return last;
}

/** Where the leader is. A member that says that it leads is believed; others only tell whom to look for. */
export async function findLeader(
  maintenance: Pick<MaintenancePort, 'status'>,
  endpoints: readonly string[],
  ask: Omit<Ask, 'endpoint'>,
): Promise<Answer<string>> {
  const answers = await Promise.all(
    endpoints.map(async (endpoint) => ({ endpoint, status: await maintenance.status({ ...ask, endpoint }) })),
  );
  let newest: { readonly endpoint: string; readonly term: bigint } | undefined;
  for (const { endpoint, status } of answers) {
    if (!status.ok || status.value.leader === 0n || status.value.leader !== status.value.memberId) continue;
    // A leader that was cut off believes in itself for a while; the one of the later term is right.
    if (!newest || status.value.raftTerm > newest.term) newest = { endpoint, term: status.value.raftTerm };
  }
  if (newest) return { ok: true, value: newest.endpoint };
  const error = answers.map(({ status }) => status).find((status) => !status.ok);
  return error ?? { ok: false, error: { kind: 'noLeader', message: 'no member says that it is the leader' } };
}

/** For calls that only the leader serves. It may change between the question and the call: then once more. */
export async function atLeader<T>(
  maintenance: Pick<MaintenancePort, 'status'>,
  endpoints: readonly string[],
  ask: Omit<Ask, 'endpoint'>,
  call: (ask: Ask) => Promise<Answer<T>>,
): Promise<Answer<T>> {
  for (let attempt = 1; ; attempt++) {
    const leader = await findLeader(maintenance, endpoints, ask);
    if (!leader.ok) return leader;
    const answer = await call({ ...ask, endpoint: leader.value });
    if (answer.ok || answer.error.kind !== 'notLeader' || attempt > 1) return answer;
  }
}
