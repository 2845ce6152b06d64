/** An authority is exchanged under members that run: what is recorded when, and who is started again, one after the other. */
import { describe, expect, test } from 'vitest';
import { down, type Is, name, stepsOf, up, world } from '../../../../test/support/builders/members.ts';
import { type CertificatesView, NO_CERTIFICATES, type PortTrustView } from '../../../access/evaluate/view.ts';
import { findCondition } from '../../../api/conditions.ts';
import type { EtcdClusterStatus } from '../../../api/etcd-cluster-status.ts';
import { type EtcdPortName, trustName } from '../../../api/names.ts';
import type { Tls } from '../../../api/tls.ts';
import { iso } from '../../../lib/time.ts';
import { decide } from '../decide.ts';
import type { MemberView, Observed } from '../observed.ts';

const tls: Tls = { client: { managed: {} }, peer: { managed: {} } };
const [OLD, BOTH, NEW] = ['old', 'both', 'new'].map((text) => text.padEnd(64, '0')) as [string, string, string];
const bundle = (part: EtcdPortName, digest: string): string => trustName('db', part, digest);

/** Started with this on its peer port. */
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
/** All of them come to trust both. */
const widening: Partial<PortTrustView> = { recorded: BOTH, target: NEW, notReissued: ['db-peer-mounted'] };
/** All of them come to trust the new one only. */
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

const said = (o: Observed, type: string) => {
  const found = findCondition(decide(o).status.conditions, type);
  return found && `${found.status} ${found.reason}: ${found.message}`;
};

describe('who is started again', () => {
  test('nobody, as long as nothing else is recorded', () => {
    expect([decide(rotating([up, up, up], {})).rule, stepsOf(rotating([up, up, up], {}))]).toEqual(['steady', []]);
  });

  test('one, exactly the Pod that was seen, and that is told', () => {
    const plan = decide(aside(rotating([started(OLD), started(OLD), started(BOTH)], widening), 1));
    expect([plan.rule, plan.steps]).toEqual([
      'restartForCABundle',
      [{ do: 'delete', what: { kind: 'Pod', namespace: 'ns', name: name(2), uid: 'pod-2' } }],
    ]);
    expect(plan.events[0]).toMatchObject({ type: 'Normal', reason: 'RotatingCA' });
  });

  test.each<[string, Observed, readonly string[]]>([
    [
      'the leader last',
      aside(rotating([started(OLD), started(OLD), started(OLD)], widening), 1),
      [`delete ${name(2)}`],
    ],
    [
      'and it hands over first, to one that was started again',
      rotating([started(OLD), started(BOTH), started(BOTH)], widening),
      [`moveLeader ${name(2)}`],
    ],
    [
      'and goes when somebody else leads',
      aside(rotating([started(OLD), started(BOTH), started(BOTH)], widening, { leader: 2 }), 0),
      [`delete ${name(1)}`],
    ],
    ['not while another is down', rotating([started(OLD), started(OLD), started(BOTH, down)], widening), []],
    [
      'not one that is far behind: it may not come back',
      rotating([started(BOTH), { ...started(OLD), lag: 6_000 }, started(BOTH)], widening),
      [],
    ],
    [
      'not while another is not ready by its own probe',
      unready(rotating([started(OLD), started(OLD), started(BOTH)], widening), 2),
      [],
    ],
    [
      'not while the Pod of another is going, although its etcd answers',
      going(rotating([started(OLD), started(OLD), started(BOTH)], widening), 2),
      [],
    ],
    ['not while another has no Pod', podless(rotating([started(OLD), started(OLD), started(BOTH)], widening), 2), []],
    [
      'not while the number of members is being changed',
      rotating([started(OLD), started(OLD), { ...started(BOTH), as: 'learner' }], widening),
      [`promote ${name(3)}`],
    ],
    [
      'not when it would find nothing to mount',
      rotating([started(OLD), started(OLD), started(OLD)], widening, {
        view: {
          bundles: [{ secret: bundle('peer', BOTH), part: 'peer', findings: [{ is: 'caBundleLost', secret: 'x' }] }],
        },
      }),
      [],
    ],
    [
      'nobody while all show what the new authority has signed, and the old one is still trusted',
      rotating([started(OLD), started(BOTH), started(BOTH)], { ...widening, notReissued: [] }),
      [],
    ],
    [
      'nobody as long as nobody can tell where all of this is to lead',
      rotating([started(OLD), started(BOTH), started(BOTH)], {
        ...widening,
        trusted: false,
        target: undefined as never,
      }),
      [],
    ],
    [
      'and once more when only the new one is to be trusted',
      aside(rotating([started(BOTH), started(BOTH), started(NEW)], narrowing), 1),
      [`delete ${name(2)}`],
    ],
    [
      'not one whose PVC is being deleted: it goes with the Pod',
      changed(rotating([started(BOTH), started(OLD), started(BOTH)], widening), 1, (m) => ({
        ...m,
        pvc: 'terminating',
      })),
      [],
    ],
    ['a single one, because nobody can do it better', rotating([started(OLD)], widening), [`delete ${name(1)}`]],
    [
      'one with data in memory only is replaced, when others have the data',
      rotating([started(OLD), started(OLD, memory()), started(BOTH, memory())], widening),
      [`delete ${name(2)}`],
    ],
    ['and not when too few have it', rotating([started(OLD, memory())], widening), []],
  ])('%s', (_, o, expected) => {
    expect(stepsOf(o)).toEqual(expected);
  });

  test('a member in memory is replaced as a whole: its Pod alone would come back empty', () => {
    const [step] = decide(rotating([started(OLD), started(OLD, memory()), started(BOTH, memory())], widening)).steps;
    expect(step).toMatchObject({ do: 'delete', what: { kind: 'EtcdMember', name: name(2) } });
  });

  test('members that do not say whom they trust are left alone until something changes', () => {
    const calm = rotating([up, up, up], {}, { bare: true, status: { peer: OLD, assumed: { peer: OLD } } });
    expect(stepsOf(calm)).toEqual([]);
    const changed = rotating([up, up, up], widening, { bare: true, status: { peer: BOTH, assumed: { peer: OLD } } });
    expect(stepsOf(aside(changed, 1))).toEqual([`delete ${name(2)}`]);
  });
});

