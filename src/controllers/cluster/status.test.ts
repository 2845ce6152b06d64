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
  silent,
  up,
} from '../../../test/support/builders/members.ts';
import { NO_CERTIFICATES } from '../../access/evaluate/view.ts';
import type { EtcdClusterStatus, MemberEntry, Target } from '../../api/etcd-cluster-status.ts';
import { EVIDENCE } from '../../api/etcd-member.ts';
import { clientService, headlessService, pdb } from './build.ts';
import { decide } from './decide.ts';
import type { MemberView, Observed } from './observed.ts';
import { requeueAfterMs } from './status.ts';

const services: Observed['services'] = {
  headless: { is: 'ours', object: headlessService(aCluster()) },
  client: { is: 'ours', object: clientService(aCluster()) },
};
const entry = { id: MEMBER_ID, name: SEED_NAME, peerURLs: [], isLearner: false };
const answers: Observed['etcd'] = { is: 'answers', clusterID: CLUSTER_ID, members: [entry], alarms: [] };
const LATE = '2026-01-01T11:59:59Z';
const SOON = '2026-01-01T12:10:00Z';
const served = { ...FORMED, conditions: [condition('Available', 'True', 'QuorumHealthy')] };

function world(status: EtcdClusterStatus, ready: boolean, patch: Partial<Observed> = {}): Observed {
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
    refusal: undefined,
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
const leaving: Is = { leaving: true };
const begun: Is = {
  pod: { is: 'present', ip: '10.0.0.1', ready: false, runningSince: NOW - 1_000, maxLearners: 8 },
};
const say = (o: Observed): readonly string[] =>
  (decide(o).status.conditions ?? []).map((c) => `${c.type}=${c.status}/${c.reason}`);

test.each<[string, Observed, readonly string[]]>([
  [
    'a new cluster waits for its seed',
    world({ ...LATCHED, progressDeadline: SOON }, false, notAsked),
    ['Available=False/WaitingForSeed', 'Progressing=True/WaitingForSeed', 'Degraded=False/WaitingForSeed'],
  ],
  [
    'a seed that is late is reported, and waited for all the same',
    world({ ...LATCHED, progressDeadline: LATE }, false, notAsked),
    ['Available=False/BootstrapFailed', 'Progressing=False/BootstrapFailed', 'Degraded=True/BootstrapFailed'],
  ],
  [
    'etcd answers, but its Pod is not ready for clients yet',
    world({ ...FORMED, progressDeadline: SOON }, false),
    ['Available=False/WaitingForSeed', 'Progressing=True/WaitingForMembers', 'Degraded=False/WaitingForSeed'],
  ],
  [
    'all is well',
    world({ ...FORMED, progressDeadline: SOON }, true),
    ['Available=True/QuorumHealthy', 'Progressing=False/Reconciled', 'Degraded=False/QuorumHealthy'],
  ],
  [
    'all members serve, and clients cannot write, because one was full and its alarm stands',
    members([up, up, up], { alarms: [{ id: 'beef000000000007', alarm: 'NOSPACE' }] }),
    ['Available=True/QuorumHealthy', 'Progressing=False/Reconciled', 'Degraded=True/NoSpace'],
  ],
  [
    'a late deadline does not talk a healthy cluster down',
    world({ ...FORMED, progressDeadline: LATE }, true),
    ['Available=True/QuorumHealthy', 'Progressing=False/Reconciled', 'Degraded=False/QuorumHealthy'],
  ],
  [
    'a cluster that served has lost its member',
    world(served, false, notAsked),
    ['Available=False/QuorumLost', 'Progressing=False/Reconciled', 'Degraded=True/QuorumLost'],
  ],
  [
    'a cluster that never served has lost its only node: nobody is waited for',
    members([{ down: true, evidence: EVIDENCE.nodeLost }], { etcd: silent }),
    ['Available=False/QuorumLost', 'Progressing=False/Reconciled', 'Degraded=True/QuorumLost'],
  ],
  [
    'the only member never served, is down, and somebody deletes it: nobody is waited for',
    members([{ down: true, leaving: true }], { etcd: silent }),
    ['Available=False/QuorumLost', 'Progressing=True/Scaling', 'Degraded=True/QuorumLost'],
  ],
  [
    'all members are being deleted, and serve until others do',
    members([leaving, leaving, leaving], { status: { conditions: served.conditions } }),
    ['Available=True/QuorumAvailable', 'Progressing=True/Scaling', 'Degraded=False/QuorumAvailable'],
  ],
  [
    'the operator alone cannot reach etcd',
    world(served, true, { etcd: { is: 'silent', why: 'timeout' } }),
    ['Available=True/QuorumHealthy', 'Progressing=False/Reconciled', 'Degraded=True/MembersUnhealthy'],
  ],
  [
    'a quorum that was lost stays lost until it is back',
    world({ ...FORMED, conditions: [condition('Available', 'False', 'QuorumLost')] }, false, notAsked),
    ['Available=False/QuorumLost', 'Progressing=False/Reconciled', 'Degraded=True/QuorumLost'],
  ],
  [
    'one of three is ready: that is no quorum',
    members([up, down, down], { status: { conditions: served.conditions } }),
    ['Available=False/QuorumLost', 'Progressing=False/Reconciled', 'Degraded=True/QuorumLost'],
  ],
  [
    'a learner is no part of a quorum, however well it is',
    members([up, down, learner], { status: { conditions: served.conditions } }),
    ['Available=False/QuorumLost', 'Progressing=True/Scaling', 'Degraded=True/QuorumLost'],
  ],
  [
    'all have just begun again: no client is let through yet',
    members([begun, begun, begun], { status: { conditions: served.conditions } }),
    ['Available=False/QuorumLost', 'Progressing=False/Reconciled', 'Degraded=True/QuorumLost'],
  ],
  [
    'what another cluster says is not taken for ours',
    world(served, true, { etcd: { ...answers, clusterID: 'f00', members: [] } }),
    ['Available=True/QuorumHealthy', 'Progressing=False/Reconciled', 'Degraded=True/MembersUnhealthy'],
  ],
  [
    'a member that etcd does not know is one too many',
    world(served, true, { members: [...world(served, true).members, unlisted] }),
    ['Available=True/QuorumHealthy', 'Progressing=True/Scaling', 'Degraded=False/QuorumHealthy'],
  ],
  [
    'two of three vote, and a learner joins',
    members([up, up, learner]),
    ['Available=True/QuorumAvailable', 'Progressing=True/Scaling', 'Degraded=False/QuorumAvailable'],
  ],
  [
    'etcd counts a learner that nobody knows',
    members([up, up, up], { strangers: [{ ...entryOf(7, learner), peerURLs: ['http://else.where:2380'] }] }),
    ['Available=True/QuorumHealthy', 'Progressing=True/Scaling', 'Degraded=False/QuorumHealthy'],
  ],
  [
    'the data is gone',
    world(served, false, lost),
    ['Available=False/AllMembersLost', 'Progressing=False/AllMembersLost', 'Degraded=True/AllMembersLost'],
  ],
  [
    'somebody took the name of the client Service of a running cluster',
    world(served, true, { services: { ...services, client: { is: 'foreign', owner: 'EtcdCluster db-client' } } }),
    ['Available=True/QuorumHealthy', 'Progressing=False/NameConflict', 'Degraded=True/NameConflict'],
  ],
  [
    'an edit that has reached no member is under way, not done',
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
    ['Available=True/QuorumHealthy', 'Progressing=True/SpecChanged', 'Degraded=False/QuorumHealthy'],
  ],
])('%s', (_name, observed, conditions) => {
  expect(say(observed)).toEqual(conditions);
});

test('a wait says what it waits for, in the words of whoever is in the way', () => {
  const { status } = decide(world({ ...LATCHED, progressDeadline: SOON }, false, notAsked));
  expect(status.conditions?.[0]?.message).toContain('not scheduled: no room');
});

test('what the API server refuses is told', () => {
  const o = world({ ...LATCHED, progressDeadline: SOON }, false, {
    ...lost,
    refusal: 'the API server refuses: exceeded quota',
  });
  expect(decide(o).status.conditions?.[0]?.message).toContain('the API server refuses: exceeded quota');
});

describe('a member that votes since a moment ago, and whose Pod nobody has probed yet,', () => {
  function grown(runningSince: number): Observed {
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
      etcd: { ...answers, members } as Observed['etcd'],
    };
  }

  test('takes no quorum away', () => {
    expect(say(grown(NOW - 1_000))).toEqual([
      'Available=True/QuorumAvailable',
      'Progressing=True/Scaling',
      'Degraded=False/QuorumAvailable',
    ]);
    expect(decide(grown(NOW - 1_000)).status.quorum).toEqual({ needed: 2, healthy: 2, margin: 0 });
  });

  const LOST = ['Available=False/QuorumLost', 'Progressing=True/WaitingForMembers', 'Degraded=True/QuorumLost'];

  test('counts as lost when it stays so', () => {
    expect(say(grown(NOW - 60_000))).toEqual(LOST);
  });

  /** Its etcd has run for a minute, most of it to catch up. */
  function caughtUp(role: MemberEntry['role'], since: number, patch: Partial<MemberView> = {}): Observed {
    const o = grown(NOW - 60_000);
    const status = { ...o.cluster.status, members: [{ name: 'db-2', role, since: new Date(since).toISOString() }] };
    const members = o.members.map((m) => (m.object.metadata.name === 'db-2' ? { ...m, ...patch } : m));
    return { ...o, cluster: { ...o.cluster, status }, members };
  }

  test('takes no quorum away when it took its time to catch up', () => {
    expect(say(caughtUp('learner', NOW - 50_000))[0]).toBe('Available=True/QuorumAvailable');
    expect(say(caughtUp('follower', NOW - 5_000))[0]).toBe('Available=True/QuorumAvailable');
    expect(say(caughtUp('follower', NOW - 20_000))).toEqual(LOST);
  });

  test('takes no quorum away while only its object does not say yet that it votes', () => {
    const object = aMember({ status: { memberID: 'beef000000000002', isVoter: false } });
    const unrecorded: Partial<MemberView> = {
      object: { ...object, metadata: { ...object.metadata, name: 'db-2', uid: 'second' } },
      pod: { is: 'present', ip: '10.0.0.2', ready: true, runningSince: NOW - 60_000, maxLearners: 8 },
    };
    expect(say(caughtUp('follower', NOW - 60_000, unrecorded))[0]).toBe('Available=True/QuorumAvailable');
  });
});

