import { describe, expect, test } from 'vitest';
import {
  aCluster,
  aMember,
  CLUSTER_ID,
  condition,
  FORMED,
  LATCHED,
  MEMBER_ID,
  NOW,
  READY,
  SEED_NAME,
  SELF,
} from '../../../test/support/builders/builders.ts';
import {
  down,
  entry as entryOf,
  type Is,
  learner,
  world as members,
  unreachable,
  up,
  withCredentials,
} from '../../../test/support/builders/members.ts';
import { remembering } from '../../../test/support/builders/plan.ts';
import { NO_CERTIFICATES } from '../../access/evaluate/view.ts';
import type { EtcdClusterStatus, MemberEntry, Target } from '../../api/etcd-cluster-status.ts';
import { EVIDENCE } from '../../api/etcd-member.ts';
import { findCondition } from '../../domain/conditions.ts';
import { NO_MEMORY } from '../../runtime/plan.ts';
import { clientService, headlessService, pdb } from './build.ts';
import { decide } from './decide.ts';
import type { Gathered, MemberView } from './observed.ts';
import { requeueMs } from './status.ts';

const services: Gathered['services'] = {
  headless: { is: 'ours', object: headlessService(aCluster()) },
  client: { is: 'ours', object: clientService(aCluster()) },
};
const entry = { id: MEMBER_ID, name: SEED_NAME, peerURLs: [], isLearner: false };
const answers: Gathered['etcd'] = { is: 'answers', clusterID: CLUSTER_ID, members: [entry], alarms: [] };
const LATE = '2026-01-01T11:59:59Z';
const SOON = '2026-01-01T12:10:00Z';
const served = { ...FORMED, conditions: [condition('Available', 'True', 'QuorumHealthy')] };

function world(status: EtcdClusterStatus, ready: boolean, patch: Partial<Gathered> = {}): Gathered {
  const object = aMember({
    status: {
      isVoter: true,
      conditions: ready
        ? READY
        : [condition('Ready', 'False', 'PodNotReady', 'pod phase: Pending; not scheduled: no room')],
    },
  });
  const pod = { is: 'present', ip: '10.0.0.1', ready, maxLearners: 8 } as const;
  const members = [{ object, pod, ...(ready && { self: SELF }) }];
  return {
    now: NOW,
    memory: NO_MEMORY,
    cluster: aCluster({ status }),
    services,
    pdb: { is: 'ours', object: pdb(aCluster(), 1) },
    images: { repository: 'quay.io/coreos/etcd', allowed: [] },
    seed: { is: 'ours', object },
    members,
    etcd: answers,
    quarantined: [],
    schedules: [],
    certificates: NO_CERTIFICATES,
    ...patch,
  };
}
const notAsked = { etcd: { is: 'notAsked' } } as const;
const lost = { members: [], seed: { is: 'absent' }, ...notAsked } as const;
const unlisted: MemberView = {
  object: { ...aMember(), metadata: { ...aMember().metadata, name: 'db-other' }, status: { memberID: 'f00' } },
  pod: { is: 'absent' },
};
const foreignVoter = { id: 'f00', name: 'mirror', peerURLs: ['https://10.9.9.9:2380'], isLearner: false };
const leaving: Is = { leaving: true };
const restarted: Is = {
  pod: { is: 'present', ip: '10.0.0.1', ready: false, runningSince: NOW - 1_000, maxLearners: 8 },
};
const conditionsOf = (o: Gathered): readonly string[] =>
  (decide(o).status.conditions ?? []).map((c) => `${c.type}=${c.status}/${c.reason}`);

