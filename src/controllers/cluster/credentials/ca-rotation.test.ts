/** A CA rotation of a running cluster: when which CA bundle is recorded, and which member restarts, one after the other. */

import { describe, expect, test } from 'vitest';
import { down, type Is, name, stepsOf, up, world } from '../../../../test/support/builders/members.ts';
import { rowsOf } from '../../../../test/support/builders/plan.ts';
import { type CertificatesView, NO_CERTIFICATES, type PortTrustView } from '../../../access/evaluate/view.ts';
import type { EtcdClusterStatus } from '../../../api/etcd-cluster-status.ts';
import { type EtcdPortName, trustName } from '../../../api/names.ts';
import type { Tls } from '../../../api/tls.ts';
import { findCondition } from '../../../domain/conditions.ts';
import { iso } from '../../../lib/time.ts';
import { decide } from '../decide.ts';
import type { MemberView, Observed } from '../observed.ts';
import { restart } from '../rules/restart.ts';
import { rotationOf } from './ca-rotation-progress.ts';

const tls: Tls = { client: { managed: {} }, peer: { managed: {} } };
const [OLD, BOTH, NEW] = ['old', 'both', 'new'].map((text) => text.padEnd(64, '0')) as [string, string, string];
const bundle = (part: EtcdPortName, digest: string): string => trustName('db', part, digest);

/** Started with this CA bundle on its peer port. */
const started = (digest: string, is: Is = up): Is => ({ ...is, digest }) as Is;
const digestOf = (is: Is): string => (is as Is & { readonly digest?: string }).digest ?? OLD;

const trust = (change: Partial<PortTrustView> = {}): PortTrustView => ({
  part: 'peer',
  loadedAtStart: true,
  recorded: OLD,
  target: OLD,
  trusted: true,
  notReissued: [],
  ...change,
});
/** Step 1: members restart to trust both CAs. */
const widening: Partial<PortTrustView> = { recorded: BOTH, target: NEW, notReissued: ['db-peer-mounted'] };
/** Step 3: members restart to trust the new CA only. */
const narrowing: Partial<PortTrustView> = { recorded: NEW, target: NEW };

interface More {
  readonly leader?: number;
  readonly replicas?: number;
  readonly view?: Partial<CertificatesView>;
  readonly status?: EtcdClusterStatus['trust'];
  readonly bare?: boolean;
}

function rotating(members: readonly Is[], change: Partial<PortTrustView>, more: More = {}): Observed {
  const t = trust(change);
  const status: EtcdClusterStatus = { trust: { peer: t.recorded ?? '', ...more.status } };
  const o = world(members, {
    spec: { tls },
    leader: more.leader ?? 1,
    ...(more.replicas && { replicas: more.replicas }),
    status,
  });
  const withTrust = (m: MemberView, i: number): MemberView => {
    const is = members[i] ?? up;
    const mount = { leaf: 'db-peer-mounted', ...(!more.bare && { bundle: bundle('peer', digestOf(is)) }) };
    return m.pod.is === 'present' ? { ...m, pod: { ...m.pod, uid: `pod-${i + 1}`, tls: { peer: mount } } } : m;
  };
  return {
    ...o,
    members: o.members.map(withTrust),
    certificates: { ...NO_CERTIFICATES, trusts: [t], proven: [], ...more.view },
  };
}

const conditionOf = (o: Observed, type: string) => {
  const found = findCondition(decide(o).status.conditions, type);
  return found && `${found.status} ${found.reason}: ${found.message}`;
};

