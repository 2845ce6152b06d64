/** An edit of many clusters at once: how many of them restart members at the same time. */
import { describe, expect, test } from 'vitest';
import { aCluster, NOW } from '../../../../test/support/builders/builders.ts';
import { at, DAY, down, type Is, name, world } from '../../../../test/support/builders/members.ts';
import { targetOf } from '../../../api/defaults.ts';
import type { EtcdCluster } from '../../../api/etcd-cluster.ts';
import type { EtcdClusterStatus } from '../../../api/etcd-cluster-status.ts';
import { RESTARTED_AT_ANNOTATION } from '../../../api/names.ts';
import { findCondition } from '../../../domain/conditions.ts';
import { stampOf } from '../../../domain/pod-template.ts';
import { iso } from '../../../lib/time.ts';
import { decide, restartedBy } from '../decide.ts';
import { TurnLedger } from '../observe-turns.ts';
import type { Gathered, MemberView } from '../observed.ts';
import { holdsTurn, type Turns } from './turn.ts';

const { replicas: _, ...PREVIOUS } = targetOf({ version: '3.6.16', storage: { size: '1Gi', medium: '' } });
const FULL: Turns = { others: ['a/one', 'b/two'], limit: 2 };
const FREE: Turns = { others: ['a/one'], limit: 2 };
const settled: Is = { readyForMs: DAY };
const edited: Is = { ...settled, spec: { priorityClassName: 'high' } };

const rolling = (turns: Turns | undefined, status: EtcdClusterStatus = {}, members = [settled, settled, settled]) => {
  const rollout = { since: at(60_000), previous: PREVIOUS };
  const more = { spec: { priorityClassName: 'high' }, status: { members: [], rollout, ...status } };
  const o = world(members, more);
  const stamped = o.members.map((m): MemberView => {
    const pod = {
      uid: 'pod',
      preStopMs: 2_000,
      createdAt: NOW - DAY,
      runningSince: NOW - DAY,
      stamp: stampOf(m.object),
    };
    return m.pod.is === 'present' ? { ...m, pod: { ...m.pod, ...pod } } : m;
  });
  return { ...o, members: stamped, ...(turns && { turns }) };
};
const deciding = (o: Gathered) => {
  const { rule, steps, latch, status } = decide(o);
  return { rule, steps, turnAt: latch?.turnAt, progress: findCondition(status.conditions, 'Progressing') };
};

describe('the first member', () => {
  test('waits while as many other clusters as allowed roll out, without a deadline', () => {
    const o = rolling(FULL, { progressDeadline: at(-60_000) });
    const { rule, progress } = deciding(o);
    expect(rule).toBe('steady');
    expect(progress).toMatchObject({ status: 'False', reason: 'WaitingForTurn' });
    expect(progress?.message).toContain(
      '2 other clusters roll edits out now (a/one, b/two), and the operator allows 2',
    );
    expect(decide(o).status.progressDeadline).toBeUndefined();
  });

  test('restarts after the turn was recorded', () => {
    expect(deciding(rolling(FREE))).toMatchObject({ rule: 'restart', steps: [], turnAt: iso(NOW) });
    expect(restartedBy(rolling(FREE))?.member.object.metadata.name).toBe(name(2)); // asked about before
    const { turnAt, steps } = deciding(rolling(FREE, { turnAt: at(1_000) }));
    expect([turnAt, steps.length]).toEqual([undefined, 1]);
  });

  test('restarts at once without a limit', () => {
    const { turnAt, steps } = deciding(rolling(undefined));
    expect([turnAt, steps.length]).toEqual([undefined, 1]);
  });

  test('waits, too, when a user has requested the restart', () => {
    const o = rolling(FULL, {}, [edited, edited, edited]);
    const annotations = { [RESTARTED_AT_ANNOTATION]: 'now' };
    const asked = { ...o, cluster: { ...o.cluster, metadata: { ...o.cluster.metadata, annotations } } };
    expect(deciding(asked)).toMatchObject({ steps: [], progress: { status: 'False', reason: 'WaitingForTurn' } });
    expect(deciding({ ...asked, turns: FREE })).toMatchObject({ rule: 'restart', turnAt: iso(NOW) });
  });
});

