/** The credentials chain alone: what each row contributes, and the one value that it hands on. */

import { describe, expect, test } from 'vitest';
import { aCluster, CLUSTER_ID, FORMED, NOW } from '../../../../test/support/builders/builders.ts';
import { BOTH, bundle, NEW, OLD, trust } from '../../../../test/support/builders/rotating.ts';
import {
  type CertificatesView,
  type CertificateView,
  NO_CERTIFICATES,
  type PortTrustView,
} from '../../../access/evaluate/view.ts';
import type { EtcdClusterSpec } from '../../../api/etcd-cluster.ts';
import type { EtcdClusterStatus } from '../../../api/etcd-cluster-status.ts';
import { type EtcdPortName, ROTATE_CA_ANNOTATION } from '../../../api/names.ts';
import { stepTarget } from '../../../runtime/plan.ts';
import { decideCredentials, stateOf } from './decide.ts';
import type { CredentialsObserved } from './observed.ts';
import type { MountingPod } from './state.ts';

interface Was {
  readonly spec?: Partial<EtcdClusterSpec>;
  readonly status?: EtcdClusterStatus;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly view?: Partial<CertificatesView>;
  readonly trusts?: readonly Partial<PortTrustView>[];
}

/** Three healthy members with auth and a managed peer CA, and nothing to do. */
function observed({ spec, status, annotations, view, trusts = [{}], ...patch }: Was & Partial<CredentialsObserved>) {
  const [first] = trusts;
  const made = aCluster({
    spec: {
      tls: { client: { managed: {} }, peer: { managed: {} } },
      auth: { enabled: true, rootCredentialsSecretRef: { name: 'mine' } },
      ...spec,
    },
    status: { ...FORMED, authEnabled: true, trust: { peer: first?.recorded ?? OLD }, ...status },
  });
  return {
    now: NOW,
    cluster: { ...made, metadata: { ...made.metadata, annotations } },
    certificates: { ...NO_CERTIFICATES, trusts: trusts.map(trust), ...view },
    password: { kept: 'same' },
    auth: 'on',
    formed: true,
    replicas: 3,
    pods: [started(), started(), started()],
    etcd: 'answers',
    voters: { clusterID: CLUSTER_ID, endpoints: ['https://10.0.0.1:2379'], hosts: {} },
    single: false,
    allHealthy: true,
    hasToken: true,
    atRest: true,
    ...patch,
  } as CredentialsObserved;
}

function started(digest = OLD): MountingPod {
  return { is: 'present', tls: { peer: { leaf: 'db-peer-mounted', bundle: bundle('peer', digest) } } };
}
const absent: MountingPod = { is: 'absent' };
/** A Pod of an earlier operator, which mounts one Secret with the certificate and the CA bundle. */
const unnamed: MountingPod = { is: 'present', tls: { peer: { leaf: 'mine' } } };

/** Steps and latched fields of each row. */
const contributed = (c: CredentialsObserved): readonly string[] =>
  decideCredentials(c, stateOf(c)).upkeep.flatMap(({ name, decision: { latch, sequences = [] } }) => [
    ...(latch ? [`${name}: ${JSON.stringify(latch)}`] : []),
    ...sequences.flat().map((step) => `${name}: ${stepTarget(step)}`),
  ]);
const recorded = (value: EtcdClusterStatus['trust']): string => `recordCABundle: ${JSON.stringify({ trust: value })}`;

const due = (todo: CertificateView['todo']): Partial<CertificatesView> => ({
  certificates: [
    { need: { role: 'peer', from: 'user', secret: 'mine', mount: 'db-peer-mounted' }, findings: [], usable: true },
    {
      need: { role: 'server', from: 'user', secret: 'theirs', mount: 'db-server-mounted' },
      findings: [],
      usable: true,
      ...(todo && { todo }),
    },
  ],
});
const renewed = 'writeSecrets: copyCertificate db-server-mounted';
const unreadable = { secrets: ['mine'], message: 'no KMS', password: true, judged: true, retryAt: NOW + 60_000 };

