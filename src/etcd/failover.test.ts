import { expect, test } from 'vitest';
import type { Ask } from './call.ts';
import type { EtcdErrorKind, Result } from './errors.ts';
import { atAny } from './failover.ts';

const ask = { timeoutMs: 500 };
const refuse = (kind: EtcdErrorKind): Result<never> => ({ ok: false, error: { kind, message: kind } });

/** What each member says, and who was asked. */
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
  ['nobody is there', 'unreachable', false, 'b'],
  ['a question breaks off', 'disconnected', true, 'b'],
  ['a change breaks off: it may have been made', 'disconnected', false, 'disconnected'],
  ['a change is late: it may have been made', 'timeout', false, 'timeout'],
  ['etcd has said no', 'notFound', true, 'notFound'],
  ['a member misjudges its peers: it has proposed nothing', 'unhealthyCluster', false, 'b'],
  ['too few members have started: all members have the same list', 'notEnoughStarted', false, 'notEnoughStarted'],
] as const)('when %s', async (_, first, repeatable, outcome) => {
  const { call } = members({ a: first, b: 'ok' });
  const answer = await atAny(['a', 'b'], ask, { repeatable }, call);
  expect(answer.ok ? answer.value : answer.error.kind).toBe(outcome);
});

test('without any member there is nobody to ask', async () => {
  expect(await atAny([], ask, { repeatable: true }, members({}).call)).toMatchObject({
    ok: false,
    error: { kind: 'unreachable' },
  });
});
