/** Rules of a CA rotation: a CA bundle is recorded before a member starts with it, and deleted when none uses it. */

import type { PortTrustView } from '../../../../access/evaluate/view.ts';
import type { EtcdClusterStatus } from '../../../../api/etcd-cluster-status.ts';
import { type EtcdPortName, requestedRotation, trustName } from '../../../../api/names.ts';
import { ETCD_PORTS } from '../../../../domain/certificate-requirements.ts';
import { identity } from '../../../../domain/ownership.ts';
import { sameJson } from '../../../../lib/merge-patch.ts';
import { independent } from '../../../../runtime/plan.ts';
import { isSettled, mayNarrow } from '../ca-rotation.ts';
import { dueSecrets, secretStep } from '../due.ts';
import { type Contributed, type CredentialsObserved, isUnread } from '../observed.ts';
import { ROTATING } from '../state.ts';

type Trust = NonNullable<EtcdClusterStatus['trust']>;

const MESSAGES = {
  begin: 'the CA bundle is recorded',
  adopt: 'the CA bundle is recorded',
  widen: 'CA rotation, step 1 of 3: the new CA is added to the CA bundle',
  replace: 'every CA of the CA bundle has expired: it is replaced by the new CA bundle',
  narrow: 'CA rotation, step 3 of 3: the old CA is removed from the CA bundle',
} as const;

/**
 * Only at rest: a member that joins or is replaced has not served its certificate yet. Not while Secrets are due, which are decided by
 * the wider bundle. And on both ports together, or every member would restart once more.
 */
const mayNarrowAll = (c: CredentialsObserved): boolean =>
  c.atRest && dueSecrets(c).length === 0 && c.certificates.trusts.every((t) => isSettled(t) || mayNarrow(c, t));

type ByPort = Partial<Record<EtcdPortName, string>>;

/** Of the ports that have the value. */
const byPort = (trusts: readonly PortTrustView[], value: (t: PortTrustView) => string | undefined): ByPort =>
  Object.fromEntries(trusts.map((t) => [t.part, value(t)] as const).filter(([, each]) => each !== undefined));

const bundleNames = ({ cluster }: CredentialsObserved, trust: ByPort, part: EtcdPortName): readonly string[] =>
  trust[part] === undefined ? [] : [trustName(identity(cluster).name, part, trust[part])];

/** For Pods of an earlier operator, which name no bundle Secret, the digest is recorded before it can change. */
function assumedFor(c: CredentialsObserved, { part, loadedAtStart, recorded, next }: PortTrustView) {
  const isUnknown = c.pods.some(({ tls }) => tls?.[part] !== undefined && tls[part].bundle === undefined);
  const known = c.cluster.status?.trust?.[part] === undefined ? next?.digest : recorded;
  return loadedAtStart && isUnknown ? known : undefined;
}

/** A bundle is widened at any time, and so is one replaced that has expired. */
export function recordCABundle(c: CredentialsObserved): Contributed {
  if (isUnread(c)) return undefined; // the CA may have changed since it was read
  if (!c.formed) return recordFirst(c);
  if (c.replicas === 0) return undefined;
  const widened = record(c, (t) => t.next !== undefined && t.next.step !== 'narrow');
  return widened ?? (mayNarrowAll(c) ? record(c, (t) => t.next !== undefined) : undefined);
}

/** Secrets of earlier bundles that Pods may still mount, when these ports get another one. */
function keptBundles(c: CredentialsObserved, now: ByPort, changed: readonly PortTrustView[]): string[] {
  const before: Trust = c.cluster.status?.trust ?? {};
  const left = changed.flatMap((t) => (t.loadedAtStart ? bundleNames(c, before, t.part) : []));
  const used = ETCD_PORTS.flatMap((part) => bundleNames(c, now, part));
  return [...new Set([...c.certificates.kept, ...left])].filter((secret) => !used.includes(secret));
}

function record(c: CredentialsObserved, isDue: (t: PortTrustView) => boolean): Contributed {
  const before: Trust = c.cluster.status?.trust ?? {};
  const { trusts } = c.certificates;
  const due = trusts.filter(isDue);
  const now = { ...before, ...byPort(due, ({ next }) => next?.digest) };
  const assumed = { ...before.assumed, ...byPort(trusts, (t) => assumedFor(c, t)) };
  const commanded = { ...before.commanded, ...byPort(trusts, (t) => t.requestedRotation) };
  const keep = keptBundles(c, now, due);
  const { kept: _, ...rest } = now;
  const trust: Trust = {
    ...rest,
    ...(Object.keys(assumed).length > 0 && { assumed }),
    ...(Object.keys(commanded).length > 0 && { commanded }),
    ...(keep.length > 0 && { kept: keep }),
  };
  if (sameJson(trust, before)) return undefined;
  const messages = due.map(({ part, next }) => `${MESSAGES[next?.step ?? 'begin']}, on the ${part} port`);
  const message = messages.length > 0 ? messages.join('; ') : 'the state of the CA bundles is recorded';
  const steps = due.some(({ next }) => next !== undefined && ['widen', 'replace', 'narrow'].includes(next.step));
  return {
    message,
    latch: { trust },
    ...(steps && { event: { type: 'Normal', reason: ROTATING, note: message } as const }),
  };
}

/** Before the first member has started, a user may change a Secret: it starts with the new contents. Other members get another bundle only by a CA rotation. */
function recordFirst(c: CredentialsObserved): Contributed {
  const { status, metadata } = c.cluster;
  const begin = byPort(c.certificates.trusts, ({ next }) => (next?.step === 'begin' ? next.digest : undefined));
  if (!c.hasToken || sameJson({ ...status?.trust }, { ...status?.trust, ...begin })) return undefined;
  const rotation = requestedRotation(metadata.annotations);
  const commanded = rotation !== undefined && {
    commanded: byPort(c.certificates.trusts, ({ part }) => begin[part] && rotation),
  };
  // A bundle that was recorded before the user changed the Secret is deleted when no Pod mounts it.
  const kept = keptBundles(c, begin, c.certificates.trusts);
  return {
    message: 'the CA bundle for the first member is recorded',
    latch: { trust: { ...begin, ...commanded, ...(kept.length > 0 && { kept }) } },
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
    over.map((secret) => secretStep(c, 'deleteCABundle', secret)),
  );
}