const widen = { recorded: OLD, target: NEW, trusted: false, next: { step: 'widen', digest: BOTH } } as const;
const narrow = { recorded: BOTH, target: NEW, next: { step: 'narrow', digest: NEW } } as const;
const proven: readonly EtcdPortName[] = ['client', 'peer'];
const first = { recorded: undefined as never, target: NEW, next: { step: 'begin', digest: NEW } } as const;
const before = { formed: false, pods: [], etcd: 'notAsked', auth: undefined } as const;
const problem = { reason: 'AuthCredentialsMissing', message: 'Secret mine does not exist' };

const ENABLED = ['intendPassword db-root-applied', 'makeRoot root', 'enableAuth root', 'provePassword db-root-applied'];
const enabling = ENABLED.map((step) => `enableAuth: ${step}`);
const changing = ['intendPassword db-root-applied', 'changePassword root', 'provePassword db-root-applied'].map(
  (step) => `changeRootPassword: ${step}`,
);

describe('certificates', () => {
  test.each<[string, Was & Partial<CredentialsObserved>, readonly string[]]>([
    ['nothing is due', {}, []],
    ['a renewed certificate is copied', { view: due('copyCertificate') }, [renewed]],
    [
      'also while no member responds',
      { view: due('copyCertificate'), etcd: 'unreachable', auth: undefined },
      [renewed],
    ],
    ['also while members join or are replaced', { view: due('copyCertificate'), atRest: false }, [renewed]],
    ['also for a paused cluster', { view: due('copyCertificate'), replicas: 0, pods: [] }, [renewed]],
    [
      'not for a cluster with replicas 0 that was never bootstrapped',
      { ...before, view: due('copySecret'), replicas: 0 },
      [],
    ],
    ['not by what was read before', { view: { ...due('copyCertificate'), unreadable } }, []],
  ])('%s', (_, patch, expected) => {
    expect(contributed(observed(patch))).toEqual(expected);
  });
});

describe('the recorded CA bundle', () => {
  const kept = [bundle('peer', OLD)];
  test.each<[string, Was & Partial<CredentialsObserved>, readonly string[]]>([
    ['is recorded with the token', { ...before, trusts: [first], status: { trust: {} } }, [recorded({ peer: NEW })]],
    [
      'not before it: the cluster may have been deleted',
      { ...before, trusts: [first], status: { trust: {} }, hasToken: false },
      [],
    ],
    [
      'follows a Secret that changes during the bootstrap, and the previous one is deleted later',
      { ...before, trusts: [first], pods: [absent] },
      [recorded({ peer: NEW, kept })],
    ],
    [
      'is unchanged when the Secret is',
      { ...before, trusts: [{ ...first, next: { step: 'begin', digest: OLD } }] },
      [],
    ],
    [
      'of the first member counts as the rotation that was requested before it',
      { ...before, trusts: [first], annotations: { [ROTATE_CA_ANNOTATION]: 'now' } },
      [recorded({ peer: NEW, commanded: { peer: 'now' }, kept })],
    ],
    [
      'is widened, and the previous one is kept while it is used',
      { trusts: [widen] },
      [recorded({ peer: BOTH, kept })],
    ],
    [
      'is widened also while a learner joins, which then starts with both CAs',
      { trusts: [widen], atRest: false },
      [recorded({ peer: BOTH, kept })],
    ],
    ['is not changed while the cluster is paused', { trusts: [widen], replicas: 0, pods: [] }, []],
    ['is not changed by what was read before', { trusts: [widen], view: { unreadable } }, []],
    [
      'is narrowed at rest, when all members have proven their certificates',
      { trusts: [narrow], view: { proven } },
      [recorded({ peer: NEW, kept: [bundle('peer', BOTH)] })],
    ],
    ['not while a member joins or is replaced', { trusts: [narrow], view: { proven }, atRest: false }, []],
    ['not on another port than the proven one', { trusts: [narrow], view: { proven: ['client'] } }, []],
    [
      'not while certificates are due, which are decided by the wider bundle',
      { trusts: [narrow], view: { proven, ...due('copyCertificate') } },
      [renewed],
    ],
    [
      'not before the other port has come as far',
      { trusts: [narrow, { part: 'client', recorded: BOTH, target: NEW }], view: { proven } },
      [],
    ],
    [
      'on both ports at once, or every member would restart once more',
      { trusts: [narrow, { ...narrow, part: 'client' }], view: { proven } },
      [recorded({ peer: NEW, client: NEW, kept: [bundle('peer', BOTH)] })],
    ],
    [
      'without waiting for a port whose target is not known',
      { trusts: [narrow, { part: 'client', target: undefined as never }], view: { proven } },
      [recorded({ peer: NEW, kept: [bundle('peer', BOTH)] })],
    ],
    [
      'is assumed for Pods of an earlier operator',
      { pods: [unnamed], trusts: [{ recorded: OLD }] },
      [recorded({ peer: OLD, assumed: { peer: OLD } })],
    ],
    [
      'is adopted from an earlier operator',
      { pods: [unnamed], status: { trust: {} }, trusts: [{ next: { step: 'adopt', digest: OLD } }] },
      [recorded({ peer: OLD, assumed: { peer: OLD } })],
    ],
    [
      'stays when a rotation is requested again during step 2: the request is recorded, and not carried out twice',
      {
        trusts: [{ ...narrow, next: undefined as never, requestedRotation: '2' }],
        status: { trust: { peer: BOTH, commanded: { peer: '1' } } },
      },
      [recorded({ peer: BOTH, commanded: { peer: '2' } })],
    ],
  ])('%s', (_, patch, expected) => {
    expect(contributed(observed(patch))).toEqual(expected);
  });
});

