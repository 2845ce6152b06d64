/** Clusters in the middle of a CA rotation, as observed: which CA bundle each member has loaded on its peer port, and what is due. */

import { type CertificatesView, NO_CERTIFICATES, type PortTrustView } from '../../../src/access/evaluate/view.ts';
import type { EtcdClusterSpec } from '../../../src/api/etcd-cluster.ts';
import type { EtcdClusterStatus } from '../../../src/api/etcd-cluster-status.ts';
import { type EtcdPortName, trustName } from '../../../src/api/names.ts';
import type { Tls } from '../../../src/api/tls.ts';
import type { Gathered, MemberView } from '../../../src/controllers/cluster/observed.ts';
import { type Is, up, world } from './members.ts';

const tls: Tls = { client: { managed: {} }, peer: { managed: {} } };
export const [OLD, BOTH, NEW] = ['old', 'both', 'new'].map((text) => text.padEnd(64, '0')) as [string, string, string];
export const bundle = (part: EtcdPortName, digest: string): string => trustName('db', part, digest);

/** Started with this CA bundle on its peer port. */
export const started = (digest: string, is: Is = up): Is => ({ ...is, digest }) as Is;
const digestOf = (is: Is): string => (is as Is & { readonly digest?: string }).digest ?? OLD;

export const trust = (change: Partial<PortTrustView> = {}): PortTrustView => ({
  part: 'peer',
  loadedAtStart: true,
  recorded: OLD,
  target: OLD,
  trusted: true,
  notReissued: [],
  ...change,
});
/** Step 1: members restart to trust both CAs. */
export const widening: Partial<PortTrustView> = { recorded: BOTH, target: NEW, notReissued: ['db-peer-mounted'] };
/** Step 3: members restart to trust the new CA only. */
export const narrowing: Partial<PortTrustView> = { recorded: NEW, target: NEW };

interface More {
  readonly leader?: number;
  readonly replicas?: number;
  readonly view?: Partial<CertificatesView>;
  readonly status?: EtcdClusterStatus['trust'];
  readonly bare?: boolean;
  readonly spec?: Partial<EtcdClusterSpec>;
  readonly rollout?: EtcdClusterStatus['rollout'];
}

export function rotating(members: readonly Is[], change: Partial<PortTrustView>, more: More = {}): Gathered {
  const t = trust(change);
  const status: EtcdClusterStatus = {
    trust: { peer: t.recorded ?? '', ...more.status },
    ...(more.rollout && { rollout: more.rollout }),
  };
  const o = world(members, {
    spec: { tls, ...more.spec },
    leader: more.leader ?? 1,
    ...(more.replicas && { replicas: more.replicas }),
    status,
  });
  const withTrust = (m: MemberView, i: number): MemberView => {
    const is = members[i] ?? up;
    const loaded = more.bare ? more.status?.assumed?.peer : digestOf(is);
    const mount = { leaf: 'db-peer-mounted', ...(loaded !== undefined && { bundle: bundle('peer', loaded) }) };
    return m.pod.is === 'present' ? { ...m, pod: { ...m.pod, uid: `pod-${i + 1}`, tls: { peer: mount } } } : m;
  };
  return {
    ...o,
    members: o.members.map(withTrust),
    certificates: { ...NO_CERTIFICATES, trusts: [t], proven: [], ...more.view },
  };
}

export function draining(o: Gathered, at: number, ms = 5_000): Gathered {
  return changed(o, at, (m) => (m.pod.is === 'present' ? { ...m, pod: { ...m.pod, drainingSince: o.now - ms } } : m));
}
export function memory(more: Is['spec'] = {}): Is {
  return { spec: { storage: { size: '1Gi', medium: 'Memory' }, ...more } };
}
export function changed(o: Gathered, at: number, change: (m: MemberView) => MemberView): Gathered {
  return { ...o, members: o.members.map((m, i) => (i === at ? change(m) : m)) };
}
export function terminating(o: Gathered, at: number): Gathered {
  return changed(o, at, (m) => (m.pod.is === 'present' ? { ...m, pod: { ...m.pod, terminating: true } } : m));
}
export function unready(o: Gathered, at: number): Gathered {
  return changed(o, at, (m) => (m.pod.is === 'present' ? { ...m, pod: { ...m.pod, ready: false } } : m));
}
export function podless(o: Gathered, at: number): Gathered {
  return changed(o, at, (m) => ({ ...m, pod: { is: 'absent' } }));
}
