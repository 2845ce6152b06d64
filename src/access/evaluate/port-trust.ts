/**
 * The CA bundles of one port, current and target. A CA rotation has three steps; the observed Secrets, Pods and recorded
 * digests (`status.trust`) decide which one is next, so the operator may be restarted at any time.
 *
 *   step               1: widen                2: reissue               3: narrow
 *   members trust      old --> old+new         old+new                  old+new --> new
 *   members serve      signed by old           old --> signed by new    signed by new
 *   members restart    one by one              no                       one by one
 *   ends when          all members trust       all members serve the    no Pod mounts a
 *                      both, clients had       new certificates,        previous bundle
 *                      `graceMs` to get both   clients had `graceMs`
 *
 * When every CA of the recorded bundle has expired, no connection depends on it any more: the target replaces it at once, and the
 * certificates with it.
 *
 * A port whose bundle etcd does not load at start (`loadedAtStart: false`) needs no restarts.
 */
import type { X509Certificate } from 'node:crypto';
import { type EtcdPortName, trustName } from '../../api/names.ts';
import {
  type CertificateRequirement,
  certificatesOf,
  loadsBundleAtStart,
  portOf,
  writtenFor,
} from '../../domain/certificate-requirements.ts';
import { CA } from '../../pki/examine.ts';
import { accepts, type CABundle, caBundleIn, isExpired, recordedDigest } from './ca-bundle.ts';
import { chainIn, isBootstrapped, ours, type SecretSet, servedSecret, textOf, writtenAt } from './secret-set.ts';

export interface PortTrust {
  readonly part: EtcdPortName;
  /** etcd loads the CA bundle of this port only when it starts. */
  readonly loadedAtStart: boolean;
  readonly bootstrapped: boolean;
  /** The bundle of members that start now, if it was recorded and can still be read. */
  readonly currentBundle: CABundle | undefined;
  /** Its digest was recorded, and no Secret has that bundle any more. */
  readonly lost: boolean;
  /** The bundle after the CA rotation; `undefined` while its source Secret is missing or invalid. */
  readonly targetBundle: CABundle | undefined;
  /**
   * The bundles that running members have loaded; `undefined` for one that cannot be read, which then accepts nothing. Without
   * expired ones: members that have loaded them refuse every certificate, so no certificate has to wait for them.
   */
  readonly mountedBundles: readonly (CABundle | undefined)[];
  /** The Secrets of the expired ones. */
  readonly expiredBundles: readonly string[];
}

const bundleText = (world: SecretSet, name: string): string => textOf(ours(world, name).secret, CA);

export const needsOf = (world: SecretSet, part: EtcdPortName): readonly CertificateRequirement[] =>
  certificatesOf(world.cluster).filter(({ role }) => portOf(role) === part);
/** The certificate that members serve on this port. */
export const memberNeed = (world: SecretSet, part: EtcdPortName): CertificateRequirement | undefined =>
  needsOf(world, part).find(({ role }) => role === 'server' || role === 'peer');
const mountOf = (world: SecretSet, part: EtcdPortName): string => {
  const need = memberNeed(world, part);
  return (need && writtenFor(need)) ?? '';
};

