/** Rules that exchange an authority: what is recorded is durable before anybody starts on it, and members start one by one. */

import type { PortTrustView } from '../../../../access/evaluate/view.ts';
import type { EtcdClusterStatus } from '../../../../api/etcd-cluster-status.ts';
import { type EtcdPortName, ROLE_VOTER, trustName } from '../../../../api/names.ts';
import { ETCD_PORTS } from '../../../../domain/certificate-requirements.ts';
import { identity } from '../../../../domain/ownership.ts';
import { refTo } from '../../../../runtime/plan.ts';
import { type Decided, entryOf, isFormed, type MemberView, nameOf, type Observed } from '../../observed.ts';
import { drainingForMs, isInMemory, restarting, trafficPatch } from '../../rollout/restart.ts';
import { bundleOf, isSettled, mayNarrow, nextToRestart, ROTATING, rotationBlockedBy } from '../ca-rotation.ts';
import { bundleLatch, canMount, unreadableSecrets } from '../certificates.ts';

type Trust = NonNullable<EtcdClusterStatus['trust']>;

const RETRY_MS = 1_000;

const WORDS = {
  begin: 'whom members trust is recorded',
  adopt: 'whom members trust is recorded',
  widen: 'step 1 of 3: members come to trust another authority besides that of before',
  narrow: 'step 3 of 3: members come to trust the new authority only',
} as const;

/** What is trusted on both ports is narrowed together, or every member would start once more. */
const isDue = (o: Observed, { next }: PortTrustView): boolean =>
  next !== undefined && (next.step !== 'narrow' || o.certificates.trusts.every((t) => isSettled(t) || mayNarrow(o, t)));

const isSilent = (m: MemberView, part: EtcdPortName): boolean =>
  m.pod.is === 'present' && m.pod.tls?.[part] !== undefined && m.pod.tls[part].bundle === undefined;

/** What those trust whose Pods do not say it is noted down before it can change. */
function assumedFor(
  o: Observed,
  { part, loadedAtStart: atStart, recorded, next }: PortTrustView,
): readonly (readonly [EtcdPortName, string])[] {
  const known = o.cluster.status?.trust?.[part] === undefined ? next?.digest : recorded;
  const unsaid = o.cluster.status?.trust?.assumed?.[part] === undefined && o.members.some((m) => isSilent(m, part));
  return atStart && unsaid && known !== undefined ? [[part, known]] : [];
}

export function recordCABundle(o: Observed): Decided {
  if (unreadableSecrets(o) !== undefined) return undefined; // the CA may have changed since it was read
  if (!isFormed(o)) return undefined;
  const before: Trust = o.cluster.status?.trust ?? {};
  const { trusts, kept } = o.certificates;
  const { name } = identity(o.cluster);
  const due = trusts.filter((t) => isDue(o, t));
  const assumed = trusts.flatMap((t) => assumedFor(o, t));
  const commanded = trusts.flatMap(({ part, requestedRotation: value }) =>
    value === undefined ? [] : [[part, value] as const],
  );
  const gone = (before.kept ?? []).filter((secret) => !kept.includes(secret));
  if (due.length + assumed.length + commanded.length + gone.length === 0) return undefined;
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
  const said = due.map(({ part, next }) => `${WORDS[next?.step ?? 'begin']}, on the ${part} port`);
  const why = said.length > 0 ? said.join('; ') : 'what is known about trust is recorded';
  const steps = due.some(({ next }) => next?.step === 'widen' || next?.step === 'narrow');
  return {
    message: why,
    latch: { trust },
    ...(steps && { event: { type: 'Normal', reason: ROTATING, note: why } as const }),
  };
}

/** A Secret may be changed before the first member has started on it: it starts on what is there then. */
export function renewCABundle(o: Observed): Decided {
  if (unreadableSecrets(o) !== undefined) return undefined;
  const { trust } = bundleLatch(o);
  const before = o.cluster.status?.trust;
  const changed = ETCD_PORTS.some((part) => trust?.[part] !== undefined && trust[part] !== before?.[part]);
  return isFormed(o) || !changed || !trust
    ? undefined
    : { message: 'whom the first member trusts has changed', latch: { trust } };
}

/** Who is started again now. */
function restarted(o: Observed): MemberView | undefined {
  if (unreadableSecrets(o) !== undefined) return undefined; // whether its Secrets are still there to be mounted is not known
  const next = isFormed(o) && canMount(o) ? nextToRestart(o) : undefined;
  return next && rotationBlockedBy(o, next) === undefined ? next : undefined;
}

/** etcd reads whom it trusts when it starts: one after the other, each only when all others are back. */
export function restartForCABundle(o: Observed): Decided {
  const next = restarted(o);
  const entry = next && entryOf(o, next);
  if (!next || !entry) return undefined;
  const why = `${nameOf(next)} is started again, to trust what is recorded`;
  const what = isInMemory(next) ? { what: refTo('EtcdMember', next.object) } : {};
  return restarting(o, { m: next, entry, why, reason: ROTATING, ...what });
}

/** It stays after all, or has to wait until another is back: clients may come to it meanwhile. */
export function restoreTraffic(o: Observed): Decided {
  const next = restarted(o);
  const standing = o.members.filter((m) => drainingForMs(o, m) !== undefined && m !== next);
  if (standing.length === 0) return undefined;
  const why = `${standing.map(nameOf).join(', ')} is not started again now: clients may reach it`;
  return { message: why, steps: standing.map((m) => trafficPatch(m, null, ROLE_VOTER)) };
}

/** Trust of before goes when no member has it any more. */
export function discardCABundles(o: Observed): Decided {
  if (unreadableSecrets(o) !== undefined) return undefined;
  const used = o.members.flatMap((m) => ETCD_PORTS.flatMap((part) => bundleOf(o, m, part) ?? []));
  const over = o.certificates.kept.filter((secret) => !used.includes(secret));
  const running = o.members.every((m) => m.pod.is === 'present');
  if (over.length === 0 || !running) return undefined;
  return {
    message: `nobody has the trust of before any more: Secret ${over.join(', ')}`,
    steps: over.map((target) => ({
      do: 'call',
      call: { is: 'secret', name: 'discard', target, cluster: identity(o.cluster) },
      retryMs: RETRY_MS,
    })),
  };
}
