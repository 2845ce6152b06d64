/** Evaluates the Secrets of a cluster, and which of them have to be written. Pure: Secrets and the time are arguments. */

import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import { type EtcdPortName, requestedRotation, trustName } from '../../api/names.ts';
import {
  type CertificateRequirement,
  certificatesOf,
  loadsBundleAtStart,
  portOf,
  writtenFor,
} from '../../domain/certificate-requirements.ts';
import type { Secret } from '../../gen/kube.ts';
import { present } from '../../lib/present.ts';
import { CERT, KEY } from '../../pki/examine.ts';
import { certificatesIn } from '../../pki/pem.ts';
import { caView, isRotationRequested, type ManagedCA, managedCAsOf, targetOf } from './ca.ts';
import { type CABundle, caBundleIn, contains, isExpired, recordedDigest } from './ca-bundle.ts';
import { ignoreForeignSecrets } from './foreign-secrets.ts';
import { managedCertificatesOf } from './managed-certificates.ts';
import type { Mounted } from './mounts.ts';
import {
  acceptedByAll,
  activeBundle,
  mayReissue,
  memberNeed,
  notReissued,
  type PortTrust,
  portTrustOf,
  reachedAt,
} from './port-trust.ts';
import {
  chainIn,
  type EvalContext,
  leafIn,
  ours,
  pairIn,
  type SecretSet,
  type Secrets,
  servedSecret,
  textOf,
} from './secret-set.ts';
import { targetIn, userCertificatesOf } from './user-certificates.ts';
import type { BundleView, CAView, CertificatesView, CertificateView, PortTrustView } from './view.ts';

export interface Material {
  readonly ca: string;
  readonly cert?: string;
  readonly key?: string;
}

type Served = { readonly print: string; readonly ca: string };

export interface Evaluation {
  readonly view: CertificatesView;
  /** The CA bundle and the client certificate of the operator. `undefined` when it cannot connect. */
  readonly material: Material | undefined;
  /** For each port, the fingerprint of the certificate that members mount, and the CA bundle that verifies it. */
  readonly serves: Partial<Readonly<Record<EtcdPortName, Served>>>;
  /** For each port, the CA bundle of members that start now. */
  readonly given: Partial<Readonly<Record<EtcdPortName, string>>>;
  /** By the name of a Secret, the CA bundle in it. */
  readonly bundles: ReadonlyMap<string, string>;
}

/** Every Secret that has to be read, or those for one port only. */
export function secretNames(cluster: EtcdCluster, mounted: Mounted, only?: EtcdPortName): readonly string[] {
  const { metadata, status } = cluster;
  const needs = certificatesOf(cluster).filter(({ role }) => only === undefined || portOf(role) === only);
  const parts = [...new Set(needs.map(({ role }) => portOf(role)))];
  return [
    ...new Set([
      ...needs.flatMap((need) =>
        [need.from === 'operator' ? need.caSecret : need.secret, writtenFor(need) ?? []].flat(),
      ),
      ...parts.flatMap((part) => {
        const digests = [recordedDigest(cluster, part), status?.trust?.assumed?.[part]];
        const names = digests.flatMap((d) => (d === undefined ? [] : [trustName(metadata.name ?? '', part, d)]));
        return loadsBundleAtStart(cluster, part) ? [...names, ...mounted.bundles[part]] : [];
      }),
      ...(only === undefined ? (status?.trust?.kept ?? []) : []),
    ]),
  ];
}

