/** How edits reach running members: who is changed next, when, and what happens to a member that does not come back. */
import { describe, expect, test } from 'vitest';
import { condition, NOW } from '../../../../test/support/builders/builders.ts';
import { at, DAY, down, type Is, id, name, stepsOf, up, world } from '../../../../test/support/builders/members.ts';
import { targetOf } from '../../../api/defaults.ts';
import type { EtcdClusterSpec } from '../../../api/etcd-cluster.ts';
import type { EtcdClusterStatus } from '../../../api/etcd-cluster-status.ts';
import { EVIDENCE } from '../../../api/etcd-member.ts';
import { RESTARTED_AT_ANNOTATION } from '../../../api/names.ts';
import { findCondition } from '../../../domain/conditions.ts';
import { stampOf } from '../../../domain/pod-template.ts';
import { iso } from '../../../lib/time.ts';
import { decide } from '../decide.ts';
import type { Gathered, MemberView } from '../observed.ts';

const EDIT: Partial<EtcdClusterSpec> = { priorityClassName: 'high' };
const OLD = targetOf({ version: '3.6.16', storage: { size: '1Gi', medium: '' } });
const { replicas: _, ...PREVIOUS } = OLD;
const UNDER_WAY: EtcdClusterStatus = { rollout: { since: at(60_000), previous: PREVIOUS } };

/** The status of a cluster of this operator, whose default quota follows from storage.size. */
const withDefaults = (spec: Partial<EtcdClusterSpec>, size: string) => {
  const stated = { replicas: 3, version: '3.6.16', ...spec, storage: { size, medium: '' } } as const;
  return { defaults: '1', observed: targetOf(stated, { defaults: '1' }) };
};

const MEMORY = { storage: { size: '1Gi', medium: 'Memory' } } as const;

const CLOSED = { maintenanceWindows: [{ schedule: '0 2 * * *', duration: '1h' }] };

/** Its EtcdMember has the edit. */
const edited: Is = { spec: { priorityClassName: 'high' } };
const settled: Is = { readyForMs: DAY };

/** Pods with the stamp of what their EtcdMembers say, or of what they said before the edit. */
const stamped = (o: Gathered, stale: readonly number[] = []): Gathered => ({
  ...o,
  members: o.members.map((m, i): MemberView => {
    const { priorityClassName: _high, ...before } = m.object.spec;
    const object = stale.includes(i) ? { ...m.object, spec: before } : m.object;
    const pod = { uid: `pod-${i + 1}`, createdAt: NOW - DAY, preStopMs: 2_000 };
    return m.pod.is === 'present'
      ? { ...m, pod: { ...m.pod, ...pod, runningSince: NOW - DAY, stamp: stampOf(object, 'quay.io/coreos/etcd') } }
      : m;
  }),
});
const rolling = (members: readonly Is[], more: Parameters<typeof world>[1] = {}): Gathered =>
  world(
    members.map((is) => ({ ...settled, ...is })),
    { ...more, spec: { ...EDIT, ...more.spec }, status: { members: [], ...UNDER_WAY, ...more.status } },
  );
const changedPod = (o: Gathered, fields: object): Gathered => ({
  ...o,
  members: o.members.map((m, i) => (i === 1 && m.pod.is === 'present' ? { ...m, pod: { ...m.pod, ...fields } } : m)),
});
/** The nodes of their Pods, or those that their PVCs were provisioned on. */
const nodesDown = (o: Gathered, scheduled = true): Gathered => ({
  ...o,
  members: o.members.map((m): MemberView => {
    const pod = m.pod.is === 'present' && scheduled ? { ...m.pod, node: 'node-1' } : m.pod;
    return { ...m, pod, nodeReady: 'Unknown since now' };
  }),
});
const responding = (o: Gathered): Gathered => {
  const [{ self } = {}] = o.members;
  const own = self && { ...self, id: id(2), leader: undefined };
  return { ...o, members: o.members.map((m, i) => (i === 1 ? { ...m, self: own } : m)) };
};
const joinedNow = (m: MemberView): MemberView => ({
  ...m,
  object: { ...m.object, metadata: { ...m.object.metadata, creationTimestamp: at(1_000) } },
});
const kinds = (o: Gathered): readonly string[] =>
  decide(o).steps.map((step) => {
    if (step.do === 'delete') return `delete ${step.what.kind} ${step.what.name}`;
    return step.do === 'patch' ? `patch ${step.to.kind} ${step.to.name}` : step.do;
  });
