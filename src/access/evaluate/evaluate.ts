/** What the Secrets of a cluster are good for, and what is to be done about them. Pure: Secrets and the time come in. */

import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import { type Part, ROTATE_ANNOTATION, trustName } from '../../api/names.ts';
import {
  type CertificateNeed,
  certificatesOf,
  partOf,
  readsTrust,
  writtenFor,
} from '../../domain/certificate-requirements.ts';
import type { Secret } from '../../gen/kube.ts';
import { CERT, KEY } from '../../pki/examine.ts';
import { certificatesIn } from '../../pki/pem.ts';
import { type Authority, authoritiesOf, authorityView, isCommanded, targetOf, trustedFor } from './ca.ts';
import { contains, recordedTrust, type Trust, trustIn } from './ca-bundle.ts';
import { withoutStrangers } from './foreign-secrets.ts';
import { issuedOf } from './managed-certificates.ts';
import type { Mounted } from './mounts.ts';
import { given, mayExchange, memberNeed, reachedAt, type Side, sideOf, unexchanged, vouched } from './port-trust.ts';
import {
  chainIn,
  leafIn,
  ours,
  pairIn,
  type Secrets,
  type Surroundings,
  shownIn,
  textOf,
  type World,
} from './secret-set.ts';
import { givenOf, targetIn } from './user-certificates.ts';
import type { AuthorityView, BundleView, CertificatesView, CertificateView, TrustView } from './view.ts';

export interface Material {
  readonly ca: string;
  readonly cert?: string;
  readonly key?: string;
}

export interface Judged {
  readonly view: CertificatesView;
  /** Whom the operator trusts, and what it shows. `undefined` when it cannot connect. */
  readonly material: Material | undefined;
  /** For each port, the fingerprint of what members have mounted, and who vouches for what they show. */
  readonly shows: Partial<Readonly<Record<Part, { readonly print: string; readonly ca: string }>>>;
  /** For each port, what those get that start now. */
  readonly given: Partial<Readonly<Record<Part, string>>>;
  /** By the name of a Secret, whom it says to trust. */
  readonly bundles: ReadonlyMap<string, string>;
}

/** Every Secret that is to be looked at, or those for one port only. */
export function secretNames(cluster: EtcdCluster, mounted: Mounted, only?: Part): readonly string[] {
  const { metadata, status } = cluster;
  const needs = certificatesOf(cluster).filter(({ role }) => only === undefined || partOf(role) === only);
  const parts = [...new Set(needs.map(({ role }) => partOf(role)))];
  return [
    ...new Set([
      ...needs.flatMap((need) =>
        [need.from === 'operator' ? need.authority : need.secret, writtenFor(need) ?? []].flat(),
      ),
      ...parts.flatMap((part) => {
        const digests = [recordedTrust(cluster, part), status?.trust?.assumed?.[part]];
        const names = digests.flatMap((d) => (d === undefined ? [] : [trustName(metadata.name ?? '', part, d)]));
        return readsTrust(cluster, part) ? [...names, ...mounted.bundles[part]] : [];
      }),
      ...(only === undefined ? (status?.trust?.kept ?? []) : []),
    ]),
  ];
}

export function judge(cluster: EtcdCluster, found: Secrets, around: Surroundings): Judged {
  const needs = certificatesOf(cluster);
  const { secrets, named } = withoutStrangers(needs, found);
  const world = { cluster, secrets, around };
  const authorities = authoritiesOf(world, needs);
  const parts = [...new Set(needs.map(({ role }) => partOf(role)))];
  const trusted = (part: Part) => authorities.filter((a) => a.part === part).flatMap(trustedFor);
  const sides = new Map(
    parts.map((part) => [part, sideOf(world, part, target(world, part, authorities), trusted(part))] as const),
  );
  const sideAt = (part: Part): Side => sides.get(part) ?? sideOf(world, part, undefined);
  const views = authorities.map((a) => authorityView(world, a, sideAt(a.part)));
  const server = needs.find(({ role }) => role === 'server')?.secret ?? '';
  const certificateOf = (need: CertificateNeed): CertificateView => {
    const side = sideAt(partOf(need.role));
    if (need.from === 'user') return givenOf(world, need, side, server);
    const i = authorities.findIndex(({ secret }) => secret === need.authority);
    const none = { certificate: undefined };
    return issuedOf(world, need, side, authorities[i] ?? none, views[i] as AuthorityView);
  };
  const certificates = needs.map(certificateOf).map((view) => ({ ...view, findings: view.findings.map(named) }));
  const all = [...sides.values()];
  const wanted = all.flatMap((side) => bundlesOf(world, side, certificates));
  const bundles = wanted.map(({ view }) => view);
  return {
    view: {
      authorities: views,
      certificates,
      bundles,
      trusts: all.map((side) => trustView(world, side, certificates, bundles, views)),
      kept: (cluster.status?.trust?.kept ?? []).filter((name) => ours(world, name).secret !== undefined),
    },
    material: sides.has('client') ? materialOf(world, sideAt('client')) : undefined,
    shows: Object.fromEntries(all.flatMap((side) => showsOf(world, side))),
    given: Object.fromEntries(all.flatMap((side) => (given(side) ? [[side.part, given(side)?.text ?? '']] : []))),
    bundles: new Map(wanted.map(({ view, text }) => [view.secret, text])),
  };
}