describe('a previous CA bundle', () => {
  const kept = [bundle('peer', BOTH)];
  const after = { trusts: [{ recorded: NEW, target: NEW }], status: { trust: { peer: NEW, kept } }, view: { kept } };
  const all = (...digests: readonly string[]) => ({ pods: digests.map(started) });
  test.each<[string, Was & Partial<CredentialsObserved>, readonly string[]]>([
    [
      'is deleted when no Pod mounts it',
      { ...after, ...all(NEW, NEW, NEW) },
      [`discardCABundles: deleteCABundle ${kept[0]}`],
    ],
    [
      'not while a Pod mounts it, which was created when the narrower one was recorded',
      { ...after, ...all(NEW, BOTH, NEW) },
      [],
    ],
    [
      'not while a Pod is not in the cache: it may mount it',
      { ...after, pods: [started(NEW), absent, started(NEW)] },
      [],
    ],
    ['not while members join or are replaced', { ...after, ...all(NEW, NEW, NEW), atRest: false }, []],
    ['not by what was read before', { ...after, ...all(NEW, NEW, NEW), view: { kept, unreadable } }, []],
    [
      'leaves the status when its Secret is gone',
      { ...after, ...all(NEW, NEW, NEW), view: {} },
      [recorded({ peer: NEW })],
    ],
    [
      'not when it is recorded again in the same plan: a user has put the old CA back',
      { ...after, ...all(NEW, NEW, NEW), trusts: [{ ...widen, recorded: NEW, target: OLD }] },
      [recorded({ peer: BOTH, kept: [bundle('peer', NEW)] })],
    ],
  ])('%s', (_, patch, expected) => {
    expect(contributed(observed(patch))).toEqual(expected);
  });
});