/** `others` are candidates for the recorded digest: during a rotation, the bundles of the managed CA with and without the next one. */
export function portTrustOf(
  world: SecretSet,
  part: EtcdPortName,
  target: CABundle | undefined,
  others: readonly (CABundle | undefined)[] = [],
): PortTrust {
  const { metadata, status } = world.cluster;
  const name = metadata.name ?? '';
  const bootstrapped = isBootstrapped(world);
  const atStart = loadsBundleAtStart(world.cluster, part);
  const digest = bootstrapped ? recordedDigest(world.cluster, part) : undefined;
  const copied = caBundleIn(textOf(ours(world, mountOf(world, part)).secret, CA));
  // Without a Secret of its own, a recorded bundle with both CAs is in no Secret until it is published.
  const both = copied && target && caBundleIn(copied.text, target.text);
  const known = (of: string): CABundle | undefined =>
    [caBundleIn(bundleText(world, trustName(name, part, of))), copied, target, both, ...others].find(
      (trust) => trust?.digest === of,
    );
  // For a cluster of an earlier operator, the mounted Secret is the bundle until a digest is recorded. Where only clients use the
  // bundle, it is what they were given: a user may change the CA again before the recorded one is published.
  const isPublished = digest === undefined ? bootstrapped : !atStart;
  const recorded = (digest === undefined ? undefined : known(digest)) ?? (isPublished ? copied : undefined);
  const mounted = atStart ? world.around.mounted.bundles[part] : [];
  const digests = [digest, status?.trust?.assumed?.[part]].filter((d) => d !== undefined);
  const heldAs = (bundle: string): CABundle | undefined => {
    const trust = digests.map(known).find((t) => t && trustName(name, part, t.digest) === bundle);
    const read = trust ?? caBundleIn(bundleText(world, bundle));
    return read && trustName(name, part, read.digest) === bundle ? read : undefined;
  };
  const isOver = (trust: CABundle | undefined): boolean => trust !== undefined && isExpired(trust, world.around.now);
  const loaded = mounted.map((secret) => ({ secret, trust: heldAs(secret) }));
  return {
    part,
    loadedAtStart: atStart,
    bootstrapped,
    currentBundle: recorded,
    lost: digest !== undefined && !recorded,
    targetBundle: target,
    mountedBundles: loaded.filter(({ trust }) => !isOver(trust)).map(({ trust }) => trust),
    expiredBundles: loaded.filter(({ trust }) => isOver(trust)).map(({ secret }) => secret),
  };
}

/** The bundle of members that start now, which clients get as well. */
export const activeBundle = ({ bootstrapped, currentBundle, lost, targetBundle }: PortTrust): CABundle | undefined =>
  bootstrapped ? (currentBundle ?? (lost ? undefined : targetBundle)) : targetBundle;

/** Whether every member accepts this certificate: those that run, and those that start now. */
export function acceptedByAll(side: PortTrust, chain: readonly X509Certificate[]): boolean {
  const now = activeBundle(side);
  return (
    now !== undefined && [now, ...side.mountedBundles].every((trust) => trust !== undefined && accepts(trust, chain))
  );
}

/** The Secrets that client applications mount. */
const published = (world: SecretSet, part: EtcdPortName): readonly string[] =>
  part === 'peer'
    ? []
    : needsOf(world, part).flatMap((need) => (need.role === 'operator' ? [] : (writtenFor(need) ?? [])));

/**
 * When the clients of this port have the active bundle: `graceMs` after its Secrets were written; `undefined` while they have another
 * one. Peers are not waited for: the operator observes in a handshake what they serve.
 */
export function reachedAt(world: SecretSet, side: PortTrust): number | undefined {
  const names = published(world, side.part);
  if (names.some((name) => caBundleIn(textOf(ours(world, name).secret, CA))?.digest !== activeBundle(side)?.digest))
    return undefined;
  const times = names.map((name) => writtenAt(ours(world, name).secret) + world.around.graceMs);
  return Math.max(0, ...times);
}

/** Whether members may serve a certificate that only the new CA has signed. */
export function mayReissue(world: SecretSet, side: PortTrust): boolean {
  const at = reachedAt(world, side);
  return (!side.loadedAtStart || world.around.mounted.complete) && at !== undefined && world.around.now >= at;
}

/** Secrets with certificates of this port that would be refused if members trusted the target only. */
export const notReissued = (world: SecretSet, { part, targetBundle: target }: PortTrust): readonly string[] =>
  needsOf(world, part)
    // Without a certificate for applications, because a foreign object has its name, there is none to wait for.
    .filter((need) => need.role !== 'application' || servedSecret(world, need) !== undefined)
    .filter((need) => !target || !accepts(target, chainIn(servedSecret(world, need))))
    .map(({ secret }) => secret);