test.each<[string, Gathered, readonly string[]]>([
  [
    'a new cluster waits for its seed',
    world({ ...LATCHED, progressDeadline: SOON }, false, notAsked),
    ['Available=False/WaitingForSeed', 'Progressing=True/WaitingForSeed', 'Degraded=False/WaitingForSeed'],
  ],
  [
    'a seed that exceeds the deadline is reported, and waited for all the same',
    world({ ...LATCHED, progressDeadline: LATE }, false, notAsked),
    ['Available=False/BootstrapFailed', 'Progressing=False/BootstrapFailed', 'Degraded=True/BootstrapFailed'],
  ],
  [
    'etcd responds, but its Pod is not ready for clients yet',
    world({ ...FORMED, progressDeadline: SOON }, false),
    ['Available=False/WaitingForSeed', 'Progressing=True/WaitingForMembers', 'Degraded=False/WaitingForSeed'],
  ],
  [
    'all members are healthy',
    world({ ...FORMED, progressDeadline: SOON }, true),
    ['Available=True/QuorumHealthy', 'Progressing=False/Reconciled', 'Degraded=False/QuorumHealthy'],
  ],
  [
    'all members serve, and a NOSPACE alarm rejects writes',
    members([up, up, up], { alarms: [{ id: 'beef000000000007', alarm: 'NOSPACE' }] }),
    ['Available=True/QuorumHealthy', 'Progressing=False/Reconciled', 'Degraded=True/NoSpace'],
  ],
  [
    'a deadline that has passed does not make a healthy cluster Degraded',
    world({ ...FORMED, progressDeadline: LATE }, true),
    ['Available=True/QuorumHealthy', 'Progressing=False/Reconciled', 'Degraded=False/QuorumHealthy'],
  ],
  [
    'a cluster that was Available has lost its member',
    world(served, false, notAsked),
    ['Available=False/QuorumLost', 'Progressing=False/Reconciled', 'Degraded=True/QuorumLost'],
  ],
  [
    'a cluster that was never Available has lost its only node',
    members([{ down: true, evidence: EVIDENCE.nodeLost }], { etcd: unreachable }),
    ['Available=False/QuorumLost', 'Progressing=False/Reconciled', 'Degraded=True/QuorumLost'],
  ],
  [
    'the only member was never ready, is down and is being deleted',
    members([{ down: true, leaving: true }], { etcd: unreachable }),
    ['Available=False/QuorumLost', 'Progressing=True/Scaling', 'Degraded=True/QuorumLost'],
  ],
  [
    'all members are being deleted, and serve until they are replaced',
    members([leaving, leaving, leaving], { status: { conditions: served.conditions } }),
    ['Available=True/QuorumAvailable', 'Progressing=True/Scaling', 'Degraded=False/QuorumAvailable'],
  ],
  [
    'the operator alone cannot reach etcd',
    world(served, true, { etcd: { is: 'unreachable', message: 'timeout' } }),
    ['Available=True/QuorumHealthy', 'Progressing=False/Reconciled', 'Degraded=True/MembersUnhealthy'],
  ],
  [
    'a lost quorum is reported until a quorum is ready again',
    world({ ...FORMED, conditions: [condition('Available', 'False', 'QuorumLost')] }, false, notAsked),
    ['Available=False/QuorumLost', 'Progressing=False/Reconciled', 'Degraded=True/QuorumLost'],
  ],
  [
    'one of three is ready: that is no quorum',
    members([up, down, down], { status: { conditions: served.conditions } }),
    ['Available=False/QuorumLost', 'Progressing=False/Reconciled', 'Degraded=True/QuorumLost'],
  ],
  [
    'a healthy learner does not count towards the quorum',
    members([up, down, learner], { status: { conditions: served.conditions } }),
    ['Available=False/QuorumLost', 'Progressing=True/Scaling', 'Degraded=True/QuorumLost'],
  ],
  [
    'all members have just restarted: the client Service has no ready Pod yet',
    members([restarted, restarted, restarted], { status: { conditions: served.conditions } }),
    ['Available=False/QuorumLost', 'Progressing=False/Reconciled', 'Degraded=True/QuorumLost'],
  ],
  [
    'a response of another cluster is ignored',
    world(served, true, { etcd: { ...answers, clusterID: 'f00', members: [] } }),
    ['Available=True/QuorumHealthy', 'Progressing=False/Reconciled', 'Degraded=True/MembersUnhealthy'],
  ],
  [
    'a member that etcd does not list is one too many',
    world(served, true, { members: [...world(served, true).members, unlisted] }),
    ['Available=True/QuorumHealthy', 'Progressing=True/Scaling', 'Degraded=False/QuorumHealthy'],
  ],
  [
    'two of three vote, and a learner joins',
    members([up, up, learner]),
    ['Available=True/QuorumAvailable', 'Progressing=True/Scaling', 'Degraded=False/QuorumAvailable'],
  ],
  [
    'etcd lists a learner that has no EtcdMember',
    members([up, up, up], { alsoListed: [entryOf(7, learner)] }),
    ['Available=True/QuorumHealthy', 'Progressing=True/Scaling', 'Degraded=False/QuorumHealthy'],
  ],
  [
    'etcd lists a voter that a user added',
    members([up, up, up], { status: { conditions: served.conditions }, alsoListed: [foreignVoter] }),
    ['Available=True/QuorumAvailable', 'Progressing=False/Reconciled', 'Degraded=True/ForeignMembers'],
  ],
  [
    'etcd lists a voter that a user added, and a member is down',
    members([up, up, down], { status: { conditions: served.conditions }, alsoListed: [foreignVoter] }),
    ['Available=False/QuorumLost', 'Progressing=False/Reconciled', 'Degraded=True/QuorumLost'],
  ],
  [
    'the data is lost',
    world(served, false, lost),
    ['Available=False/AllMembersLost', 'Progressing=False/AllMembersLost', 'Degraded=True/AllMembersLost'],
  ],
  [
    'a foreign object has the name of the client Service of a running cluster',
    world(served, true, { services: { ...services, client: { is: 'foreign', owner: 'EtcdCluster db-client' } } }),
    ['Available=True/QuorumHealthy', 'Progressing=False/NameConflict', 'Degraded=True/NameConflict'],
  ],
  [
    'what differed before this operator took over waits for an edit',
    world(
      {
        ...served,
        observed: { replicas: 1, version: '3.6.17', storage: { size: '1Gi', medium: '' } },
        progressDeadline: SOON,
      },
      true,
      {
        cluster: aCluster({
          status: {
            ...served,
            observed: { replicas: 1, version: '3.6.17', storage: { size: '1Gi', medium: '' } },
            progressDeadline: SOON,
          },
          spec: { version: '3.6.17' },
        }),
      },
    ),
    ['Available=True/QuorumHealthy', 'Progressing=False/UpdatePending', 'Degraded=False/QuorumHealthy'],
  ],
])('%s', (_name, observed, conditions) => {
  expect(conditionsOf(observed)).toEqual(conditions);
});

