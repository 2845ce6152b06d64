/**
 * Whom the members trust on one of their ports, now and soon. An authority is exchanged in three steps: members come to trust
 * the old and the new one, then certificates are exchanged, then members trust the new one only. Each follows from facts.
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
import { accepts, type CABundle, caBundleIn, recordedDigest } from './ca-bundle.ts';
import { chainIn, isBootstrapped, ours, type SecretSet, servedSecret, textOf, writtenAt } from './secret-set.ts';

export interface PortTrust {
  readonly part: EtcdPortName;
  /** Members read it when they start. */
  readonly loadedAtStart: boolean;
  readonly bootstrapped: boolean;
  /** What members get that start from now on, if that was recorded and can still be read. */
  readonly currentBundle: CABundle | undefined;
  /** It was recorded, and nobody knows any more what it was. */
  readonly lost: boolean;
  /** Where all of this is to lead; `undefined` as long as what it would come from is missing or wrong. */
  readonly targetBundle: CABundle | undefined;
  /** What members that run have started with. One that cannot be read vouches for nothing. */
  readonly mountedBundles: readonly (CABundle | undefined)[];
}

const bundleText = (world: SecretSet, name: string): string => textOf(ours(world, name).secret, CA);

export const needsOf = (world: SecretSet, part: EtcdPortName): readonly CertificateRequirement[] =>
  certificatesOf(world.cluster).filter(({ role }) => portOf(role) === part);
/** What members show on this port. */
export const memberNeed = (world: SecretSet, part: EtcdPortName): CertificateRequirement | undefined =>
  needsOf(world, part).find(({ role }) => role === 'server' || role === 'peer');
const mountOf = (world: SecretSet, part: EtcdPortName): string => {
  const need = memberNeed(world, part);
  return (need && writtenFor(need)) ?? '';
};

/** `others` may be what was recorded: in the middle of a rotation, an authority of the operator's and its successor are both known. */
export function portTrustOf(
  world: SecretSet,
  part: EtcdPortName,
  target: CABundle | undefined,
  others: readonly (CABundle | undefined)[] = [],
): PortTrust {
  const { metadata, status } = world.cluster;
  const name = metadata.name ?? '';
  const begun = isBootstrapped(world);
  const atStart = loadsBundleAtStart(world.cluster, part);
  const digest = begun ? recordedDigest(world.cluster, part) : undefined;
  const copied = caBundleIn(textOf(ours(world, mountOf(world, part)).secret, CA));
  const known = (of: string): CABundle | undefined =>
    [caBundleIn(bundleText(world, trustName(name, part, of))), copied, target, ...others].find(
      (trust) => trust?.digest === of,
    );
  // Of a cluster of an earlier operator, what was copied first counts until it is recorded.
  const recorded = digest === undefined ? (begun ? copied : undefined) : known(digest);
  const mounted = atStart ? world.around.mounted.bundles[part] : [];
  const told = [digest, status?.trust?.assumed?.[part]].filter((d) => d !== undefined);
  const heldAs = (bundle: string): CABundle | undefined => {
    const trust = told.map(known).find((t) => t && trustName(name, part, t.digest) === bundle);
    const read = trust ?? caBundleIn(bundleText(world, bundle));
    return read && trustName(name, part, read.digest) === bundle ? read : undefined;
  };
  return {
    part,
    loadedAtStart: atStart,
    bootstrapped: begun,
    currentBundle: recorded,
    lost: digest !== undefined && !recorded,
    targetBundle: target,
    mountedBundles: mounted.map(heldAs),
  };
}

/** What those get that start now, and what clients are told to trust. */
export const activeBundle = ({
  bootstrapped: begun,
  currentBundle: recorded,
  lost,
  targetBundle: target,
}: PortTrust): CABundle | undefined => (begun ? (recorded ?? (lost ? undefined : target)) : target);

/** Whether everybody takes this certificate: those that run, and those that start. */
export function acceptedByAll(side: PortTrust, chain: readonly X509Certificate[]): boolean {
  const now = activeBundle(side);
  return (
    now !== undefined && [now, ...side.mountedBundles].every((trust) => trust !== undefined && accepts(trust, chain))
  );
}

/** What applications take their trust and their certificate from. */
const published = (world: SecretSet, part: EtcdPortName): readonly string[] =>
  part === 'peer'
    ? []
    : needsOf(world, part).flatMap((need) => (need.role === 'operator' ? [] : (writtenFor(need) ?? [])));

/**
 * When everybody who connects to this port has what is in the Secrets; `undefined` when they do not say it yet. Peers connect
 * with what they mount themselves, which they are asked to show.
 */
export function reachedAt(world: SecretSet, side: PortTrust): number | undefined {
  const names = published(world, side.part);
  if (names.some((name) => caBundleIn(textOf(ours(world, name).secret, CA))?.digest !== activeBundle(side)?.digest))
    return undefined;
  const times = names.map((name) => writtenAt(ours(world, name).secret) + world.around.graceMs);
  return Math.max(0, ...times);
}

/** Whether something may be shown that only the new authority vouches for. */
export function mayReissue(world: SecretSet, side: PortTrust): boolean {
  const at = reachedAt(world, side);
  return (!side.loadedAtStart || world.around.mounted.complete) && at !== undefined && world.around.now >= at;
}

/** Secrets with what is shown on this port and would not be taken if only the target were trusted. */
export const notReissued = (world: SecretSet, { part, targetBundle: target }: PortTrust): readonly string[] =>
  needsOf(world, part)
    .filter((need) => !target || !accepts(target, chainIn(servedSecret(world, need))))
    .map(({ secret }) => secret);