test('a learner is not counted as ready', () => {
  const o = world(served, true);
  const object = aMember({ status: { isVoter: false, conditions: READY } });
  const learner = { ...entry, isLearner: true };
  const seen = {
    ...o,
    members: [{ object, pod: { is: 'present', ready: true, maxLearners: 8 } as const }],
    etcd: { ...answers, members: [learner] } as const,
  };
  expect(decide(seen).status.readyMembers).toBe(0);
});

test('a member whose Pod is gone is not ready, whatever it said last', () => {
  const o = world(served, true);
  const gone = o.members.map((m) => ({ ...m, pod: { is: 'absent' } as const }));
  expect(decide({ ...o, members: gone }).status.readyMembers).toBe(0);
});

test('a quorum is told of those that vote, and a leader by whoever has heard of it last', () => {
  expect(decide(members([up, learner])).status.quorum).toEqual({ needed: 1, healthy: 1, margin: 0 });
  const o = members([up, up, up], { leader: 2 });
  const [cutOff, ...others] = o.members;
  if (!cutOff?.self) throw new Error('there are three');
  const behind = { ...cutOff, self: { ...cutOff.self, leader: cutOff.self.id, term: 2 } };
  expect(decide({ ...o, members: [behind, ...others] }).status.leader).toBe(others[0]?.object.metadata.name);
});