test('a voter that a user added is named, with what to do about it', () => {
  const { status } = decide(members([up, up, up], { alsoListed: [foreignVoter] }));
  expect(findCondition(status.conditions, 'Degraded')?.message).toBe(
    'etcd lists members that the operator did not add: voter f00 (mirror) at https://10.9.9.9:2380. It neither watches nor removes them, and the quorum needs the voters among them. Remove one that is not wanted with: etcdctl member remove <id>',
  );
});

test('members that will not recover by themselves are counted', () => {
  const lostNode: Is = { down: true, evidence: EVIDENCE.nodeLost };
  expect(decide(members([up, up, up])).status.brokenMembers).toBe(0);
  expect(decide(members([up, up, down])).status.brokenMembers).toBe(0);
  expect(decide(members([up, up, up, lostNode, lostNode])).status.brokenMembers).toBe(2);
});

test('the message of a wait contains the message of the member', () => {
  const { status } = decide(world({ ...LATCHED, progressDeadline: SOON }, false, notAsked));
  expect(status.conditions?.[0]?.message).toContain('not scheduled: no room');
});

test('a refusal of the API server is reported', () => {
  const o = world({ ...LATCHED, progressDeadline: SOON }, false, {
    ...lost,
    ...remembering('the API server refuses: exceeded quota'),
  });
  expect(decide(o).status.conditions?.[0]?.message).toContain('the API server refuses: exceeded quota');
});