export function evaluate(cluster: EtcdCluster, found: Secrets, around: EvalContext): Evaluation {
  const needs = certificatesOf(cluster);
  const { secrets, named } = ignoreForeignSecrets(needs, found);
  const world = { cluster, secrets, around };
  const cas = managedCAsOf(world, needs);
  const parts = [...new Set(needs.map(({ role }) => portOf(role)))];
  const trusted = (part: EtcdPortName) => cas.filter((a) => a.part === part).flatMap(({ bundles }) => bundles);
  const sides = new Map(
    parts.map((part) => [part, portTrustOf(world, part, target(world, part, cas), trusted(part))] as const),
  );
  const sideAt = (part: EtcdPortName): PortTrust => sides.get(part) ?? portTrustOf(world, part, undefined);
  const views = cas.map((a) => caView(world, a, sideAt(a.part)));
  const server = needs.find(({ role }) => role === 'server')?.secret ?? '';
  const certificateOf = (need: CertificateRequirement): CertificateView => {
    const side = sideAt(portOf(need.role));
    if (need.from === 'user') return userCertificatesOf(world, need, side, server);
    const i = cas.findIndex(({ secret }) => secret === need.caSecret);
    const none = { certificate: undefined };
    return managedCertificatesOf(world, need, side, cas[i] ?? none, views[i] as CAView);
  };
  const certificates = needs.map(certificateOf).map((view) => ({ ...view, findings: view.findings.map(named) }));
  const all = [...sides.values()];
  const wanted = all.flatMap((side) => bundlesOf(world, side, certificates));
  const bundles = wanted.map(({ view }) => view);
  return {
    view: {
      cas: views,
      certificates,
      bundles,
      trusts: all.map((side) => trustView(world, side, certificates, bundles, views)),
      kept: (cluster.status?.trust?.kept ?? []).filter((name) => ours(world, name).secret !== undefined),
    },
    material: sides.has('client') ? materialOf(world, sideAt('client')) : undefined,
    serves: Object.fromEntries(all.flatMap((side) => servedOf(world, side))),
    given: Object.fromEntries(
      all.flatMap((side) => (activeBundle(side) ? [[side.part, activeBundle(side)?.text ?? '']] : [])),
    ),
    bundles: new Map(wanted.map(({ view, text }) => [view.secret, text])),
  };
}

function target(world: SecretSet, part: EtcdPortName, cas: readonly ManagedCA[]): CABundle | undefined {
  const ca = cas.find((a) => a.part === part);
  if (ca) return targetOf(world, ca);
  const need = memberNeed(world, part);
  return need?.from === 'user' ? targetIn(world, need) : undefined;
}

type Next = NonNullable<PortTrustView['next']> & { readonly trust: CABundle };

/** The digest to record next, once its Secret exists. */
function nextOf(world: SecretSet, side: PortTrust, certificates: readonly CertificateView[]): Next | undefined {
  const { part, bootstrapped, currentBundle: recorded, lost, targetBundle: to } = side;
  const next = (step: Next['step'], trust: CABundle | undefined): Next | undefined =>
    trust && { step, trust, digest: trust.digest };
  if (!bootstrapped) return next('begin', to);
  if (recordedDigest(world.cluster, part) === undefined) return next('adopt', recorded ?? to);
  if (lost || !recorded || !to) return undefined;
  if (isExpired(to, world.around.now)) return undefined; // members would restart for it, and be as unreachable as before
  if (!contains(recorded, to))
    return isExpired(recorded, world.around.now)
      ? next('replace', to)
      : next('widen', caBundleIn(recorded.text, to.text));
  const written = certificates.every(({ need, todo }) => portOf(need.role) !== part || todo === undefined);
  const over = written && notReissued(world, side).length === 0 && mayReissue(world, side);
  return recorded.digest !== to.digest && over ? next('narrow', to) : undefined;
}

interface Bundle {
  readonly view: BundleView;
  readonly text: string;
}

/** Only members mount these Secrets: on a port whose CA bundle etcd does not load at start, there are none. */
function bundlesOf(world: SecretSet, side: PortTrust, certificates: readonly CertificateView[]): readonly Bundle[] {
  if (!side.loadedAtStart) return [];
  const { part } = side;
  const name = (digest: string): string => trustName(world.cluster.metadata.name ?? '', part, digest);
  const next = nextOf(world, side, certificates)?.trust;
  const trusts = [side.bootstrapped ? side.currentBundle : undefined, next].filter((trust) => trust !== undefined);
  const digest = recordedDigest(world.cluster, part);
  const lost = side.lost && digest !== undefined ? [{ secret: name(digest), part, is: 'caBundleLost' } as const] : [];
  return [
    ...lost.map(({ secret, is }) => ({ view: { secret, part, findings: [{ is, secret }] }, text: '' })),
    ...[...new Map(trusts.map((trust) => [trust.digest, trust])).values()].map(({ digest: of, text }) => {
      const { secret, findings } = ours(world, name(of));
      const absent = secret === undefined && findings.length === 0;
      return { view: { secret: name(of), part, findings, ...(absent && { todo: 'writeCABundle' as const }) }, text };
    }),
  ];
}

