/** Rules of a CA rotation: a CA bundle is recorded before a member starts with it, and deleted when none uses it. */

import type { PortTrustView } from '../../../../access/evaluate/view.ts';
import type { EtcdClusterStatus } from '../../../../api/etcd-cluster-status.ts';
import { type EtcdPortName, trustName } from '../../../../api/names.ts';
import { ETCD_PORTS } from '../../../../domain/certificate-requirements.ts';
import { identity } from '../../../../domain/ownership.ts';
import { MANAGED_SECRET_RETRY_MS } from '../../../../domain/timing.ts';
import {
  type Contributed,
  type Decided,
  desired,
  hasToken,
  isFormed,
  type MemberView,
  type Observed,
} from '../../observed.ts';
import { bundleOf, isSettled, mayNarrow, ROTATING } from '../ca-rotation.ts';
import { bundleLatch, unreadableSecrets } from '../certificates.ts';
import { dueSecrets } from '../due.ts';

type Trust = NonNullable<EtcdClusterStatus['trust']>;

const MESSAGES = {
  begin: 'the CA bundle is recorded',
  adopt: 'the CA bundle is recorded',
  widen: 'CA rotation, step 1 of 3: the new CA is added to the CA bundle',
  narrow: 'CA rotation, step 3 of 3: the old CA is removed from the CA bundle',
} as const;

/** The bundles of both ports are narrowed together, or every member would restart once more. */
const mayNarrowAll = (o: Observed): boolean => o.certificates.trusts.every((t) => isSettled(t) || mayNarrow(o, t));

const namesNoBundle = (m: MemberView, part: EtcdPortName): boolean =>
  m.pod.is === 'present' && m.pod.tls?.[part] !== undefined && m.pod.tls[part].bundle === undefined;

/** For Pods of an earlier operator, which name no bundle Secret, the digest is recorded before it can change. */
function assumedFor(
  o: Observed,
  { part, loadedAtStart: atStart, recorded, next }: PortTrustView,
): readonly (readonly [EtcdPortName, string])[] {
  const known = o.cluster.status?.trust?.[part] === undefined ? next?.digest : recorded;
  const unrecorded =
    o.cluster.status?.trust?.assumed?.[part] === undefined && o.members.some((m) => namesNoBundle(m, part));
  return atStart && unrecorded && known !== undefined ? [[part, known]] : [];
}

/** Widened at any time. Before the first member has started, a user may change a Secret: it starts with the new contents. */
export function recordCABundle(o: Observed): Contributed {
  if (unreadableSecrets(o) !== undefined) return undefined; // the CA may have changed since it was read
  if (!isFormed(o)) return renewCABundle(o);
  return desired(o) === 0 ? undefined : record(o, (t) => t.next !== undefined && t.next.step !== 'narrow');
}

/** Only at rest: a member that joins or is replaced has not served its certificate yet. */
export function narrowCABundle(o: Observed): Decided {
  if (!isFormed(o) || recordCABundle(o) !== undefined || unreadableSecrets(o) !== undefined) return undefined;
  if (dueSecrets(o).length > 0) return undefined; // they are decided by the wider bundle
  return mayNarrowAll(o) ? record(o, (t) => t.next !== undefined) : undefined;
}

function record(o: Observed, isDue: (t: PortTrustView) => boolean): Contributed & Decided {
  const before: Trust = o.cluster.status?.trust ?? {};
  const { trusts, kept } = o.certificates;
  const { name } = identity(o.cluster);
  const due = trusts.filter(isDue);
  const assumed = trusts.flatMap((t) => assumedFor(o, t));
  const commanded = trusts.flatMap(({ part, requestedRotation: value }) =>
    value === undefined ? [] : [[part, value] as const],
  );
  const deleted = (before.kept ?? []).filter((secret) => !kept.includes(secret));
  if (due.length + assumed.length + commanded.length + deleted.length === 0) return undefined;
  const digests = Object.fromEntries(due.flatMap(({ part, next }) => (next ? [[part, next.digest]] : [])));
  const now = { ...before, ...digests };
  const left = due.flatMap(({ part, loadedAtStart: atStart }) => {
    const digest = before[part];
    return atStart && digest !== undefined ? [trustName(name, part, digest)] : [];
  });
  const used = ETCD_PORTS.map((part) => trustName(name, part, now[part] ?? ''));
  const keep = [...new Set([...kept, ...left])].filter((secret) => !used.includes(secret));
  const { kept: _, ...rest } = now;
  const trust: Trust = {
    ...rest,
    ...(assumed.length > 0 && { assumed: { ...before.assumed, ...Object.fromEntries(assumed) } }),
    ...(commanded.length > 0 && { commanded: { ...before.commanded, ...Object.fromEntries(commanded) } }),
    ...(keep.length > 0 && { kept: keep }),
  };
  const messages = due.map(({ part, next }) => `${MESSAGES[next?.step ?? 'begin']}, on the ${part} port`);
  const message = messages.length > 0 ? messages.join('; ') : 'the state of the CA bundles is recorded';
  const steps = due.some(({ next }) => next?.step === 'widen' || next?.step === 'narrow');
  return {
    message,
    latch: { trust },
    ...(steps && { event: { type: 'Normal', reason: ROTATING, note: message } as const }),
  };
}

function renewCABundle(o: Observed): Contributed {
  const { trust } = bundleLatch(o);
  const before = o.cluster.status?.trust;
  const changed = ETCD_PORTS.some((part) => trust?.[part] !== undefined && trust[part] !== before?.[part]);
  return !hasToken(o) || !changed || !trust
    ? undefined
    : { message: 'the CA bundle for the first member has changed', latch: { trust } };
}

/** A previous CA bundle is deleted when no Pod mounts it any more. */
export function discardCABundles(o: Observed): Decided {
  // A user may have put the previous CA back: then its bundle is recorded again in the same plan, and not deleted.
  if (unreadableSecrets(o) !== undefined || recordCABundle(o) !== undefined) return undefined;
  const used = o.members.flatMap((m) => ETCD_PORTS.flatMap((part) => bundleOf(o, m, part) ?? []));
  const over = o.certificates.kept.filter((secret) => !used.includes(secret));
  const running = o.members.every((m) => m.pod.is === 'present');
  if (over.length === 0 || !running) return undefined;
  return {
    message: `no member uses the previous CA bundle any more: Secret ${over.join(', ')} is deleted`,
    steps: over.map((target) => ({
      do: 'call',
      call: { is: 'secret', name: 'deleteCABundle', target, cluster: identity(o.cluster) },
      retryMs: MANAGED_SECRET_RETRY_MS,
    })),
  };
}