describe('a new voter whose Pod the kubelet has not probed yet', () => {
  function grown(runningSince: number): Gathered {
    const o = world({ ...served, progressDeadline: SOON }, true);
    const unprobed = [condition('Ready', 'False', 'PodNotReady', 'pod phase: Running')];
    const object = aMember({ status: { memberID: 'beef000000000002', isVoter: true, conditions: unprobed } });
    const second: MemberView = {
      object: { ...object, metadata: { ...object.metadata, name: 'db-2', uid: 'second' } },
      pod: { is: 'present', ip: '10.0.0.2', ready: false, runningSince, maxLearners: 8 },
      self: { ...SELF, id: 'beef000000000002' },
    };
    const members = [entry, { ...entry, id: 'beef000000000002', name: 'db-2' }];
    const target = { ...o.cluster.status?.observed, replicas: 2 } as Target;
    return {
      ...o,
      cluster: aCluster({
        spec: { replicas: 2 },
        status: { ...served, observed: target, progressDeadline: SOON },
      }),
      members: [...o.members, second],
      etcd: { ...answers, members } as Gathered['etcd'],
    };
  }

  test('does not make the quorum lost', () => {
    expect(conditionsOf(grown(NOW - 1_000))).toEqual([
      'Available=True/QuorumAvailable',
      'Progressing=True/Scaling',
      'Degraded=False/QuorumAvailable',
    ]);
    expect(decide(grown(NOW - 1_000)).status.quorum).toEqual({ needed: 2, healthy: 2, margin: 0 });
  });

  const LOST = ['Available=False/QuorumLost', 'Progressing=True/WaitingForMembers', 'Degraded=True/QuorumLost'];

  test('counts as lost after the probe period', () => {
    expect(conditionsOf(grown(NOW - 60_000))).toEqual(LOST);
  });

  /** Its etcd has run for a minute, and spent most of it catching up. */
  function caughtUp(role: MemberEntry['role'], since: number, patch: Partial<MemberView> = {}): Gathered {
    const o = grown(NOW - 60_000);
    const status = { ...o.cluster.status, members: [{ name: 'db-2', role, since: new Date(since).toISOString() }] };
    const members = o.members.map((m) => (m.object.metadata.name === 'db-2' ? { ...m, ...patch } : m));
    return { ...o, cluster: { ...o.cluster, status }, members };
  }

  test('does not make the quorum lost when it caught up slowly', () => {
    expect(conditionsOf(caughtUp('learner', NOW - 50_000))[0]).toBe('Available=True/QuorumAvailable');
    expect(conditionsOf(caughtUp('follower', NOW - 5_000))[0]).toBe('Available=True/QuorumAvailable');
    expect(conditionsOf(caughtUp('follower', NOW - 20_000))).toEqual(LOST);
  });

  test('does not make the quorum lost while only its isVoter is not written yet', () => {
    const object = aMember({ status: { memberID: 'beef000000000002', isVoter: false } });
    const unrecorded: Partial<MemberView> = {
      object: { ...object, metadata: { ...object.metadata, name: 'db-2', uid: 'second' } },
      pod: { is: 'present', ip: '10.0.0.2', ready: true, runningSince: NOW - 60_000, maxLearners: 8 },
    };
    expect(conditionsOf(caughtUp('follower', NOW - 60_000, unrecorded))[0]).toBe('Available=True/QuorumAvailable');
  });
});