function target(world: World, part: Part, authorities: readonly Authority[]): Trust | undefined {
  const authority = authorities.find((a) => a.part === part);
  if (authority) return targetOf(authority);
  const need = memberNeed(world, part);
  return need?.from === 'user' ? targetIn(world, need) : undefined;
}

type Next = NonNullable<TrustView['next']> & { readonly trust: Trust };

/** What is to be recorded next, once its Secret is there. */
function nextOf(world: World, side: Side, certificates: readonly CertificateView[]): Next | undefined {
  const { part, begun, recorded, lost, target: to } = side;
  const next = (step: Next['step'], trust: Trust | undefined): Next | undefined =>
    trust && { step, trust, digest: trust.digest };
  if (!begun) return next('begin', to);
  if (recordedTrust(world.cluster, part) === undefined) return next('adopt', recorded ?? to);
  if (lost || !recorded || !to) return undefined;
  if (!contains(recorded, to)) return next('widen', trustIn(recorded.text, to.text));
  const written = certificates.every(({ need, todo }) => partOf(need.role) !== part || todo === undefined);
  const over = written && unexchanged(world, side).length === 0 && mayExchange(world, side);
  return recorded.digest !== to.digest && over ? next('narrow', to) : undefined;
}

interface Bundle {
  readonly view: BundleView;
  readonly text: string;
}

/** Only members mount them: where they read no trust, there are none. */
function bundlesOf(world: World, side: Side, certificates: readonly CertificateView[]): readonly Bundle[] {
  if (!side.atStart) return [];
  const { part } = side;
  const name = (digest: string): string => trustName(world.cluster.metadata.name ?? '', part, digest);
  const next = nextOf(world, side, certificates)?.trust;
  const trusts = [side.begun ? side.recorded : undefined, next].filter((trust) => trust !== undefined);
  const digest = recordedTrust(world.cluster, part);
  const lost = side.lost && digest !== undefined ? [{ secret: name(digest), part, is: 'trustLost' } as const] : [];
  return [
    ...lost.map(({ secret, is }) => ({ view: { secret, part, findings: [{ is, secret }] }, text: '' })),
    ...[...new Map(trusts.map((trust) => [trust.digest, trust])).values()].map(({ digest: of, text }) => {
      const { secret, findings } = ours(world, name(of));
      const absent = secret === undefined && findings.length === 0;
      return { view: { secret: name(of), part, findings, ...(absent && { todo: 'bundle' as const }) }, text };
    }),
  ];
}

function trustView(
  world: World,
  side: Side,
  certificates: readonly CertificateView[],
  bundles: readonly BundleView[],
  authorities: readonly AuthorityView[],
): TrustView {
  const { part, atStart } = side;
  const next = nextOf(world, side, certificates);
  const ready = bundles.every((b) => b.part !== part || (b.todo === undefined && b.findings.length === 0));
  const reached = reachedAt(world, side);
  const begun = authorities.some((a) => a.part === part && a.successor === true) && isCommanded(world, part);
  const value = world.cluster.metadata.annotations?.[ROTATE_ANNOTATION];
  return {
    part,
    atStart,
    ...(side.recorded && { recorded: side.recorded.digest }),
    ...(side.target && { target: side.target.digest }),
    ...(next && ready && { next: { step: next.step, digest: next.digest } }),
    trusted: side.recorded !== undefined && side.target !== undefined && contains(side.recorded, side.target),
    unexchanged: unexchanged(world, side),
    ...(reached !== undefined && { reachedAt: reached }),
    ...(begun && value !== undefined && { commanded: value }),
  };
}

/**
 * Where clients must show a certificate and that of the operator is missing, wrong, or not taken by all members yet, it shows
 * the one of the members: otherwise it could not look after a cluster that runs, because of a Secret that the cluster does not need.
 */
function materialOf(world: World, side: Side): Material | undefined {
  const ca = (given(side) ?? side.target)?.text ?? '';
  if (certificatesIn(ca).length === 0) return undefined;
  const needs = certificatesOf(world.cluster);
  const own = needs.find(({ role }) => role === 'operator');
  const server = needs.find(({ role }) => role === 'server');
  if (!own || !server) return { ca };
  const candidates = [
    shownIn(world, own),
    ...(own.from === 'user' ? [world.secrets.get(own.secret)] : []),
    shownIn(world, server),
  ];
  const shown = candidates.find((secret) => isShowable(world, side, secret));
  return shown ? { ca, cert: textOf(shown, CERT), key: textOf(shown, KEY) } : { ca };
}

const isShowable = (world: World, side: Side, secret: Secret | undefined): boolean => {
  const leaf = pairIn(secret);
  return leaf !== undefined && leaf.validToDate.getTime() > world.around.now && vouched(side, chainIn(secret));
};

function showsOf(
  world: World,
  side: Side,
): readonly (readonly [Part, { readonly print: string; readonly ca: string }])[] {
  const need = memberNeed(world, side.part);
  const print = need && leafIn(shownIn(world, need))?.fingerprint256;
  return print === undefined ? [] : [[side.part, { print, ca: given(side)?.text ?? '' }]];
}