describe('which member is restarted', () => {
  test('none, while the recorded bundle does not change', () => {
    expect([decide(rotating([up, up, up], {})).rule, stepsOf(rotating([up, up, up], {}))]).toEqual(['steady', []]);
  });

  test('one, exactly the observed Pod, with an Event', () => {
    const plan = decide(draining(rotating([started(OLD), started(OLD), started(BOTH)], widening), 1));
    expect([plan.rule, plan.steps]).toEqual([
      'restart',
      [{ do: 'delete', what: { kind: 'Pod', namespace: 'ns', name: name(2), uid: 'pod-2' } }],
    ]);
    expect(plan.events[0]).toMatchObject({ type: 'Normal', reason: 'RotatingCA' });
  });

  test.each<[string, Observed, readonly string[]]>([
    [
      'the leader last',
      draining(rotating([started(OLD), started(OLD), started(OLD)], widening), 1),
      [`delete ${name(2)}`],
    ],
    [
      'the leader first transfers leadership to a restarted member',
      rotating([started(OLD), started(BOTH), started(BOTH)], widening),
      [`moveLeader ${name(2)}`],
    ],
    [
      'the previous leader, once another member leads',
      draining(rotating([started(OLD), started(BOTH), started(BOTH)], widening, { leader: 2 }), 0),
      [`delete ${name(1)}`],
    ],
    ['not while another is down', rotating([started(OLD), started(OLD), started(BOTH, down)], widening), []],
    [
      'not a member that lags far behind: it may not come back',
      rotating([started(BOTH), { ...started(OLD), lag: 6_000 }, started(BOTH)], widening),
      [],
    ],
    [
      'not while the Pod of another is not ready',
      unready(rotating([started(OLD), started(OLD), started(BOTH)], widening), 2),
      [],
    ],
    [
      'not while the Pod of another is being deleted, although its etcd responds',
      terminating(rotating([started(OLD), started(OLD), started(BOTH)], widening), 2),
      [],
    ],
    ['not while another has no Pod', podless(rotating([started(OLD), started(OLD), started(BOTH)], widening), 2), []],
    [
      'not while the number of members is being changed',
      rotating([started(OLD), started(OLD), { ...started(BOTH), as: 'learner' }], widening),
      [`promote ${name(3)}`],
    ],
    [
      'not when the Secret that it mounts is lost',
      rotating([started(OLD), started(OLD), started(OLD)], widening, {
        view: {
          bundles: [{ secret: bundle('peer', BOTH), part: 'peer', findings: [{ is: 'caBundleLost', secret: 'x' }] }],
        },
      }),
      [],
    ],
    [
      'none while all serve certificates of the new CA, and the old CA is still trusted',
      rotating([started(OLD), started(BOTH), started(BOTH)], { ...widening, notReissued: [] }),
      [],
    ],
    [
      'none while the target bundle is not known',
      rotating([started(OLD), started(BOTH), started(BOTH)], {
        ...widening,
        trusted: false,
        target: undefined as never,
      }),
      [],
    ],
    [
      'again when only the new CA is to be trusted',
      draining(rotating([started(BOTH), started(BOTH), started(NEW)], narrowing), 1),
      [`delete ${name(2)}`],
    ],
    [
      'not one whose PVC is being deleted: the PVC would be deleted with the Pod',
      changed(rotating([started(BOTH), started(OLD), started(BOTH)], widening), 1, (m) => ({
        ...m,
        pvc: 'terminating',
      })),
      [],
    ],
    ['the only member, because its downtime is unavoidable', rotating([started(OLD)], widening), [`delete ${name(1)}`]],
    [
      'a member with data in memory is replaced, when others have the data',
      rotating([started(OLD), started(OLD, memory()), started(BOTH, memory())], widening),
      [`delete ${name(2)}`],
    ],
    [
      'not a member with data in memory when too few others have the data',
      rotating([started(OLD, memory())], widening),
      [],
    ],
  ])('%s', (_, o, expected) => {
    expect(stepsOf(o)).toEqual(expected);
  });

  test('a member in memory is replaced as a whole: its Pod alone would come back empty', () => {
    const [step] = decide(rotating([started(OLD), started(OLD, memory()), started(BOTH, memory())], widening)).steps;
    expect(step).toMatchObject({ do: 'delete', what: { kind: 'EtcdMember', name: name(2) } });
  });

  test('members whose Pods name no CA bundle are not restarted until the bundle changes', () => {
    const calm = rotating([up, up, up], {}, { bare: true, status: { peer: OLD, assumed: { peer: OLD } } });
    expect(stepsOf(calm)).toEqual([]);
    const changed = rotating([up, up, up], widening, { bare: true, status: { peer: BOTH, assumed: { peer: OLD } } });
    expect(stepsOf(draining(changed, 1))).toEqual([`delete ${name(2)}`]);
  });
});