describe('auth', () => {
  test.each<[string, Was & Partial<CredentialsObserved>, readonly string[]]>([
    ['is enabled when every started member is healthy', { auth: 'off' }, enabling],
    ['not while one lags: it would serve clients without auth', { auth: 'off', allHealthy: false }, []],
    ['not while the cluster is paused', { auth: 'off', replicas: 0 }, []],
    ['not without a password: clients would be locked out', { auth: 'off', password: { kept: 'same', problem } }, []],
    ['not by a password that may have changed', { auth: 'off', view: { unreadable } }, []],
    [
      'is recorded when etcd has authenticated the operator',
      { status: { authEnabled: undefined as never } },
      ['recordAuth: {"authEnabled":true}'],
    ],
    [
      'not when another cluster responds',
      { status: { authEnabled: undefined as never }, voters: { clusterID: CLUSTER_ID, endpoints: [], hosts: {} } },
      [],
    ],
    ['not when the spec does not ask for it', { spec: { auth: {} }, status: { authEnabled: undefined as never } }, []],
    ['the given password is set', { password: { kept: 'another' } }, changing],
    [
      'the intended password is set first, although the Secret was changed again',
      { password: { kept: 'intended' } },
      changing,
    ],
    ['and although the Secret is missing now', { password: { kept: 'intended', problem } }, changing],
    ['not while the cluster is paused', { password: { kept: 'another' }, replicas: 0 }, []],
    [
      'a proven password is stored',
      { password: { kept: 'nothing' }, allHealthy: false },
      ['changeRootPassword: provePassword db-root-applied'],
    ],
  ])('%s', (_, patch, expected) => {
    expect(contributed(observed(patch))).toEqual(expected);
  });
});

describe('the value that is handed on', () => {
  const stateIn = (patch: Was & Partial<CredentialsObserved>) => stateOf(observed(patch));

  test('holds the bootstrap while a Secret cannot be read, and never a formed cluster', () => {
    const blocked = { reason: 'SecretUnreadable', waits: true };
    expect(stateIn({ ...before, view: { unreadable } }).bootstrap.blockedBy).toMatchObject(blocked);
    expect(stateIn({ ...before, pods: [absent], view: { unreadable } }).bootstrap.blockedBy).toMatchObject(blocked);
    const formed = stateIn({ view: { unreadable } });
    expect([formed.bootstrap.blockedBy, formed.join.blockedBy, formed.locked]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    expect(formed.recreate.blockedBy).toContain('cannot be read');
    expect(formed.unread?.reason).toBe('SecretUnreadable');
  });

  test('holds the bootstrap until certificates are issued, and asks a user for what the operator cannot do', () => {
    expect(stateIn({ ...before, view: due('copySecret') }).bootstrap.blockedBy).toEqual({
      reason: 'Issuing',
      message: 'a certificate is copied: Secret db-server-mounted',
      waits: false,
    });
    expect(stateIn({ ...before, password: { kept: 'nothing', problem } }).bootstrap.blockedBy).toEqual({
      ...problem,
      waits: true,
    });
    expect(stateIn({ ...before, issuance: { is: 'missing' } }).bootstrap.blockedBy).toBeUndefined(); // it requests nothing
    expect(stateIn(before).bootstrap.blockedBy).toBeUndefined();
  });

  test('holds growth at one member until auth is enabled: a membership call may be on its way without a token', () => {
    expect(stateIn({ auth: 'off', single: true }).join.blockedBy).toMatchObject({
      reason: 'EnablingAuth',
      waits: false,
    });
    expect(stateIn({ auth: 'off' }).join.blockedBy).toBeUndefined();
    expect(stateIn({ single: true }).join.blockedBy).toBeUndefined();
  });

  test('asks for restarts with the recorded bundle, but not back to both CAs once certificates are reissued', () => {
    const wanted = (digest: string) => [{ port: 'peer', bundleSecret: bundle('peer', digest) }];
    const step1 = { recorded: BOTH, target: NEW, notReissued: ['db-peer-mounted'] };
    expect(stateIn({ trusts: [step1] }).restart).toEqual(wanted(BOTH));
    expect(stateIn({ trusts: [{ ...step1, notReissued: [] }] }).restart).toEqual([]);
    expect(stateIn({ trusts: [{ recorded: NEW, target: NEW }] }).restart).toEqual(wanted(NEW));
    expect(stateIn({ trusts: [{ recorded: NEW, target: NEW, loadedAtStart: false }] }).restart).toEqual([]);
  });
});
