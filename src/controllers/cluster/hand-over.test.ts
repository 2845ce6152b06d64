/** A leader that is about to stop: whether it hands over, and to which member. */
import { describe, expect, test } from 'vitest';
import { down, type Is, learner, name, stepsOf, up, world } from '../../../test/support/builders/members.ts';
import { remembering } from '../../../test/support/builders/plan.ts';
import { changed, draining, terminating, unready } from '../../../test/support/builders/rotating.ts';
import { decide } from './decide.ts';
import type { Gathered } from './observed.ts';

const cordoned = (o: Gathered, at: number): Gathered => changed(o, at, (m) => ({ ...m, nodeCordoned: true }));
const three = world([up, up, up]);
const behind = (lag: number): Is => ({ lag });

describe('leadership is transferred', () => {
  test.each<[string, Gathered, readonly string[]]>([
    ['when the Pod of the leader is deleted', terminating(three, 0), [`moveLeader ${name(2)}`]],
    ['when the node of the leader is cordoned', cordoned(three, 0), [`moveLeader ${name(2)}`]],
    ['not when a follower stops', cordoned(terminating(three, 1), 2), []],
    ['not when nothing stops', three, []],
    [
      'to the member that has applied most: until the transferee has caught up, the leader drops proposals',
      terminating(world([up, behind(20), behind(10), behind(30)]), 0),
      [`moveLeader ${name(3)}`],
    ],
    ['not to a member whose Pod is deleted', terminating(terminating(three, 0), 1), [`moveLeader ${name(3)}`]],
    ['not to a member on a cordoned node', cordoned(cordoned(three, 0), 1), [`moveLeader ${name(3)}`]],
    ['not to a member whose Pod is not ready', unready(terminating(three, 0), 1), [`moveLeader ${name(3)}`]],
    ['not to a member that lags far behind', terminating(world([up, behind(6_000), up]), 0), [`moveLeader ${name(3)}`]],
    ['not to a member that does not respond', terminating(world([up, down, up]), 0), [`moveLeader ${name(3)}`]],
    [
      'not to a learner, which is promoted afterwards',
      terminating(world([up, learner, up], { replicas: 3 }), 0),
      [`moveLeader ${name(3)}`],
    ],
    [
      'not to a member whose PVC is being deleted',
      terminating(world([up, { pvc: 'terminating' }, up]), 0),
      [`moveLeader ${name(3)}`],
    ],
    [
      'not to a member that is being deleted',
      terminating(world([up, { leaving: true }, up, up]), 0),
      [`moveLeader ${name(3)}`],
    ],
    ['not when all members stop: etcd hands over to one that is left', allCordoned(three), []],
    ['not by a single member', terminating(world([up]), 0), []],
    ['not while the members disagree about the leader', terminating(world([up, { leaderless: true }, down]), 0), []],
    ['not by a leader that does not respond to the operator', cordoned(world([down, up, up]), 0), []],
    ['once more after it was refused', { ...terminating(three, 0), ...refused(1) }, [`moveLeader ${name(2)}`]],
    ['not a third time: etcd does it when it stops', { ...terminating(three, 0), ...refused(2) }, []],
  ])('%s', (_, o, expected) => {
    expect(stepsOf(o)).toEqual(expected);
  });

  test('with a message that says why', () => {
    expect(decide(cordoned(three, 0)).message).toBe(
      `${name(1)} leads, and its node is cordoned; transferring leadership to ${name(2)} first`,
    );
  });

  test('before a member is added or removed, and not while the cluster is paused', () => {
    expect(stepsOf(terminating(world([up, up, up], { replicas: 5 }), 0))).toEqual([`moveLeader ${name(2)}`]);
    expect(stepsOf(terminating(world([up, up, { leaving: true }]), 0))).toEqual([`moveLeader ${name(2)}`]);
    expect(stepsOf(terminating(world([up, up, up], { replicas: 0 }), 0)).join()).not.toContain('moveLeader');
  });

  test('not while the cluster is suspended', () => {
    expect(stepsOf(terminating(world([up, up, up], { spec: { suspend: true } }), 0))).toEqual([]);
  });
});

test('a leader that the operator removes hands over to a member that stays, if there is one', () => {
  const leaving = world([{ leaving: true }, up, up]);
  expect(stepsOf(cordoned(leaving, 1))).toEqual([`moveLeader ${name(3)}`]);
  expect(stepsOf(cordoned(cordoned(leaving, 1), 2))).toEqual([`moveLeader ${name(2)}`]);
});

test('a member that was taken out of the client Service does not get the leadership', () => {
  const plan = decide(draining(terminating(three, 0), 1));
  expect(plan.message).toContain(`to ${name(3)} first`);
});

function refused(times: number) {
  return remembering('etcd refuses', { is: 'later', row: 'handOver', call: 'moveLeader', times });
}

function allCordoned(o: Gathered): Gathered {
  return o.members.reduce((each, _, i) => cordoned(each, i), o);
}