test('a cluster that has its turn goes on, although more clusters than allowed roll out', () => {
  const { rule, steps } = deciding(rolling(FULL, { turnAt: at(60_000) }, [edited, settled, settled]));
  expect([rule, steps.length]).toEqual(['restart', 1]);
});

test('a member that an edit has broken gets the next one without a turn', () => {
  const wrong: Is = { ...down, spec: { priorityClassName: 'wrong' } };
  expect(deciding(rolling(FULL, {}, [settled, wrong, settled])).rule).toBe('updateBroken');
});

test('the turn ends when every member has the edit', () => {
  expect(decide(rolling(FREE, { turnAt: at(60_000) }, [edited, edited, edited])).status.turnAt).toBeUndefined();
  expect(decide(rolling(FREE, { turnAt: at(60_000) }, [edited, edited, settled])).status.turnAt).toBe(at(60_000));
});

const FAILED = { member: name(1), at: at(0), message: 'it was not ready' };
test.each<[string, EtcdClusterStatus, boolean]>([
  ['no turn', {}, false],
  ['a turn', { turnAt: at(599_000) }, true],
  ['a turn in which no member was restarted for long', { turnAt: at(600_000) }, false],
  ['a turn in which one was restarted lately', { turnAt: at(600_000), progressDeadline: at(-1_000) }, true],
  ['a turn that ended with a failure', { turnAt: at(1_000), rollout: { failed: FAILED } }, false],
])('%s', (_what, status, expected) => {
  expect(holdsTurn(aCluster({ status }), NOW)).toBe(expected);
});

describe('of many clusters', () => {
  const named = (n: number, status: EtcdClusterStatus = {}): EtcdCluster => {
    const cluster = aCluster({ status });
    return { ...cluster, metadata: { ...cluster.metadata, name: `db-${n}`, uid: `uid-${n}` } };
  };
  const waits = (n: number, since: string): EtcdCluster => {
    const waiting = {
      type: 'Progressing',
      status: 'False',
      reason: 'WaitingForTurn',
      message: '',
      lastTransitionTime: at(0),
    };
    return named(n, { rollout: { since }, conditions: [waiting as never] });
  };
  const ledgerOf = (limit: number, ...clusters: readonly EtcdCluster[]) =>
    new TurnLedger({ all: () => clusters }, limit);

  test('that are reconciled at the same time, only as many as allowed get a turn', () => {
    const ledger = ledgerOf(2, named(1, { turnAt: at(1_000) }));
    const claims = [2, 3, 2].map((n) => ledger.claim(named(n), { turnAt: iso(NOW) }, NOW));
    expect(claims).toEqual([true, false, true]);
    expect(ledger.turns(NOW, named(3))).toEqual({ others: ['ns/db-1', 'ns/db-2'], limit: 2 });
    expect(ledger.turns(NOW + 60_000, named(3))?.others).toEqual(['ns/db-1']); // it was never recorded
  });

  test('any number, if 0 is configured', () => {
    expect(ledgerOf(0, named(1, { turnAt: at(0) })).turns(NOW, named(2))).toBeUndefined();
  });

  test('those that have waited longest are asked when one has finished', () => {
    const ledger = ledgerOf(2, waits(1, at(1_000)), waits(2, at(3_000)), named(3), waits(4, at(2_000)));
    const rolls = named(9, { turnAt: at(1_000) });
    expect(ledger.waiting(rolls, named(9), NOW)).toEqual(['ns/db-2', 'ns/db-4']);
    expect(ledger.waiting(rolls, undefined, NOW)).toEqual(['ns/db-2', 'ns/db-4']);
    expect([ledger.waiting(rolls, rolls, NOW), ledger.waiting(undefined, rolls, NOW)]).toEqual([[], []]);
  });
});
