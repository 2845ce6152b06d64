/** Rules of a CA rotation: a CA bundle is recorded before a member starts with it, and deleted when none uses it. */

import type { PortTrustView } from '../../../../access/evaluate/view.ts';
import type { EtcdClusterStatus } from '../../../../api/etcd-cluster-status.ts';
import { type EtcdPortName, requestedRotation, trustName } from '../../../../api/names.ts';
import { ETCD_PORTS } from '../../../../domain/certificate-requirements.ts';
import { identity } from '../../../../domain/ownership.ts';
import { MANAGED_SECRET_RETRY_MS } from '../../../../domain/timing.ts';
import { independent } from '../../../../runtime/plan.ts';
import { isSettled, mayNarrow } from '../ca-rotation.ts';
import { dueSecrets } from '../due.ts';
import { type Contributed, type CredentialsObserved, isUnread } from '../observed.ts';
import { type MountingPod, ROTATING } from '../state.ts';

type Trust = NonNullable<EtcdClusterStatus['trust']>;

const MESSAGES = {
  begin: 'the CA bundle is recorded',
  adopt: 'the CA bundle is recorded',
  widen: 'CA rotation, step 1 of 3: the new CA is added to the CA bundle',
  narrow: 'CA rotation, step 3 of 3: the old CA is removed from the CA bundle',
} as const;

/**
 * Only at rest: a member that joins or is replaced has not served its certificate yet. Not while Secrets are due, which are decided by
 * the wider bundle. And on both ports together, or every member would restart once more.
 */
const mayNarrowAll = (c: CredentialsObserved): boolean =>
  c.atRest && dueSecrets(c).length === 0 && c.certificates.trusts.every((t) => isSettled(t) || mayNarrow(c, t));

const namesNoBundle = ({ tls }: MountingPod, part: EtcdPortName): boolean =>
  tls?.[part] !== undefined && tls[part].bundle === undefined;

/** For Pods of an earlier operator, which name no bundle Secret, the digest is recorded before it can change. */
function assumedFor(
  c: CredentialsObserved,
  { part, loadedAtStart: atStart, recorded, next }: PortTrustView,
): readonly (readonly [EtcdPortName, string])[] {
  const known = c.cluster.status?.trust?.[part] === undefined ? next?.digest : recorded;
  const isAssumed = atStart && c.pods.some((pod) => namesNoBundle(pod, part));
  return isAssumed && known !== undefined ? [[part, known]] : [];
}

/** A bundle is widened at any time. */
export function recordCABundle(c: CredentialsObserved): Contributed {
  if (isUnread(c)) return undefined; // the CA may have changed since it was read
  if (!c.formed) return recordFirst(c);
  if (c.replicas === 0) return undefined;
  const widened = record(c, (t) => t.next !== undefined && t.next.step !== 'narrow');
  return widened ?? (mayNarrowAll(c) ? record(c, (t) => t.next !== undefined) : undefined);
}

function record(c: CredentialsObserved, isDue: (t: PortTrustView) => boolean): Contributed {
  const before: Trust = c.cluster.status?.trust ?? {};
  const { trusts, kept } = c.certificates;
  const { name } = identity(c.cluster);
  const due = trusts.filter(isDue);
  const assumed = trusts.flatMap((t) => assumedFor(c, t));
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

/** Before the first member has started, a user may change a Secret: it starts with the new contents. Other members get another bundle only by a CA rotation. */
function recordFirst(c: CredentialsObserved): Contributed {
  const { status, metadata } = c.cluster;
  const begin = c.certificates.trusts.flatMap(({ part, next }) =>
    next?.step === 'begin' ? [[part, next.digest] as const] : [],
  );
  if (!c.hasToken || begin.every(([part, digest]) => digest === status?.trust?.[part])) return undefined;
  const rotation = requestedRotation(metadata.annotations);
  const commanded = rotation !== undefined && {
    commanded: Object.fromEntries(begin.map(([part]) => [part, rotation])),
  };
  return {
    message: 'the CA bundle for the first member is recorded',
    latch: { trust: { ...Object.fromEntries(begin), ...commanded } },
  };
}

/** A previous CA bundle is deleted when no Pod mounts it any more. */
export function discardCABundles(c: CredentialsObserved): Contributed {
  // A user may have put the previous CA back: then its bundle is recorded again in the same plan, and not deleted.
  if (!c.atRest || isUnread(c) || recordCABundle(c) !== undefined) return undefined;
  const used = c.pods.flatMap((pod) => ETCD_PORTS.flatMap((part) => pod.tls?.[part]?.bundle ?? []));
  const over = c.certificates.kept.filter((secret) => !used.includes(secret));
  if (c.pods.some((pod) => pod.is === 'absent')) return undefined; // it may be about to start with a previous bundle
  return independent(
    `no member uses the previous CA bundle any more: Secret ${over.join(', ')} is deleted`,
    over.map((target) => ({
      do: 'call',
      call: { is: 'secret', name: 'deleteCABundle', target, cluster: identity(c.cluster) },
      retryMs: MANAGED_SECRET_RETRY_MS,
    })),
  );
}
