import { expect, test } from 'vitest';
import type { Ask } from './call.ts';
import type { EtcdErrorKind, Result } from './errors.ts';
import { atAny } from './failover.ts';

const ask = { timeoutMs: 500 };
const refuse = (kind: EtcdErrorKind): Result<never> => ({ ok: false, error: { kind, message: kind } });

/** The response of each member, and which ones were called. */
function members(said: Readonly<Record<string, EtcdErrorKind | 'ok'>>) {
  const asked: string[] = [];
  const call = ({ endpoint }: Ask): Promise<Result<string>> => {
    asked.push(endpoint);
    const says = said[endpoint] ?? 'unreachable';
    return Promise.resolve(says === 'ok' ? { ok: true, value: endpoint } : refuse(says));
  };
  return { asked, call };
}

test.each([
  ['a learner refuses', 'learnerRefused', false, 'b'],
  ['a member is unreachable', 'unreachable', false, 'b'],
  ['the connection breaks during a read', 'disconnected', true, 'b'],
  ['the connection breaks during a change: it may have been made', 'disconnected', false, 'disconnected'],
  ['a change times out: it may have been made', 'timeout', false, 'timeout'],
  ['etcd refuses the call', 'notFound', true, 'notFound'],
  ['a member misjudges its peers: it has proposed nothing', 'unhealthyCluster', false, 'b'],
  ['too few members have started: all members have the same list', 'notEnoughStarted', false, 'notEnoughStarted'],
] as const)('when %s', async (_, first, repeatable, outcome) => {
  const { call } = members({ a: first, b: 'ok' });
  const answer = await atAny(['a', 'b'], ask, { repeatable }, call);
  expect(answer.ok ? answer.value : answer.error.kind).toBe(outcome);
});

test('without any member the call fails as unreachable', async () => {
  expect(await atAny([], ask, { repeatable: true }, members({}).call)).toMatchObject({
    ok: false,
    error: { kind: 'unreachable' },
  });
});