const progress = (o: Gathered) => findCondition(decide(o).status.conditions, 'Progressing');

describe('an edit', () => {
  test('is recorded with what all members have, and rolled out from then on', () => {
    const o = stamped(world([settled, settled, settled], { spec: EDIT, status: { members: [], observed: OLD } }));
    const adopting = { ...o, cluster: { ...o.cluster, spec: { ...o.cluster.spec, replicas: 3 } } };
    const { latch, steps } = decide(adopting);
    expect(latch?.rollout).toEqual({ since: iso(NOW), previous: PREVIOUS });
    expect(steps).toEqual([]);
  });

  test('that an operator finds when it takes over restarts no member', () => {
    const { members: _m, ...status } = decide(world([up], { spec: EDIT, status: { observed: OLD } })).latch ?? {};
    expect(status.rollout).toBeUndefined();
    const o = stamped(world([settled, settled, settled], { spec: EDIT }));
    expect(kinds(o)).toEqual([]);
    expect(progress(o)?.reason).toBe('UpdatePending');
    expect(progress(o)?.message).toContain(RESTARTED_AT_ANNOTATION);
  });

  test('of the number of members alone starts no rollout', () => {
    const o = world([up, up, up], { replicas: 5, status: { members: [], observed: { ...OLD, replicas: 3 } } });
    expect(decide(o).latch?.rollout).toBeUndefined();
  });

  test('changes the EtcdMember first: its Pod is deleted when the cache shows that, or the next one would have the previous template', () => {
    expect(kinds(stamped(rolling([up, up, up])))).toEqual([`patch EtcdMember ${name(2)}`]);
    const changed = stamped(rolling([up, edited, up]), [1]);
    expect(kinds(changed)).toEqual([`delete Pod ${name(2)}`]);
    expect(decide(changed).latch).toBeUndefined(); // it was recorded with the patch
  });

  test('gives the Pod of an earlier operator a stamp before: otherwise a crash would lose the restart', () => {
    const o = rolling([up, up, up]);
    const pods = o.members.map((m, i) =>
      m.pod.is === 'present' ? { ...m, pod: { ...m.pod, uid: `pod-${i}`, preStopMs: 2_000 } } : m,
    );
    expect(kinds({ ...o, members: pods })).toEqual([`patch Pod ${name(2)}`, `patch EtcdMember ${name(2)}`]);
  });

  test('whose EtcdMember was changed before the operator was killed is found again', () => {
    expect(kinds(stamped(rolling([up, up, edited]), [2]))).toEqual([`delete Pod ${name(3)}`]);
  });

  test('is refused by the API server when the EtcdMember has changed meanwhile', () => {
    const [first] = decide(stamped(rolling([up, up, up]))).steps;
    expect(first?.do === 'patch' && first.to.resourceVersion).toBe('200');
  });

  test('restarts the leader last, which hands over to a member that has the edit', () => {
    const o = stamped(rolling([up, edited, { ...edited, lag: 4_000 }], { leader: 1 }));
    expect(stepsOf(o)).toEqual([`moveLeader ${name(2)}`]);
    const lagging = stamped(rolling([up, { lag: 4_000 }, up], { leader: 1 }));
    expect(kinds(lagging)).toEqual([`patch EtcdMember ${name(3)}`]); // least behind
  });

  test('replaces a member in memory', () => {
    const memory: Is = { spec: { storage: { size: '1Gi', medium: 'Memory' } } };
    const o = stamped(rolling([memory, memory, memory], { spec: { storage: { size: '1Gi', medium: 'Memory' } } }));
    expect(kinds(o)).toEqual([`delete EtcdMember ${name(2)}`]);
  });

  test('restarts the only member, and the status says before what it costs', () => {
    const o = stamped(rolling([up]));
    expect(kinds(o)).toEqual([`patch EtcdMember ${name(1)}`]);
    expect(progress(o)?.message).toContain('clients are interrupted');
  });

  test.each<[string, Gathered]>([
    ['a member is not ready', stamped(rolling([up, edited, { ...edited, ...down }]))],
    ['a member has just become ready', stamped(rolling([up, { ...edited, readyForMs: 500 }, up]))],
    [
      'a member that has crashed has been ready for a moment only',
      changedPod(stamped(rolling([up, { ...edited, readyForMs: 50_000 }, up])), { restarted: true }),
    ],
    [
      'a member has not been ready for long enough',
      stamped(
        rolling([up, { ...edited, readyForMs: 50_000 }, up], { spec: { updateStrategy: { minReadySeconds: 60 } } }),
      ),
    ],
    [
      'a user deletes the Pods',
      stamped(rolling([edited, edited, edited], { spec: { updateStrategy: { type: 'OnDelete' } } }), [0, 1, 2]),
    ],
    ['no maintenance window is open', stamped(rolling([up, up, up], { spec: { updateStrategy: CLOSED } }))],
    ['a member joins', stamped(rolling([up, up, { ...edited, as: 'learner', fresh: true, ageMs: 2_000 }]))],
    ['every member has it', stamped(rolling([edited, edited, edited]))],
  ])('restarts no member: %s', (_what, o) => {
    expect(kinds(o).filter((kind) => /^delete|EtcdMember/.test(kind))).toEqual([]);
  });

  test('restarts each of two members, and the status says before what it costs', () => {
    expect(progress(stamped(rolling([up, edited])))?.message).toContain(
      'clients are interrupted while one of the two members restarts',
    );
    expect(progress(stamped(rolling([up, edited, up])))?.message).not.toContain('interrupted');
  });

  test('is requeued for the time that members still have to be ready', () => {
    const o = rolling([up, { ...edited, readyForMs: 50_000 }, up], {
      spec: { updateStrategy: { minReadySeconds: 60 } },
    });
    expect(decide(stamped(o)).requeueAfterMs).toBe(10_000);
  });

  test('reports how many members have it, and what the next one waits for', () => {
    const o = stamped(rolling([up, edited, { ...edited, ...down }]));
    expect([progress(o)?.status, progress(o)?.reason]).toEqual(['True', 'RollingOut']);
    expect(progress(o)?.message).toContain('2 of 3 members have priorityClassName');
    expect(progress(o)?.message).toContain(`${name(1)} is next and waits: ${name(3)} must be ready`);
    expect(decide(o).status.updatedMembers).toBe(2);
    expect(decide(o).status.members?.map(({ outdated }) => outdated)).toEqual([
      ['priorityClassName'],
      undefined,
      undefined,
    ]);
  });

  test('that has reached every member has ended, although no maintenance window is open', () => {
    const o = stamped(rolling([edited, edited, edited], { spec: { updateStrategy: CLOSED } }));
    expect([progress(o)?.reason, decide(o).status.rollout]).toEqual(['Reconciled', {}]);
  });

  test('of storage.size alone starts no rollout: running members keep their volumes, and their quota', () => {
    const status = { members: [], ...withDefaults({}, '1Gi') };
    const spec = { storage: { size: '8Gi', medium: '' } } as const;
    const { latch } = decide(stamped(world([settled, settled, settled], { spec, status })));
    expect(latch?.observed?.storage.size).toBe('8Gi');
    expect(latch?.rollout).toBeUndefined();
  });

  test('has ended when every member has it: what they had before is not kept', () => {
    expect(decide(stamped(rolling([edited, edited, edited]))).status.rollout).toEqual({});
  });

  test('of storage.size raises no quota before the volumes are larger', () => {
    const o = rolling([up, up, up], {
      spec: { priorityClassName: undefined as never, storage: { size: '8Gi', medium: '' } },
    });
    expect(kinds(stamped(o)).filter((kind) => /^delete|EtcdMember/.test(kind))).toEqual([]);
    expect(progress(o)?.message).toContain('storage.size 8Gi');
  });
});