/** The rules of members that join come first, so the rule is asked directly. */
describe('a member that joins', () => {
  const joined = (is: Is, replicas = 5) =>
    restart(
      draining(rotating([started(OLD), started(OLD), started(BOTH), started(BOTH, is)], widening, { replicas }), 1),
    );
  const deleted = (n: number, kind = 'Pod') => [
    { do: 'delete', what: expect.objectContaining({ kind, name: name(n) }) },
  ];
  const fresh = (minutes: number): Is => ({ as: 'learner', fresh: true, ageMs: minutes * 60_000 });

  test('holds up the restart of the others while it starts or catches up', () => {
    expect(joined({ as: 'learner' })).toBeUndefined();
    expect(joined(fresh(9))).toBeUndefined();
    expect(joined({ ...fresh(11), started: true })).toBeUndefined();
    expect(joined({ ...fresh(11), leaving: true })).toBeUndefined();
    expect(joined({ as: 'awaited' })).toBeUndefined();
  });

  test('does not once it has found no node for ten minutes: five members on three nodes rotate their CA', () => {
    expect(joined(fresh(11))?.steps).toEqual(deleted(2));
    expect(joined(fresh(11), 4)?.steps).toEqual(deleted(2));
    expect(joined(fresh(11), 3)).toBeUndefined(); // it is removed first
  });

  test('gets a new Pod with the recorded CA bundle, even if its data will be in memory', () => {
    const o = (is: Is) => rotating([started(BOTH), started(BOTH), started(OLD, { ...fresh(11), ...is })], widening);
    expect(restart(o({}))?.steps).toEqual(deleted(3));
    expect(restart(o(memory()))?.steps).toEqual(deleted(3));
  });
});

test('a member in memory is not deleted before it has the deletionPolicy of its cluster', () => {
  const made = rotating([started(OLD), started(OLD, memory()), started(BOTH)], widening);
  const spec = { ...made.cluster.spec, deletionPolicy: 'Retain' } as const;
  const o = { ...made, cluster: { ...made.cluster, spec } };
  expect(restart(o)).toBeUndefined();
  expect(rotationOf(o)).toContain(
    `the next member is not restarted yet: EtcdMember ${name(2)} does not have the deletionPolicy of its cluster yet`,
  );
});

