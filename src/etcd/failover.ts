/** Calls any member of a cluster: another one when the first cannot serve the call. */
import type { Ask } from './call.ts';
import { type EtcdErrorKind, mayHaveHappened, type Result } from './errors.ts';

/** With these, another member may serve the call. */
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
  // Each member judges by its own connections to its peers, before it proposes anything. After a peer's address has
  // changed, that view can stay wrong: the leader of two healthy voters refused every MemberAdd, the other one accepted
  // it. 'notEnoughStarted' is not here: it follows from the replicated member list, and every member responds the same.
  'unhealthyCluster',
];

const noEndpoint = (message: string): Result<never> => ({ ok: false, error: { kind: 'unreachable', message } });

/**
 * The first success, in the order of the endpoints; without one, the last error. A change that must not be made twice is
 * not repeatable: it is tried at another member only if it was certainly not made here.
 */
export async function atAny<T>(
  endpoints: readonly string[],
  ask: Omit<Ask, 'endpoint'>,
  { repeatable }: { readonly repeatable: boolean },
  call: (ask: Ask) => Promise<Result<T>>,
): Promise<Result<T>> {
  let last: Result<T> = noEndpoint('the cluster has no member to call');
  for (const endpoint of endpoints) {
    if (ask.signal?.aborted) return last;
    last = await call({ ...ask, endpoint });
    if (last.ok || !ELSEWHERE.includes(last.error.kind)) return last;
    if (!repeatable && mayHaveHappened(last.error)) return last;
  }
  return last;
}