describe('a member that an edit has broken', () => {
  /** The first member got another edit, which broke it. */
  const wrong: Is = { ...down, spec: { priorityClassName: 'wrong' } };
  const revert = (members: readonly Is[], more: Parameters<typeof world>[1] = {}): Gathered =>
    stamped(rolling(members, { ...more, spec: { priorityClassName: undefined as never, ...more.spec } }));

  const unready = { is: 'present', ready: false, maxLearners: 8, ip: '10.0.0.9' } as const;
  const inMemory = (members: readonly Is[], more: Parameters<typeof world>[1] = {}): Gathered =>
    revert(
      members.map((is) => ({ ...is, spec: { ...is.spec, ...MEMORY } })),
      { ...more, spec: { ...MEMORY, ...more.spec } },
    );

  test('gets the next edit at once, although it is not ready', () => {
    expect(decide(revert([up, wrong, up])).rule).toBe('updateBroken');
    expect(kinds(revert([up, wrong, up]))).toEqual([`patch EtcdMember ${name(2)}`]);
  });

  test('does not wait for a maintenance window', () => {
    expect(decide(revert([up, wrong, up], { spec: { updateStrategy: CLOSED } })).rule).toBe('updateBroken');
  });

  test('gets it without the other minor that it asks for, too: until it serves, no member gets that', () => {
    const o = revert([up, wrong, up], { spec: { version: '3.7.3' } });
    const [step] = decide(o).steps;
    expect(decide(o).rule).toBe('updateBroken');
    expect(step?.do === 'patch' && step.fields).toEqual({ spec: { priorityClassName: null } });
    const both = { ...o.cluster.spec, extraArgs: ['--experimental-nonsense=1'] };
    const spelled = decide({ ...o, cluster: { ...o.cluster, spec: both } }).steps[0];
    expect(spelled?.do === 'patch' && spelled.fields).toEqual({
      spec: { priorityClassName: null, extraArgs: ['--experimental-nonsense=1'] }, // which 3.6 may know, and 3.7 does not
    });
    const unknown = { ...o.cluster.spec, extraArgs: ['--feature-gates=FastLeaseKeepAlive=true'] };
    const kept = decide({ ...o, cluster: { ...o.cluster, spec: unknown } }).steps[0];
    expect(kept?.do === 'patch' && kept.fields).toEqual({ spec: { priorityClassName: null } }); // 3.6 does not know it
  });

  test('waits with a version that alone is missing', () => {
    const o = revert([up, { ...down }, up], { spec: { version: '3.7.3' } });
    expect([decide(o).rule, decide(o).steps]).toEqual(['waitForMembers', []]);
  });

  test('gets it without a Pod, too: the API server may have refused the Pod', () => {
    expect(kinds(revert([up, { ...wrong, pod: { is: 'absent' } }, up]))).toEqual([`patch EtcdMember ${name(2)}`]);
  });

  test('gets it although the node is down that its PVC was provisioned on: its Pod waits for any node', () => {
    expect(decide(nodesDown(revert([up, wrong, up]), false)).rule).toBe('updateBroken');
  });

  test('gets it although etcd does not respond', () => {
    const o = revert([wrong], { etcd: { is: 'unreachable', message: 'no' } });
    expect(kinds(o)).toEqual([`patch EtcdMember ${name(1)}`]);
  });

  test.each<[string, Gathered]>([
    [
      'it still responds, and the others are no quorum',
      revert([
        up,
        {
          ...wrong,
          down: false,
          leaderless: true,
          pod: { is: 'present', ready: false, maxLearners: 8, ip: '10.0.0.2' },
        },
        down,
      ]),
    ],
    ['its PVC is being deleted', revert([up, { ...wrong, pvc: 'terminating' }, up])],
    ['its data is in memory, and the others are no quorum', inMemory([{}, wrong, down])],
    ['its data is in memory, and it responds', inMemory([{}, { ...wrong, down: false, lag: 6_000, pod: unready }, {}])],
    [
      'it is being defragmented, and its etcd answers nothing',
      revert([up, wrong, up], {
        status: {
          defragmentation: {
            member: name(2),
            defrag: 'd',
            uid: 'u',
            attempt: 1,
            startedAt: at(5_000),
            dbSizeBefore: 1,
          },
        },
      }),
    ],
    [
      'its data is in memory, and its Pod is being deleted',
      inMemory([{}, { ...wrong, pod: { ...unready, terminating: true } }, {}]),
    ],
    ['its node is down', nodesDown(revert([up, wrong, up]))],
    ['another one has the edit and is not ready yet', stamped(rolling([up, wrong, { ...edited, ...down }]))],
    [
      'no edit was made since this operator took over',
      revert([up, wrong, up], { status: { rollout: undefined as never } }),
    ],
  ])('waits: %s', (_what, o) => {
    expect(decide(o).rule).not.toBe('updateBroken');
    expect(kinds(o).filter((kind) => /^delete (Pod|EtcdMember)/.test(kind))).toEqual([]);
  });

  test('is replaced when its data is in memory: its Pod would come back empty', () => {
    const o = inMemory([{}, wrong, {}]);
    const [step] = decide(o).steps;
    expect([decide(o).rule, kinds(o)]).toEqual(['updateBroken', [`delete EtcdMember ${name(2)}`]]);
    expect(step?.do === 'delete' && step.what.resourceVersion).toBe('200'); // unless it has just recovered
    expect(decide(o).latch?.progressDeadline).toBeDefined();
    expect(decide(o).message).toContain(
      `${name(2)} is not ready, and is replaced by a member with another priorityClassName`,
    );
  });

  test('is replaced in memory although a crash loop of it is found, and as a learner', () => {
    const looping: Is = { ...wrong, evidence: EVIDENCE.crashLooping };
    expect(kinds(inMemory([{}, looping, {}]))).toEqual([`delete EtcdMember ${name(2)}`]);
    expect(kinds(inMemory([{}, {}, { ...wrong, as: 'learner' }]))).toEqual([`delete EtcdMember ${name(3)}`]);
  });

  test('is replaced in memory by the operator when its deadline has passed', () => {
    const failed = { member: name(2), at: at(0), message: 'it was not ready' };
    const o = inMemory([{}, { ...edited, ...down }, {}], {
      spec: { priorityClassName: 'high' },
      status: { rollout: { ...UNDER_WAY.rollout, failed } },
    });
    expect(kinds(o)).toEqual([`delete EtcdMember ${name(2)}`]);
  });

  test.each<[string, Is]>([
    ['in memory', { spec: { priorityClassName: 'wrong', ...MEMORY } }],
    ['on a volume', { spec: { priorityClassName: 'wrong' } }],
  ])('is recreated although its etcd has started, if it has not joined: %s', (where, is) => {
    const crashed: Is = {
      ...is,
      as: 'learner',
      fresh: true,
      started: true,
      restarted: true,
      pod: { ...unready, restarted: true },
    };
    const o = where === 'in memory' ? inMemory([{}, {}, crashed]) : revert([up, up, crashed]);
    expect([decide(o).rule, kinds(o)]).toEqual(['rebuildJoining', [`delete EtcdMember ${name(3)}`]]);
  });

  test('is not replaced for a crash loop: its volume is intact', () => {
    const looping: Is = { ...down, ...edited, evidence: EVIDENCE.crashLooping };
    expect(kinds(stamped(rolling([up, looping, up])))).toEqual([]);
    const lost: Is = { ...down, ...edited, evidence: EVIDENCE.dataLost };
    expect(kinds(stamped(rolling([up, lost, up])))).toContain(`delete EtcdMember ${name(2)}`);
    const later = stamped(rolling([edited, looping, edited], { status: { rollout: {} } }));
    expect(kinds(later)).toContain(`delete EtcdMember ${name(2)}`); // long after the rollout
  });

  test('is replaced for unreadable data, unless the edit gave it another etcd', () => {
    const damaged: Is = { ...down, ...edited, evidence: EVIDENCE.dataInvalid };
    expect(kinds(stamped(rolling([up, damaged, up])))).toContain(`delete EtcdMember ${name(2)}`);
    const upgraded: Is = { ...damaged, spec: { ...edited.spec, version: '3.6.99' } };
    expect(kinds(stamped(rolling([up, upgraded, up], { spec: { version: '3.6.99' } })))).toEqual([]);
  });

  describe('is not ready when its deadline has passed', () => {
    const late = { progressDeadline: at(1_000) };
    const failed = stamped(rolling([up, { ...edited, ...down }, up], { status: late }));

    test('the rollout stops, which is recorded first', () => {
      const { rule, latch, steps, events } = decide(failed);
      expect(rule).toBe('stopRollout');
      expect(latch?.rollout?.failed?.member).toBe(name(2));
      expect(steps).toEqual([]);
      expect(events.map(({ type, reason }) => `${type} ${reason}`)).toContain('Warning RolloutFailed');
    });

    const since = (msAgo: number, status: 'True' | 'False'): Gathered => ({
      ...failed,
      members: failed.members.map((m, i) => {
        const ready = { ...condition('Ready', status, 'NotReady'), lastTransitionTime: at(msAgo) };
        return i === 1 ? { ...m, object: { ...m.object, status: { ...m.object.status, conditions: [ready] } } } : m;
      }),
    });
    test.each<[string, Gathered]>([
      ['it is ready, and its peers are away', changedPod(failed, { ready: true })],
      ['its etcd responds, and has no leader because its peers are away', responding(since(700_000, 'False'))],
      ['it was ready a moment ago', since(1_000, 'True')],
      ['it has not been ready for a moment only', since(1_000, 'False')],
      ['it has just joined', { ...failed, members: failed.members.map((m, i) => (i === 1 ? joinedNow(m) : m)) }],
      ['the wall clock has jumped ahead', { ...since(700_000, 'False'), clockAheadMs: 200_000 }],
    ])('the rollout goes on: %s', (_, o) => {
      expect(decide(o).rule).not.toBe('stopRollout');
    });
    test('it has not been ready for the whole time: the rollout stops', () => {
      expect(decide(since(700_000, 'False')).rule).toBe('stopRollout');
    });
    test('it crashes again and again, and is ready in between: the rollout stops', () => {
      expect(decide(changedPod(since(1_000, 'False'), { restarted: true })).rule).toBe('stopRollout');
    });
    test('it is the one that does not respond, and not another one that lacks the quorum because of it', () => {
      const first: Is = { ...edited, leaderless: true };
      const o = changedPod(stamped(rolling([first, { ...edited, ...down }], { status: late })), {});
      const unready = o.members.map((m) => (m.pod.is === 'present' ? { ...m, pod: { ...m.pod, ready: false } } : m));
      expect(decide({ ...o, members: unready }).latch?.rollout?.failed?.member).toBe(name(2));
    });
    test('a member that has worked with the edit is replaced when its data is lost later', () => {
      const damaged: Is = { ...down, ...edited, evidence: EVIDENCE.crashLooping };
      expect(kinds(stopped([up, up, damaged]))).toContain(`delete EtcdMember ${name(3)}`);
    });

    const stopped = (members: readonly Is[], more: EtcdClusterStatus['rollout'] = {}): Gathered =>
      stamped(
        rolling(members, {
          status: {
            rollout: {
              ...UNDER_WAY.rollout,
              failed: { member: name(2), at: at(0), message: 'it was not ready' },
              ...more,
            },
          },
        }),
      );

    test('then it gets back what it had, and no other member is changed', () => {
      expect(kinds(stopped([up, { ...edited, ...down }, up]))).toEqual([`patch EtcdMember ${name(2)}`]);
      expect(kinds(stopped([up, up, edited]))).toEqual([]);
      expect([progress(stopped([up, up, edited]))?.status, progress(stopped([up, up, edited]))?.reason]).toEqual([
        'False',
        'RolloutFailed',
      ]);
    });

    test('new members are created with what all members had', () => {
      const o = stopped([up, up, { as: 'awaited' }]);
      const [step] = decide(o).steps;
      expect(step?.do === 'create' && (step.object as MemberView['object']).spec.priorityClassName).toBeUndefined();
    });

    test('it keeps a later minor when no member runs the earlier one', () => {
      const previous = { ...PREVIOUS, version: '3.5.33' };
      expect(kinds(stopped([up, { ...edited, ...down }, up], { previous }))).toEqual([]);
    });

    test('another value of the annotation is another attempt', () => {
      const o = stopped([up, up, up]);
      const annotations = { [RESTARTED_AT_ANNOTATION]: 'now' };
      const again = { ...o, cluster: { ...o.cluster, metadata: { ...o.cluster.metadata, annotations } } };
      expect(kinds(again)).toEqual([`patch EtcdMember ${name(2)}`]);
    });

    describe('outside of the maintenance windows', () => {
      const closed = { spec: { updateStrategy: CLOSED } };
      const trying: readonly Is[] = [up, { ...edited, ...down }, up];

      test('its deadline counts on, and the status says which member is waited for', () => {
        const deadline = at(-60_000);
        const o = stamped(rolling(trying, { ...closed, status: { progressDeadline: deadline } }));
        expect(decide(o).status.progressDeadline).toBe(deadline);
        expect([progress(o)?.status, progress(o)?.reason]).toEqual(['True', 'RollingOut']);
        expect(progress(o)?.message).toMatch(new RegExp(`waiting for ${name(2)} to be ready.*next maintenance window`));
      });

      test('it fails, and gets back what it had', () => {
        expect(decide(stamped(rolling(trying, { ...closed, status: late }))).rule).toBe('stopRollout');
      });

      test('one that has stopped serving since the window closed gets a deadline', () => {
        const { progressDeadline } = decide(stamped(rolling(trying, closed))).status;
        expect(progressDeadline).toBe(iso(NOW + 600_000));
      });

      test('no deadline counts while all that have the edit serve', () => {
        const { progressDeadline } = decide(stamped(rolling([up, edited, up], { ...closed, status: late }))).status;
        expect(progressDeadline).toBeUndefined();
      });
    });

    test('with OnDelete, it has no deadline: the user has deleted its Pod', () => {
      const o = rolling([up, { ...edited, ...down }, up], { spec: { updateStrategy: { type: 'OnDelete' } } });
      expect(decide(stamped(o)).status.progressDeadline).toBeUndefined();
    });

    test.each<[string, Partial<EtcdClusterSpec>, boolean]>([
      ['storage.size, which no running member gets: it fails', { storage: { size: '8Gi', medium: '' } }, true],
      ['options, which it gets at once: it does not fail', { options: { snapshotCount: 5_000 } }, false],
    ])('just when the spec is edited: %s', (_what, edit, fails) => {
      const status = { ...late, ...withDefaults(EDIT, '1Gi') };
      const { storage: _storage, replicas: _replicas, ...has } = status.observed;
      const o = rolling([{ spec: has }, { ...down, spec: has }, { spec: has }], { spec: edit, status });
      const { rule, latch } = decide(stamped(o));
      expect([rule === 'stopRollout', latch?.rollout?.failed !== undefined]).toEqual([fails, fails]);
    });

    test('the rollout has not failed before this operator has observed that for a minute', () => {
      const observed = (unreadyForMs: number) =>
        decide({ ...failed, members: failed.members.map((m) => ({ ...m, unreadyForMs })) }).rule;
      expect([observed(59_000), observed(60_000)]).toEqual(['waitForMembers', 'stopRollout']);
    });

    test('the rollout has not failed while its node is down', () => {
      const { members } = nodesDown(failed);
      expect(decide({ ...failed, members }).rule).not.toBe('stopRollout');
    });

    test('the rollout goes on while the member is replaced for another reason', () => {
      const o = stamped(rolling([up, { ...edited, ...down, evidence: EVIDENCE.nodeLost }, up], { status: late }));
      expect(decide(o).rule).not.toBe('stopRollout');
    });
  });
});