describe('the recorded CA bundle', () => {
  const latched = (o: Observed) => [
    rowsOf(decide(o)).find((row) => /^(record|narrow)CABundle$/.test(row)),
    decide(o).latch?.trust,
  ];

  test('is widened before a member starts with it, and the previous one is kept while it is used', () => {
    const next = { step: 'widen', digest: BOTH } as const;
    const o = rotating([up, up, up], { target: NEW, trusted: false, notReissued: ['db-peer-mounted'], next });
    expect(latched(o)).toEqual(['recordCABundle', { peer: BOTH, kept: [bundle('peer', OLD)] }]);
    expect(decide(o).events[0]).toMatchObject({
      reason: 'RotatingCA',
      note: expect.stringContaining('step 1 of 3'),
    });
  });

  test('is narrowed only when every member serves a certificate that it verifies', () => {
    const next = { step: 'narrow', digest: NEW } as const;
    const o = (proven: readonly EtcdPortName[]) =>
      rotating(
        [started(BOTH), started(BOTH), started(BOTH)],
        { recorded: BOTH, target: NEW, next },
        { view: { proven } },
      );
    expect(decide(o([])).latch).toBeUndefined();
    expect(decide(o(['client'])).latch).toBeUndefined();
    expect(latched(o(['peer']))).toEqual(['narrowCABundle', { peer: NEW, kept: [bundle('peer', BOTH)] }]);
  });

  test('is narrowed for both ports at once, or every member would restart once more', () => {
    const next = { step: 'narrow', digest: NEW } as const;
    const peer = trust({ recorded: BOTH, target: NEW, next });
    const o = (other: Partial<PortTrustView>, proven: readonly EtcdPortName[] = ['client', 'peer']) =>
      rotating([started(BOTH)], peer, { view: { proven, trusts: [peer, trust({ part: 'client', ...other })] } });
    expect(decide(o({})).rule).toBe('narrowCABundle'); // no rotation on that port
    expect(decide(o({ target: undefined as never })).rule).toBe('narrowCABundle');
    const midway = { recorded: BOTH, target: NEW };
    expect(decide(o(midway)).latch).toBeUndefined();
    expect(decide(o({ ...midway, next }, ['peer'])).latch).toBeUndefined();
    expect(latched(o({ ...midway, next }))[1]).toMatchObject({ client: NEW, peer: NEW });
  });

  test('is not narrowed while a member joins, which has not served its certificate yet', () => {
    const next = { step: 'narrow', digest: NEW } as const;
    const o = (third: Is) =>
      rotating([up, up, third], { recorded: BOTH, target: NEW, next }, { view: { proven: ['peer'] } });
    expect(decide(o(up)).rule).toBe('narrowCABundle');
    expect(decide(o({ as: 'learner' })).latch?.trust).toBeUndefined();
  });

  test('is assumed for members of an earlier operator', () => {
    const o = rotating([up, up, up], { recorded: OLD, next: { step: 'adopt', digest: OLD } }, { bare: true });
    const { trust: _, ...unrecorded } = o.cluster.status ?? {};
    const fresh = { ...o, cluster: { ...o.cluster, status: unrecorded } };
    expect(latched(fresh)).toEqual(['recordCABundle', { peer: OLD, assumed: { peer: OLD } }]);
    expect(latched(rotating([up], {}, { bare: true }))).toEqual([
      'recordCABundle',
      { peer: OLD, assumed: { peer: OLD } },
    ]);
  });

  test('is unchanged when only the requested rotation is recorded', () => {
    const o = rotating([up, up, up], { requestedRotation: '1' }, { status: { peer: OLD, commanded: { client: '0' } } });
    expect(latched(o)).toEqual(['recordCABundle', { peer: OLD, commanded: { client: '0', peer: '1' } }]);
  });

  test('the previous one is deleted when no Pod mounts it, and then removed from the status', () => {
    const kept = [bundle('peer', OLD)];
    const o = (of: string, there: readonly string[]) =>
      rotating(
        [started(BOTH), started(of), started(BOTH)],
        { recorded: BOTH, target: BOTH },
        {
          status: { peer: BOTH, kept },
          view: { kept: there },
        },
      );
    expect(stepsOf(o(BOTH, kept))).toEqual([`deleteCABundle ${kept[0]}`]);
    expect(stepsOf(podless(o(BOTH, kept), 1))).toEqual([]);
    expect(latched(o(BOTH, []))).toEqual(['recordCABundle', { peer: BOTH }]);
    expect(
      stepsOf(
        rotating(
          [started(OLD), started(OLD)],
          { ...widening, notReissued: [] },
          { status: { peer: BOTH, kept }, view: { kept } },
        ),
      ),
    ).toEqual([]);
  });

  test('a previous one that is recorded again is not deleted', () => {
    const o = rotating(
      [up, up, up],
      { recorded: BOTH, target: OLD, next: { step: 'narrow', digest: OLD } },
      {
        status: { peer: BOTH, kept: [bundle('peer', OLD)] },
        view: { proven: ['peer'], kept: [bundle('peer', OLD)] },
      },
    );
    expect(latched(o)).toEqual(['narrowCABundle', { peer: OLD, kept: [bundle('peer', BOTH)] }]);
  });
});

