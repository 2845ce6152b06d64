/** Certificates in users' Secrets: verified, and copied into the Secret that members mount once all members accept them. Pure. */
import type { X509Certificate } from 'node:crypto';
import type { CertificateRequirement } from '../../domain/certificate-requirements.ts';
import type { Secret } from '../../gen/kube.ts';
import { present } from '../../lib/present.ts';
import { ages, CA, CERT, examine, KEY, lackedNames, type Requirements, type TlsSecret } from '../../pki/examine.ts';
import { type Finding, isFatal } from '../../pki/findings.ts';
import { type CABundle, caBundleIn, digestOf, sharesCA } from './ca-bundle.ts';
import { acceptedByAll, activeBundle, mayReissue, type PortTrust, reachedAt } from './port-trust.ts';
import {
  chainIn,
  demandsOf,
  expiryOf,
  isBootstrapped,
  leafIn,
  ours,
  type SecretSet,
  textOf,
  tlsSecretOf,
} from './secret-set.ts';
import type { CertificateView } from './view.ts';

export type UserCertificates = Extract<CertificateRequirement, { readonly from: 'user' }>;

/** The CA bundle after the rotation, from a valid Secret. */
export function targetIn(world: SecretSet, need: UserCertificates): CABundle | undefined {
  const source = world.secrets.get(need.secret);
  const demands = demandsOfUser(world, need);
  const { findings } = examine(tlsSecretOf(source, need.secret), need.secret, demands, world.around.now);
  // The CA verifies the members whose names the certificate has, and only it can.
  const isGrave = (finding: Finding): boolean =>
    isFatal(finding) && !(demands.newMemberNames && finding.is === 'memberNameMissing');
  return findings.some(isGrave) ? undefined : caBundleIn(textOf(source, CA));
}

/**
 * Members that run without a wildcard name, as an earlier operator accepted it, go on: each is reached by its own name, and only a new
 * one needs another. What members serve with the wildcard is not replaced by a certificate without it.
 */
function demandsOfUser(world: SecretSet, need: UserCertificates, trust?: TlsSecret): Requirements {
  const demands = demandsOf(world, need.role, trust);
  const { memberNames: wildcards } = demands;
  const served = need.mount === undefined ? undefined : leafIn(ours(world, need.mount).secret);
  const hasThem = served !== undefined && lackedNames(served, wildcards).length === 0;
  if (wildcards.length === 0 || hasThem || !isBootstrapped(world)) return demands;
  return { ...demands, memberNames: world.around.mounted.hosts ?? [], newMemberNames: wildcards };
}

/** Of the certificate that a new member would serve. */
function newMembersLack(served: X509Certificate | undefined, { newMemberNames = [] }: Requirements) {
  const lacked = served ? lackedNames(served, newMemberNames) : [];
  return lacked.length === 0 ? {} : { newMembersLack: lacked };
}

/** Client certificates, also that of the operator, must be signed by a CA of the active or of the target bundle. */
function demanded(side: PortTrust, server: string): TlsSecret | undefined {
  const texts = [activeBundle(side), side.targetBundle].flatMap((trust) => trust?.text ?? []);
  return texts.length === 0 ? undefined : { secret: server, data: { [CA]: texts.join('') } };
}

export function userCertificatesOf(
  world: SecretSet,
  need: UserCertificates,
  side: PortTrust,
  server: string,
): CertificateView {
  const { around, secrets } = world;
  const source = secrets.get(need.secret);
  const ofClient = need.role === 'operator' || need.role === 'application';
  const trust = ofClient ? demanded(side, server) : undefined;
  // Without the server's Secret, which has its own finding, there is no CA bundle to verify this one with.
  if (ofClient && !trust)
    return { need, usable: false, findings: source ? [] : [{ is: 'secretMissing', secret: need.secret }] };
  const demands = demandsOfUser(world, need, trust);
  const seen = examine(tlsSecretOf(source, need.secret), need.secret, demands, around.now);
  const fine = source !== undefined && !seen.findings.some(isFatal);
  if (need.mount === undefined)
    return { need, findings: seen.findings, usable: fine, ...(seen.notAfter && { notAfter: seen.notAfter }) };
  const { secret: copy, findings: foreign } = ours(world, need.mount);
  // Members that run serve it already, and would get it back with their next Pod.
  const asServed =
    side.bootstrapped && !copy && seen.findings.every((f) => !isFatal(f) || f.is === 'memberNameMissing');
  const good = (fine || (source !== undefined && asServed)) && foreign.length === 0;
  const running = side.bootstrapped ? copy : undefined;
  const notAfter = expiryOf(leafIn(running)) ?? seen.notAfter; // of what is served
  const todo = todoOf(world, need, side, good ? source : undefined, copy);
  const unmade: readonly Finding[] =
    good && side.bootstrapped && !copy && todo === undefined ? [{ is: 'caChanged', secret: need.mount }] : [];
  const old = todo === 'copySecret' || todo === 'copyCertificate' ? [] : ageOfCopy(world, need.mount, source, running);
  return {
    need,
    ...present({ notAfter, todo }),
    ...newMembersLack(leafIn(running ?? source), demands),
    usable: foreign.length === 0 && (copy !== undefined || (good && unmade.length === 0)),
    findings: [...seen.findings, ...foreign, ...unmade, ...old],
    ...awaited(world, side, good ? source : undefined, copy),
  };
}

/** A certificate that waits for clients to get the new CA is requeued for that time, not for the next resync. */
function awaited(
  world: SecretSet,
  side: PortTrust,
  source: Secret | undefined,
  copy: Secret | undefined,
): Pick<CertificateView, 'renewAt'> {
  const at = reachedAt(world, side);
  const waits = source && copy && textOf(source, CERT) !== textOf(copy, CERT);
  return waits && at !== undefined && at > world.around.now ? { renewAt: at } : {};
}

function todoOf(
  world: SecretSet,
  need: UserCertificates,
  side: PortTrust,
  source: Secret | undefined,
  copy: Secret | undefined,
): CertificateView['todo'] {
  const active = activeBundle(side);
  if (!active) return undefined;
  const sameLeaf = copy && [CERT, KEY].every((key) => textOf(copy, key) === textOf(source, key));
  const sameTrust = copy && digestOf(textOf(copy, CA)) === active.digest;
  if (!side.bootstrapped) return source && !(sameLeaf && sameTrust) ? 'copySecret' : undefined;
  if (source && !sameLeaf && acceptedByAll(side, chainIn(source))) {
    if (!copy) return 'copySecret';
    // Clients must have had the time to get a CA before a member serves a certificate that only this CA has signed.
    const served = chainIn(copy);
    const crosses = acceptedByAll(side, served) && !sharesCA(active, served, chainIn(source));
    if (!crosses || need.role === 'operator' || mayReissue(world, side)) return 'copyCertificate';
  }
  return copy && !sameTrust ? 'publishCABundle' : undefined;
}

/** While members do not have the user's current certificate, the one that they serve may expire. */
function ageOfCopy(
  { around }: SecretSet,
  mount: string,
  source: Secret | undefined,
  copy: Secret | undefined,
): readonly Finding[] {
  const leaf = leafIn(copy);
  if (!leaf || textOf(source, CERT) === textOf(copy, CERT)) return [];
  return ages(leaf, { secret: mount, key: CERT }, around.now);
}