test('a learner does not count as ready', () => {
  const o = world(served, true);
  const object = aMember({ status: { isVoter: false, conditions: READY } });
  const learner = { ...entry, isLearner: true };
  const observed = {
    ...o,
    members: [{ object, pod: { is: 'present', ready: true, maxLearners: 8 } as const }],
    etcd: { ...answers, members: [learner] } as const,
  };
  expect(decide(observed).status.readyMembers).toBe(0);
});

test('a member whose Pod is deleted is not ready, whatever its condition is', () => {
  const o = world(served, true);
  const withoutPods = o.members.map((m) => ({ ...m, pod: { is: 'absent' } as const }));
  expect(decide({ ...o, members: withoutPods }).status.readyMembers).toBe(0);
});

test('the quorum counts voters, and the leader is that of the highest term', () => {
  expect(decide(members([up, learner])).status.quorum).toEqual({ needed: 1, healthy: 1, margin: 0 });
  const o = members([up, up, up], { leader: 2 });
  const [cutOff, ...others] = o.members;
  if (!cutOff?.self) throw new Error('there are three');
  const behind = { ...cutOff, self: { ...cutOff.self, leader: cutOff.self.id, term: 2 } };
  expect(decide({ ...o, members: [behind, ...others] }).status.leader).toBe(others[0]?.object.metadata.name);
});

test('the deadline is cleared when the target is reached, and requeued for until then', () => {
  expect(decide(world({ ...FORMED, progressDeadline: SOON }, true)).status).not.toHaveProperty('progressDeadline');
  const soon = world({ ...LATCHED, progressDeadline: '2026-01-01T12:00:02Z' }, false, notAsked);
  expect(decide(soon).requeueAfterMs).toBeLessThanOrEqual(2_000);
});

test('a reconcile of an unchanged cluster changes no status and creates no Event', () => {
  const first = decide(world(FORMED, true));
  const again = decide(world(first.status, true));
  expect(again.status).toEqual(first.status);
  expect(again.events).toEqual([]);
});

test('each new reason is one Event, failures as Warning', () => {
  const { events } = decide(world(served, false, lost));
  expect(events.map((e) => `${e.type} ${e.reason}`)).toEqual(['Warning AllMembersLost']);
});

test('the status of a cluster that is being deleted does not change', () => {
  const o = world(served, true);
  expect(decide({ ...o, cluster: aCluster({ status: served, deleting: true }) }).status).toEqual(served);
});

describe('the deadline', () => {
  const deadlineAfter = (o: Gathered): string | undefined => decide(o).status.progressDeadline;

  test.each<[string, EtcdClusterStatus, boolean, string | undefined]>([
    ['is kept while a member is not ready', { ...FORMED, progressDeadline: SOON }, false, SOON],
    ['is removed when all members match the spec', { ...FORMED, progressDeadline: SOON }, true, undefined],
    ['is not set without a change', FORMED, false, undefined],
  ])('%s', (_what, status, ready, expected) => {
    expect(deadlineAfter(world(status, ready))).toBe(expected);
  });

  test.each<[string, string | undefined, number | undefined, number | undefined]>([
    ['no deadline and no delay', undefined, undefined, undefined],
    ['a deadline in the future', SOON, undefined, 600_000],
    ['a shorter delay of the rule', SOON, 5_000, 5_000],
    ['a longer delay of the rule', SOON, 700_000, 600_000],
    ['a deadline that is now', new Date(NOW).toISOString(), undefined, undefined],
    ['a deadline that has passed', LATE, undefined, undefined],
    ['a delay without a deadline', undefined, 5_000, 5_000],
  ])('requeues for %s', (_what, progressDeadline, delayMs, expected) => {
    const o = world({ ...FORMED, ...(progressDeadline !== undefined && { progressDeadline }) }, true);
    expect(requeueMs(withCredentials(o), undefined, [delayMs])).toBe(expected);
  });
});