describe('the conditions', () => {
  const both = (o: Observed) => {
    expect(conditionOf(o, 'Progressing')).toBe(conditionOf(o, 'CertificatesValid'));
    return conditionOf(o, 'Progressing');
  };
  const need = { role: 'peer', from: 'user', secret: 'mine', mount: 'db-peer-mounted' } as const;
  const certificates = [{ need, findings: [], usable: true, notAfter: 1 }];

  test.each<[string, Observed, string]>([
    [
      'report how many members trust both CAs',
      rotating([started(OLD), started(OLD), started(BOTH)], widening, { view: { certificates } }),
      'step 1 of 3 on the peer port: members must trust the old and the new CA, 1 of 3 do',
    ],
    [
      'report the member whose data would be lost',
      rotating([started(OLD, memory())], widening, { view: { certificates } }),
      `0 of 1 do; the next member is not restarted yet: ${name(1)} has its data in memory only, which is lost when it restarts: set replicas to 3, so that other members have it`,
    ],
    [
      'report until when clients get the new CA',
      rotating(
        [started(BOTH)],
        { ...widening, reachedAt: Date.parse('2027-01-01T00:00:00Z') },
        { view: { certificates } },
      ),
      'step 2 of 3 on the peer port: certificates are reissued; not before 2027-01-01T00:00:00Z, so that the Secrets have been updated in all Pods that mount them',
    ],
    [
      'report the missing certificate',
      rotating([started(BOTH)], { ...widening, notReissued: ['mine'] }, { view: { certificates } }),
      'step 2 of 3 on the peer port: certificates are reissued; a certificate of the new CA is missing in Secret mine',
    ],
    [
      'report that not all members serve theirs',
      rotating([started(BOTH)], { ...widening, notReissued: [] }, { view: { certificates } }),
      'not all members serve theirs yet',
    ],
    [
      'report how many members trust the new CA only',
      rotating([started(BOTH), started(NEW)], narrowing, { view: { certificates } }),
      'step 3 of 3 on the peer port: members must trust the new CA only, 1 of 2 do',
    ],
    [
      'report that the Pod of the last member is not created again',
      rotating([started(NEW), started(NEW, { ...down, pod: { is: 'absent' } })], narrowing, {
        view: { certificates, kept: [bundle('peer', BOTH)] },
      }),
      'step 3 of 3 on the peer port: members must trust the new CA only, 1 of 2 do',
    ],
  ])('%s', (_, o, sentence) => {
    expect(both(o)).toMatch(/^True RotatingCA: CA rotation in progress: /);
    expect(both(o)).toContain(sentence);
  });

  test('report why the next member waits', () => {
    const o = terminating(
      rotating([started(OLD), started(OLD), started(BOTH)], widening, { view: { certificates } }),
      2,
    );
    expect(conditionOf(o, 'CertificatesValid')).toContain(`${name(3)} must be ready and healthy first`);
  });

  test('report that the Secrets of the next member are missing', () => {
    const findings = [{ is: 'caBundleLost', secret: 'x' } as const];
    const bundles = [{ secret: bundle('peer', BOTH), part: 'peer', findings } as const];
    const o = rotating([started(OLD), started(OLD), started(BOTH)], widening, { view: { certificates, bundles } });
    expect(conditionOf(o, 'CertificatesValid')).toContain(
      'the next member is not restarted yet: its Pod could not be recreated: certificates are missing or invalid',
    );
  });

  test('report nothing without a rotation', () => {
    const o = rotating([up, up, up], {}, { view: { certificates } });
    expect(conditionOf(o, 'Progressing')).toBe('False Reconciled: All members match the spec');
    expect(conditionOf(o, 'CertificatesValid')).toContain('True Valid');
  });

  test('report nothing when a Pod is lost later', () => {
    const o = rotating([up, { ...down, pod: { is: 'absent' } }], {}, { view: { certificates } });
    expect(conditionOf(o, 'CertificatesValid')).toContain('True Valid');
  });
});

