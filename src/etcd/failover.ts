/** Asking a cluster instead of a member: elsewhere when one cannot answer. */
import type { Ask } from './call.ts';
import { type EtcdErrorKind, mayHaveHappened, type Result } from './errors.ts';

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

const noEndpoint = (why: string): Result<never> => ({ ok: false, error: { kind: 'unreachable', message: why } });

/** The first answer, in the order of the endpoints; without one, what the last said. */
export async function atAny<T>(
  endpoints: readonly string[],
  ask: Omit<Ask, 'endpoint'>,
  { repeatable }: AnyOptions,
  call: (ask: Ask) => Promise<Result<T>>,
): Promise<Result<T>> {
  let last: Result<T> = noEndpoint('there is no member to ask');
  for (const endpoint of endpoints) {
    if (ask.signal?.aborted) return last;
    last = await call({ ...ask, endpoint });
    if (last.ok || !ELSEWHERE.includes(last.error.kind)) return last;
    if (!repeatable && mayHaveHappened(last.error)) return last;
  }
  return last;
}
