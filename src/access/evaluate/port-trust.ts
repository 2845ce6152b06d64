/**
 * Whom the members trust on one of their ports, now and soon. An authority is exchanged in three steps: members come to trust
 * the old and the new one, then certificates are exchanged, then members trust the new one only. Each follows from facts.
 */
import type { X509Certificate } from 'node:crypto';
import { type Part, trustName } from '../../api/names.ts';
import {
  type CertificateNeed,
  certificatesOf,
  partOf,
  readsTrust,
  writtenFor,
} from '../../domain/certificate-requirements.ts';
import { CA } from '../../pki/examine.ts';
import { recordedTrust, type Trust, trustIn, vouchesFor } from './ca-bundle.ts';
import { chainIn, isBegun, ours, shownIn, textOf, type World, writtenAt } from './secret-set.ts';

export interface Side {
  readonly part: Part;
  /** Members read it when they start. */
  readonly atStart: boolean;
  readonly begun: boolean;
  /** What members get that start from now on, if that was recorded and can still be read. */
  readonly recorded: Trust | undefined;
  /** It was recorded, and nobody knows any more what it was. */
  readonly lost: boolean;
  /** Where all of this is to lead; `undefined` as long as what it would come from is missing or wrong. */
  readonly target: Trust | undefined;
  /** What members that run have started with. One that cannot be read vouches for nothing. */
  readonly held: readonly (Trust | undefined)[];
}

const bundleText = (world: World, name: string): string => textOf(ours(world, name).secret, CA);

export const needsOf = (world: World, part: Part): readonly CertificateNeed[] =>
  certificatesOf(world.cluster).filter(({ role }) => partOf(role) === part);
/** What members show on this port. */
export const memberNeed = (world: World, part: Part): CertificateNeed | undefined =>
  needsOf(world, part).find(({ role }) => role === 'server' || role === 'peer');
const mountOf = (world: World, part: Part): string => {
  const need = memberNeed(world, part);
  return (need && writtenFor(need)) ?? '';
};

/** `others` may be what was recorded: in the middle of a rotation, an authority of the operator's and its successor are both known. */
export function sideOf(
  world: World,
  part: Part,
  target: Trust | undefined,
  others: readonly (Trust | undefined)[] = [],
): Side {
  const { metadata, status } = world.cluster;
  const name = metadata.name ?? '';
  const begun = isBegun(world);
  const atStart = readsTrust(world.cluster, part);
  const digest = begun ? recordedTrust(world.cluster, part) : undefined;
  const copied = trustIn(textOf(ours(world, mountOf(world, part)).secret, CA));
  const known = (of: string): Trust | undefined =>
    [trustIn(bundleText(world, trustName(name, part, of))), copied, target, ...others].find(
      (trust) => trust?.digest === of,
    );
  // Of a cluster of an earlier operator, what was copied first counts until it is recorded.
  const recorded = digest === undefined ? (begun ? copied : undefined) : known(digest);
  const mounted = atStart ? world.around.mounted.bundles[part] : [];
  const told = [digest, status?.trust?.assumed?.[part]].filter((d) => d !== undefined);
  const heldAs = (bundle: string): Trust | undefined => {
    const trust = told.map(known).find((t) => t && trustName(name, part, t.digest) === bundle);
    const read = trust ?? trustIn(bundleText(world, bundle));
    return read && trustName(name, part, read.digest) === bundle ? read : undefined;
  };
  return {
    part,
    atStart,
    begun,
    recorded,
    lost: digest !== undefined && !recorded,
    target,
    held: mounted.map(heldAs),
  };
}

/** What those get that start now, and what clients are told to trust. */
export const given = ({ begun, recorded, lost, target }: Side): Trust | undefined =>
  begun ? (recorded ?? (lost ? undefined : target)) : target;

/** Whether everybody takes this certificate: those that run, and those that start. */
export function vouched(side: Side, chain: readonly X509Certificate[]): boolean {
  const now = given(side);
  return now !== undefined && [now, ...side.held].every((trust) => trust !== undefined && vouchesFor(trust, chain));
}

/** What applications take their trust and their certificate from. */
const published = (world: World, part: Part): readonly string[] =>
  part === 'peer'
    ? []
    : needsOf(world, part).flatMap((need) => (need.role === 'operator' ? [] : (writtenFor(need) ?? [])));

/**
 * When everybody who connects to this port has what is in the Secrets; `undefined` when they do not say it yet. Peers connect
 * with what they mount themselves, which they are asked to show.
 */
export function reachedAt(world: World, side: Side): number | undefined {
  const names = published(world, side.part);
  if (names.some((name) => trustIn(textOf(ours(world, name).secret, CA))?.digest !== given(side)?.digest))
    return undefined;
  const times = names.map((name) => writtenAt(ours(world, name).secret) + world.around.graceMs);
  return Math.max(0, ...times);
}

/** Whether something may be shown that only the new authority vouches for. */
export function mayExchange(world: World, side: Side): boolean {
  const at = reachedAt(world, side);
  return (!side.atStart || world.around.mounted.complete) && at !== undefined && world.around.now >= at;
}

/** Secrets with what is shown on this port and would not be taken if only the target were trusted. */
export const unexchanged = (world: World, { part, target }: Side): readonly string[] =>
  needsOf(world, part)
    .filter((need) => !target || !vouchesFor(target, chainIn(shownIn(world, need))))
    .map(({ secret }) => secret);