test('labels and annotations that are not wanted any more are removed key by key', () => {
  const before = { labels: { team: 'a', 'app.kubernetes.io/component': 'x' }, annotations: { note: 'b' } };
  const o = world([{ ...settled, spec: { additionalMetadata: before } }]);
  const patches = (decide(o).upkeep ?? [])
    .filter(({ row }) => row === 'relabelMembers')
    .flatMap(({ steps }) => steps.flatMap((step) => (step.do === 'patch' ? [step.fields] : [])));
  const metadata = { labels: { team: null }, annotations: { note: null } };
  expect(patches).toEqual([{ metadata }, { metadata, spec: { additionalMetadata: null } }]);
});

test('a changed image repository of the administrator waits for the next restart', () => {
  const o = stamped(world([settled, settled, settled]));
  const moved = { ...o, images: { repository: 'mirror.local/etcd', allowed: [] } };
  expect(kinds(moved)).toEqual([]);
  expect(progress(moved)?.reason).toBe('UpdatePending');
  expect(progress(moved)?.message).toContain('mirror.local/etcd');
  expect(progress(o)?.reason).toBe('Reconciled');
});

test('leadership is not handed over to a member that restarts next', () => {
  const o = stamped(rolling([{ ...edited }, up, edited], { leader: 2 }));
  expect(stepsOf(o)).toEqual([`moveLeader ${name(1)}`]);
});