test('the deadline is cleared when the target is reached, and woken up for while it is not', () => {
  expect(decide(world({ ...FORMED, progressDeadline: SOON }, true)).status).not.toHaveProperty('progressDeadline');
  const soon = world({ ...LATCHED, progressDeadline: '2026-01-01T12:00:02Z' }, false, notAsked);
  expect(decide(soon).requeueAfterMs).toBeLessThanOrEqual(2_000);
});

test('looking again at an unchanged cluster changes nothing and tells nothing', () => {
  const first = decide(world(FORMED, true));
  const again = decide(world(first.status, true));
  expect(again.status).toEqual(first.status);
  expect(again.events).toEqual([]);
});

test('each new reason is told once, bad ones as warnings', () => {
  const { events: notices } = decide(world(served, false, lost));
  expect(notices.map((n) => `${n.type} ${n.reason}`)).toEqual(['Warning AllMembersLost']);
});

test('a cluster that is being deleted is said nothing new about', () => {
  const o = world(served, true);
  expect(decide({ ...o, cluster: aCluster({ status: served, deleting: true }) }).status).toEqual(served);
});

describe('the deadline', () => {
  const deadlineAfter = (o: Observed): string | undefined => decide(o).status.progressDeadline;

  test.each<[string, EtcdClusterStatus, boolean, string | undefined]>([
    ['stands while a member is not ready', { ...FORMED, progressDeadline: SOON }, false, SOON],
    ['is over when all is as the spec asks', { ...FORMED, progressDeadline: SOON }, true, undefined],
    ['is not invented', FORMED, false, undefined],
  ])('%s', (_what, status, ready, expected) => {
    expect(deadlineAfter(world(status, ready))).toBe(expected);
  });

  test.each<[string, string | undefined, number | undefined, number | undefined]>([
    ['no deadline and no wish', undefined, undefined, undefined],
    ['a deadline to come', SOON, undefined, 600_000],
    ['an earlier wish of the rule', SOON, 5_000, 5_000],
    ['a later wish of the rule', SOON, 700_000, 600_000],
    ['a deadline in this very moment', new Date(NOW).toISOString(), undefined, undefined],
    ['a deadline that has passed', LATE, undefined, undefined],
    ['a wish without a deadline', undefined, 5_000, 5_000],
  ])('requeues for %s', (_what, progressDeadline, wakeAfter, expected) => {
    const o = world({ ...FORMED, ...(progressDeadline !== undefined && { progressDeadline }) }, true);
    expect(requeueAfterMs(o, { message: '', ...(wakeAfter !== undefined && { requeueAfterMs: wakeAfter }) })).toBe(
      expected,
    );
  });
});