test('a previous CA bundle that is recorded again in the same plan is not deleted: a user has put the old CA back', () => {
  const next = { step: 'widen', digest: BOTH } as const;
  const kept = [bundle('peer', BOTH)];
  const o = rotating(
    [started(NEW), started(NEW), started(NEW)],
    { recorded: NEW, target: OLD, next },
    { view: { kept } },
  );
  expect([decide(o).latch?.trust?.peer, stepsOf(o)]).toEqual([BOTH, []]);
});

test('a member that finds no node does not hold up the restarts: the fourth of five on three nodes', () => {
  const stuck = (ageMs: number): Is => ({ as: 'learner', fresh: true, ageMs, pod: { is: 'absent' } });
  const o = (ageMs: number) =>
    rotating([started(OLD), started(OLD), started(BOTH), stuck(ageMs)], widening, { replicas: 5 });
  expect(decide(o(9 * 60_000)).rule).toBe('waitForJoining');
  expect(decide(o(11 * 60_000)).rule).toBe('restart');
});

describe('the client Service of a restarted member', () => {
  const three = rotating([started(OLD), started(OLD), started(BOTH)], widening);
  const patched = (role: string | null, since: string | null): string =>
    `patch ${name(2)} ${JSON.stringify({ metadata: { labels: { 'etcd-operator.cozystack.io/role': role }, annotations: { 'etcd-operator.cozystack.io/draining-since': since, ...(since === null && { 'etcd-operator.cozystack.io/aside-since': null }) } } })}`;

  test('loses the member before the restart', () => {
    expect(stepsOf(three)).toEqual([patched(null, iso(three.now))]);
  });

  test('has some time to update its endpoints', () => {
    const { steps, requeueAfterMs } = decide(draining(three, 1, 1_000));
    expect([steps, requeueAfterMs]).toEqual([[], 2_000]);
    expect(stepsOf(draining(three, 1, 3_000))).toEqual([`delete ${name(2)}`]);
  });

  test.each<[string, Observed]>([
    ['because another one is down', rotating([started(OLD), started(OLD), started(BOTH, down)], widening)],
    ['because the rotation is over', rotating([up, up, up], {})],
    [
      'because another member is restarted first',
      rotating([started(OLD), started(BOTH), started(BOTH)], widening, { leader: 2 }),
    ],
  ])('gets back a member that is not restarted after all: %s', (_, o) => {
    expect(stepsOf(draining(o, 1))).toContain(`restoreTraffic: ${patched('voter', null)}`);
  });

  test('does not get back a member whose Pod is being deleted', () => {
    expect(stepsOf(terminating(draining(three, 1), 1))).toEqual([]);
  });
});

function draining(o: Observed, at: number, ms = 5_000): Observed {
  return changed(o, at, (m) => (m.pod.is === 'present' ? { ...m, pod: { ...m.pod, drainingSince: o.now - ms } } : m));
}
function memory(more: Is['spec'] = {}): Is {
  return { spec: { storage: { size: '1Gi', medium: 'Memory' }, ...more } };
}
function changed(o: Observed, at: number, change: (m: MemberView) => MemberView): Observed {
  return { ...o, members: o.members.map((m, i) => (i === at ? change(m) : m)) };
}
function terminating(o: Observed, at: number): Observed {
  return changed(o, at, (m) => (m.pod.is === 'present' ? { ...m, pod: { ...m.pod, terminating: true } } : m));
}
function unready(o: Observed, at: number): Observed {
  return changed(o, at, (m) => (m.pod.is === 'present' ? { ...m, pod: { ...m.pod, ready: false } } : m));
}
function podless(o: Observed, at: number): Observed {
  return changed(o, at, (m) => ({ ...m, pod: { is: 'absent' } }));
}