describe('what is recorded', () => {
  const latched = (o: Observed) => [decide(o).rule, decide(o).latch?.trust];

  test('more trust, before anybody starts with it, and that of before is kept for as long as it is used', () => {
    const next = { step: 'widen', digest: BOTH } as const;
    const o = rotating([up, up, up], { target: NEW, trusted: false, notReissued: ['db-peer-mounted'], next });
    expect(latched(o)).toEqual(['recordCABundle', { peer: BOTH, kept: [bundle('peer', OLD)] }]);
    expect(decide(o).events[0]).toMatchObject({
      reason: 'RotatingCA',
      note: expect.stringContaining('step 1 of 3'),
    });
  });

  test('less trust, only when every member has shown what it vouches for', () => {
    const next = { step: 'narrow', digest: NEW } as const;
    const o = (proven: readonly EtcdPortName[]) =>
      rotating(
        [started(BOTH), started(BOTH), started(BOTH)],
        { recorded: BOTH, target: NEW, next },
        { view: { proven } },
      );
    expect(decide(o([])).latch).toBeUndefined();
    expect(decide(o(['client'])).latch).toBeUndefined();
    expect(latched(o(['peer']))).toEqual(['recordCABundle', { peer: NEW, kept: [bundle('peer', BOTH)] }]);
  });

  test('less trust for both ports at once, or every member would start once more', () => {
    const next = { step: 'narrow', digest: NEW } as const;
    const peer = trust({ recorded: BOTH, target: NEW, next });
    const o = (other: Partial<PortTrustView>, proven: readonly EtcdPortName[] = ['client', 'peer']) =>
      rotating([started(BOTH)], peer, { view: { proven, trusts: [peer, trust({ part: 'client', ...other })] } });
    expect(decide(o({})).rule).toBe('recordCABundle'); // nothing is exchanged there
    expect(decide(o({ target: undefined as never })).rule).toBe('recordCABundle');
    const midway = { recorded: BOTH, target: NEW };
    expect(decide(o(midway)).latch).toBeUndefined();
    expect(decide(o({ ...midway, next }, ['peer'])).latch).toBeUndefined();
    expect(latched(o({ ...midway, next }))[1]).toMatchObject({ client: NEW, peer: NEW });
  });

  test('nothing while somebody joins', () => {
    const next = { step: 'widen', digest: BOTH } as const;
    const o = rotating([up, up, { as: 'learner' }], { target: NEW, trusted: false, next });
    expect(decide(o).rule).not.toBe('recordCABundle');
  });

  test('whom members of an earlier operator are taken to trust', () => {
    const o = rotating([up, up, up], { recorded: OLD, next: { step: 'adopt', digest: OLD } }, { bare: true });
    const { trust: _, ...unrecorded } = o.cluster.status ?? {};
    const fresh = { ...o, cluster: { ...o.cluster, status: unrecorded } };
    expect(latched(fresh)).toEqual(['recordCABundle', { peer: OLD, assumed: { peer: OLD } }]);
    expect(latched(rotating([up], {}, { bare: true }))).toEqual([
      'recordCABundle',
      { peer: OLD, assumed: { peer: OLD } },
    ]);
  });

  test('that a rotation was asked for, and nothing else changes', () => {
    const o = rotating([up, up, up], { requestedRotation: '1' }, { status: { peer: OLD, commanded: { client: '0' } } });
    expect(latched(o)).toEqual(['recordCABundle', { peer: OLD, commanded: { client: '0', peer: '1' } }]);
  });

  test('trust of before is deleted when no Pod has it, and then forgotten', () => {
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

  test('trust that comes back is not deleted', () => {
    const o = rotating(
      [up, up, up],
      { recorded: BOTH, target: OLD, next: { step: 'narrow', digest: OLD } },
      {
        status: { peer: BOTH, kept: [bundle('peer', OLD)] },
        view: { proven: ['peer'], kept: [bundle('peer', OLD)] },
      },
    );
    expect(latched(o)).toEqual(['recordCABundle', { peer: OLD, kept: [bundle('peer', BOTH)] }]);
  });
});

describe('what is said', () => {
  const both = (o: Observed) => {
    expect(said(o, 'Progressing')).toBe(said(o, 'CertificatesValid'));
    return said(o, 'Progressing');
  };
  const need = { role: 'peer', from: 'user', secret: 'mine', mount: 'db-peer-mounted' } as const;
  const certificates = [{ need, findings: [], usable: true, notAfter: 1 }];

  test.each<[string, Observed, string]>([
    [
      'how many trust both',
      rotating([started(OLD), started(OLD), started(BOTH)], widening, { view: { certificates } }),
      'step 1 of 3 on the peer port: members come to trust the old and the new authority, 1 of 3 do',
    ],
    [
      'whose data would be lost',
      rotating([started(OLD, memory())], widening, { view: { certificates } }),
      `0 of 1 do; the next is started again later: ${name(1)} has its data in memory only, which is lost when it starts again: set replicas to 3, so that others have it`,
    ],
    [
      'until when clients learn of the new one',
      rotating(
        [started(BOTH)],
        { ...widening, reachedAt: Date.parse('2027-01-01T00:00:00Z') },
        { view: { certificates } },
      ),
      'step 2 of 3 on the peer port: certificates are exchanged; not before 2027-01-01T00:00:00Z, so that it has reached all who mount it',
    ],
    [
      'which certificate is missing',
      rotating([started(BOTH)], { ...widening, notReissued: ['mine'] }, { view: { certificates } }),
      'step 2 of 3 on the peer port: certificates are exchanged; missing is one of the new authority in Secret mine',
    ],
    [
      'that not all show theirs',
      rotating([started(BOTH)], { ...widening, notReissued: [] }, { view: { certificates } }),
      'not all members show theirs yet',
    ],
    [
      'how many trust the new one only',
      rotating([started(BOTH), started(NEW)], narrowing, { view: { certificates } }),
      'step 3 of 3 on the peer port: members come to trust the new authority only, 1 of 2 do',
    ],
    [
      'that the Pod of the last one is not there again',
      rotating([started(NEW), started(NEW, { ...down, pod: { is: 'absent' } })], narrowing, {
        view: { certificates, kept: [bundle('peer', BOTH)] },
      }),
      'step 3 of 3 on the peer port: members come to trust the new authority only, 1 of 2 do',
    ],
  ])('%s', (_, o, sentence) => {
    expect(both(o)).toMatch(/^True RotatingCA: the authority is exchanged: /);
    expect(both(o)).toContain(sentence);
  });

  test('why the next one waits', () => {
    const o = going(rotating([started(OLD), started(OLD), started(BOTH)], widening, { view: { certificates } }), 2);
    expect(said(o, 'CertificatesValid')).toContain(`${name(3)} must be ready and healthy first`);
  });

  test('nothing when nothing is exchanged', () => {
    const o = rotating([up, up, up], {}, { view: { certificates } });
    expect(said(o, 'Progressing')).toBe('False Reconciled: All members match the spec');
    expect(said(o, 'CertificatesValid')).toContain('True Valid');
  });

  test('nothing when a Pod is lost later', () => {
    const o = rotating([up, { ...down, pod: { is: 'absent' } }], {}, { view: { certificates } });
    expect(said(o, 'CertificatesValid')).toContain('True Valid');
  });
});

describe('clients of one that is started again', () => {
  const three = rotating([started(OLD), started(OLD), started(BOTH)], widening);
  const patched = (role: string | null, since: string | null): string =>
    `patch ${name(2)} ${JSON.stringify({ metadata: { labels: { 'etcd-operator.cozystack.io/role': role }, annotations: { 'etcd-operator.cozystack.io/draining-since': since, ...(since === null && { 'etcd-operator.cozystack.io/aside-since': null }) } } })}`;

  test('are led to others first', () => {
    expect(stepsOf(three)).toEqual([patched(null, iso(three.now))]);
  });

  test('have the time that this takes', () => {
    const { steps, requeueAfterMs: wakeAfter } = decide(aside(three, 1, 1_000));
    expect([steps, wakeAfter]).toEqual([[], 2_000]);
    expect(stepsOf(aside(three, 1, 3_000))).toEqual([`delete ${name(2)}`]);
  });

  test.each<[string, Observed]>([
    ['because another one is down', rotating([started(OLD), started(OLD), started(BOTH, down)], widening)],
    ['because nothing is exchanged any more', rotating([up, up, up], {})],
    ['because it has its turn later', rotating([started(OLD), started(BOTH), started(BOTH)], widening, { leader: 2 })],
  ])('come back to one that is not started again after all: %s', (_, o) => {
    expect(stepsOf(aside(o, 1))).toEqual([patched('voter', null)]);
  });

  test('of one that ends already are not led to it once more', () => {
    expect(stepsOf(going(aside(three, 1), 1))).toEqual([]);
  });
});

function aside(o: Observed, at: number, ms = 5_000): Observed {
  return changed(o, at, (m) => (m.pod.is === 'present' ? { ...m, pod: { ...m.pod, drainingSince: o.now - ms } } : m));
}
function memory(): Is {
  return { spec: { storage: { size: '1Gi', medium: 'Memory' } } };
}
function changed(o: Observed, at: number, change: (m: MemberView) => MemberView): Observed {
  return { ...o, members: o.members.map((m, i) => (i === at ? change(m) : m)) };
}
function going(o: Observed, at: number): Observed {
  return changed(o, at, (m) => (m.pod.is === 'present' ? { ...m, pod: { ...m.pod, terminating: true } } : m));
}
function unready(o: Observed, at: number): Observed {
  return changed(o, at, (m) => (m.pod.is === 'present' ? { ...m, pod: { ...m.pod, ready: false } } : m));
}
function podless(o: Observed, at: number): Observed {
  return changed(o, at, (m) => ({ ...m, pod: { is: 'absent' } }));
}