function trustView(
  world: SecretSet,
  side: PortTrust,
  certificates: readonly CertificateView[],
  bundles: readonly BundleView[],
  cas: readonly CAView[],
): PortTrustView {
  const { part, loadedAtStart, currentBundle: current, targetBundle: to } = side;
  const next = nextOf(world, side, certificates);
  const ready = bundles.every((b) => b.part !== part || (b.todo === undefined && b.findings.length === 0));
  const rotationStarted = cas.some((a) => a.part === part && a.successor === true) && isRotationRequested(world, part);
  const value = requestedRotation(world.cluster.metadata.annotations);
  return {
    part,
    loadedAtStart,
    ...present({ recorded: current?.digest, target: to?.digest, reachedAt: reachedAt(world, side) }),
    ...(next && ready && { next: { step: next.step, digest: next.digest } }),
    trusted: current !== undefined && to !== undefined && contains(current, to),
    notReissued: notReissued(world, side),
    expired: expiredOf(world, side, certificates),
    ...(rotationStarted && value !== undefined && { requestedRotation: value }),
  };
}

/**
 * Where a certificate that members serve has expired, and its successor is not accepted by the CA bundles that they have loaded,
 * nothing but a restart helps. A certificate that is about to be written is loaded without one.
 */
function expiredOf(world: SecretSet, side: PortTrust, certificates: readonly CertificateView[]): readonly string[] {
  const role = memberNeed(world, side.part)?.role;
  const served = certificates.find(({ need }) => need.role === role);
  const over = served?.notAfter !== undefined && served.notAfter <= world.around.now && served.todo === undefined;
  return over && side.loadedAtStart ? world.around.mounted.bundles[side.part] : side.expiredBundles;
}

/**
 * With mTLS, while the operator's client certificate is missing, invalid, or not accepted by all members yet, the operator uses the
 * server certificate: otherwise a Secret that the cluster itself does not need would keep the operator from reconciling it.
 */
function materialOf(world: SecretSet, side: PortTrust): Material | undefined {
  // Also the target: a user may have replaced the CA while the first Pod was being created. Its member serves a certificate of the
  // new one then, and the recorded bundle is widened only after the operator has reached it.
  const ca = caBundleIn(activeBundle(side)?.text ?? '', side.targetBundle?.text ?? '')?.text ?? '';
  if (certificatesIn(ca).length === 0) return undefined;
  const needs = certificatesOf(world.cluster);
  const own = needs.find(({ role }) => role === 'operator');
  const server = needs.find(({ role }) => role === 'server');
  if (!own || !server) return { ca };
  const candidates = [
    servedSecret(world, own),
    ...(own.from === 'user' ? [world.secrets.get(own.secret)] : []),
    servedSecret(world, server),
  ];
  // A user may have deleted a bundle that a member has loaded. Without any certificate, every member would refuse the operator.
  const known = { ...side, mountedBundles: side.mountedBundles.filter((bundle) => bundle !== undefined) };
  const served = [side, known].flatMap((of) => candidates.find((secret) => isUsable(world, of, secret)) ?? [])[0];
  return served ? { ca, cert: textOf(served, CERT), key: textOf(served, KEY) } : { ca };
}

const isUsable = (world: SecretSet, side: PortTrust, secret: Secret | undefined): boolean => {
  const leaf = pairIn(secret);
  return leaf !== undefined && leaf.validToDate.getTime() > world.around.now && acceptedByAll(side, chainIn(secret));
};

function servedOf(world: SecretSet, side: PortTrust): readonly (readonly [EtcdPortName, Served])[] {
  const need = memberNeed(world, side.part);
  const print = need && leafIn(servedSecret(world, need))?.fingerprint256;
  return print === undefined ? [] : [[side.part, { print, ca: activeBundle(side)?.text ?? '' }]];
}
