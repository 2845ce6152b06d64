/** What the Secrets of a cluster are good for, and what is to be done about them. Pure: Secrets and the time come in. */
import type { X509Certificate } from 'node:crypto';
import { type CertificateNeed, certificatesOf, isMutual, namesOf } from '../api/certificates.ts';
import type { EtcdCluster } from '../api/etcd-cluster.ts';
import { serverMountName } from '../api/names.ts';
import { holding } from '../api/ownership.ts';
import type { Secret } from '../gen/kube.ts';
import { ages, CA, CERT, type Demands, examine, KEY, type Paper } from '../pki/examine.ts';
import { type Finding, isGrave } from '../pki/findings.ts';
import { certificatesIn, leadsTo, privateKeyIn } from '../pki/pem.ts';
import { withoutStrangers } from './strangers.ts';
import { digestOf, isTrusted, recordedTrust } from './trust.ts';
import type { AuthorityView, CertificatesView, CertificateView } from './view.ts';

export interface Material {
  readonly ca: string;
  readonly cert?: string;
  readonly key?: string;
}

export interface Judged {
  readonly view: CertificatesView;
  /** Whom the operator trusts, and what it shows. `undefined` when it cannot connect. */
  readonly material: Material | undefined;
  /** The fingerprint of what members have mounted for clients. */
  readonly mounted: string | undefined;
}

/** By name; what is absent is `undefined`. */
export type Secrets = ReadonlyMap<string, Secret | undefined>;

export interface Surroundings {
  readonly now: number;
  /** The DNS domain of the Kubernetes cluster. */
  readonly domain: string;
}

type Issued = Extract<CertificateNeed, { readonly from: 'operator' }>;
type Given = Extract<CertificateNeed, { readonly from: 'user' }>;

/** Every Secret that is to be looked at. */
export const secretNames = (cluster: EtcdCluster): readonly string[] => [
  ...new Set(
    certificatesOf(cluster).flatMap((need) =>
      need.from === 'operator' ? [need.authority, need.secret] : [need.secret, ...(need.mount ? [need.mount] : [])],
    ),
  ),
];

export function textOf(secret: Secret | undefined, key: string): string {
  return Buffer.from(secret?.data?.[key] ?? '', 'base64').toString();
}

const paperOf = (secret: Secret | undefined, name: string): Paper | undefined =>
  secret && {
    secret: name,
    data: Object.fromEntries([CERT, KEY, CA].map((key) => [key, textOf(secret, key)])),
  };

export function judge(cluster: EtcdCluster, found: Secrets, around: Surroundings): Judged {
  const needs = certificatesOf(cluster);
  const { secrets, named } = withoutStrangers(needs, found);
  const world = { cluster, secrets, around };
  const authorities = [...new Set(needs.flatMap((n) => (n.from === 'operator' ? [n.authority] : [])))];
  const judged = authorities.map((name) => authorityOf(world, name));
  const certificates = needs
    .map((need) => (need.from === 'operator' ? issuedOf(world, need, judged) : givenOf(world, need)))
    .map((view) => ({ ...view, findings: view.findings.map(named) }));
  return {
    view: { authorities: judged, certificates },
    material: materialOf(world, certificates),
    mounted: mountedIn(world),
  };
}

interface World {
  readonly cluster: EtcdCluster;
  readonly secrets: Secrets;
  readonly around: Surroundings;
}

const isFormed = ({ status }: EtcdCluster): boolean => status?.clusterID !== undefined;

/** Only what this cluster controls counts as its own. */
function ours(
  { cluster, secrets }: World,
  name: string,
): { readonly secret?: Secret; readonly findings: readonly Finding[] } {
  const held = holding(secrets.get(name), cluster.metadata.uid ?? '');
  if (held.is === 'foreign') return { findings: [{ is: 'secretForeign', secret: name, owner: held.owner }] };
  return held.is === 'ours' ? { secret: held.object, findings: [] } : { findings: [] };
}

/** A lost authority is not simply replaced: members that run would not trust anything that the next one signs. */
function authorityOf(world: World, name: string): AuthorityView {
  const { secret, findings } = ours(world, name);
  if (findings.length > 0) return { secret: name, findings };
  const certificate = leafIn(secret);
  const key = privateKeyIn(textOf(secret, KEY));
  if (certificate && key && certificate.checkPrivateKey(key)) {
    const grave = ages(certificate, { secret: name, key: CERT }, world.around.now).filter(isGrave);
    return { secret: name, findings: grave };
  }
  if (isFormed(world.cluster)) return { secret: name, findings: [{ is: 'authorityLost', secret: name }] };
  return secret
    ? { secret: name, findings: [{ is: 'notPem', secret: name, key: KEY }] }
    : { secret: name, findings: [], todo: 'found' };
}

const leafIn = (secret: Secret | undefined): X509Certificate | undefined => certificatesIn(textOf(secret, CERT))[0];
const endOf = (certificate: X509Certificate | undefined): number | undefined => certificate?.validToDate.getTime();

function demandsOf({ cluster, around }: World, role: CertificateNeed['role'], trust?: Paper): Demands {
  const { members, clients } = namesOf(cluster, role, around.domain);
  const mutual = isMutual(cluster.spec.tls ?? {});
  return { role, memberNames: members, clientNames: clients, mutual, trust };
}

function issuedOf(world: World, need: Issued, authorities: readonly AuthorityView[]): CertificateView {
  const { secret, findings: foreign } = ours(world, need.secret);
  const authority = authorities.find((a) => a.secret === need.authority);
  const signer = world.secrets.get(need.authority);
  const other = secret !== undefined && signer !== undefined && digestIn(secret, CA) !== digestIn(signer, CERT);
  // Somebody has put another authority there.
  const exchanged = recordedTrust(world.cluster, need.role)
    ? signer && !isTrusted(world.cluster, need.role, textOf(signer, CERT))
    : other;
  const changed: readonly Finding[] =
    exchanged && isFormed(world.cluster) ? [{ is: 'authorityChanged', secret: need.authority }] : [];
  const stuck = [...foreign, ...(authority?.findings ?? []), ...changed].length > 0;
  const seen = examine(paperOf(secret, need.secret), need.secret, demandsOf(world, need.role), world.around.now);
  const wrong = seen.findings.some(isGrave) || other;
  // Nothing that is signed now would last longer than its authority.
  const renewAt =
    (seen.notAfter ?? 0) < (endOf(leafIn(signer)) ?? 0) ? (seen.notAfter ?? 0) - need.renewBeforeMs : undefined;
  const known = {
    need,
    usable: secret !== undefined && (!wrong || changed.length > 0),
    ...(seen.notAfter && { notAfter: seen.notAfter }),
    ...mountedTrust(need, secret),
  };
  // What can be made good at once is not worth a word.
  if (!stuck && (wrong || (renewAt !== undefined && world.around.now >= renewAt)))
    return { ...known, findings: [], todo: 'issue' };
  const renewed = !stuck && renewAt !== undefined;
  const said = seen.findings.filter((f) => !(renewed && f.is === 'expiresSoon' && f.key === CERT)); // it will not come to that
  return { ...known, findings: [...foreign, ...changed, ...(secret ? said : [])], ...(renewed && { renewAt }) };
}

function givenOf(world: World, need: Given): CertificateView {
  const { secrets, around } = world;
  const source = secrets.get(need.secret);
  const ofClient = need.role === 'operator' || need.role === 'application';
  const trust = ofClient ? trustOf(world) : undefined;
  // Without the server's Secret, about which enough is said, nobody can tell whether this one fits.
  if (ofClient && !trust)
    return { need, usable: false, findings: source ? [] : [{ is: 'secretMissing', secret: need.secret }] };
  const seen = examine(paperOf(source, need.secret), need.secret, demandsOf(world, need.role, trust), around.now);
  const good = !seen.findings.some(isGrave);
  if (need.mount === undefined)
    return { need, findings: seen.findings, usable: good, ...(seen.notAfter && { notAfter: seen.notAfter }) };
  const { secret: copy, findings: foreign } = ours(world, need.mount);
  const trusted = (by: Secret): boolean => isTrusted(world.cluster, need.role, textOf(by, CA));
  const running = isFormed(world.cluster) ? copy : undefined;
  const intact = running && trusted(running) ? running : undefined; // or somebody has been at it
  const notAfter = endOf(leafIn(running)) ?? seen.notAfter; // of what members show
  const known = { need, ...(notAfter !== undefined && { notAfter }), ...mountedTrust(need, copy) };
  const findings = [...seen.findings, ...foreign];
  const usable = foreign.length === 0 && (copy !== undefined || good);
  if (!good || foreign.length > 0 || !source)
    return { ...known, usable, findings: [...findings, ...ageOfCopy(world, need.mount, source, running)] };
  if (intact) {
    const { todo, changed } = ofRunning(need.secret, source, intact);
    const old = todo ? [] : ageOfCopy(world, need.mount, source, intact);
    return { ...known, usable, findings: [...findings, ...changed, ...old], ...(todo && { todo }) };
  }
  if (isFormed(world.cluster) && !trusted(source)) {
    const changed: Finding = { is: 'authorityChanged', secret: need.secret };
    return { ...known, usable: false, findings: [...findings, changed] };
  }
  const same = copy && [CERT, KEY, CA].every((key) => textOf(copy, key) === textOf(source, key));
  return { ...known, usable, findings, ...(!same && { todo: 'copy' }) };
}

const digestIn = (secret: Secret | undefined, key: string): string | undefined => digestOf(textOf(secret, key));

/** Whom members trust that start on it. */
function mountedTrust({ role }: CertificateNeed, mounted: Secret | undefined): Pick<CertificateView, 'trust'> {
  const trust = role === 'server' || role === 'peer' ? digestIn(mounted, CA) : undefined;
  return trust === undefined ? {} : { trust };
}

/** Members that were not given what is there now may be left with something that ends. */
function ageOfCopy(
  { around }: World,
  mount: string,
  source: Secret | undefined,
  copy: Secret | undefined,
): readonly Finding[] {
  const leaf = leafIn(copy);
  if (!leaf || textOf(source, CERT) === textOf(copy, CERT)) return [];
  return ages(leaf, { secret: mount, key: CERT }, around.now);
}

/** Members that run have read ca.crt when they started: only a certificate that it vouches for may be given to them. */
function ofRunning(
  name: string,
  source: Secret,
  copy: Secret,
): { readonly changed: readonly Finding[]; readonly todo?: 'copyLeaf' } {
  const sameTrust = digestIn(source, CA) === digestIn(copy, CA);
  const sameLeaf = textOf(source, CERT) === textOf(copy, CERT) && textOf(source, KEY) === textOf(copy, KEY);
  const [leaf, ...others] = certificatesIn(textOf(source, CERT));
  const vouched = leaf !== undefined && leadsTo(leaf, others, certificatesIn(textOf(copy, CA))) !== undefined;
  const changed: readonly Finding[] = sameTrust && vouched ? [] : [{ is: 'authorityChanged', secret: name }];
  return { changed, ...(!sameLeaf && vouched && { todo: 'copyLeaf' }) };
}

/** What members mount, or would. */
function trustOf(world: World): Paper | undefined {
  const server = certificatesOf(world.cluster).find(({ role }) => role === 'server');
  if (!server) return undefined;
  const mount = mountOf(world);
  const copy = isFormed(world.cluster) ? ours(world, mount).secret : undefined;
  return copy && isTrusted(world.cluster, 'server', textOf(copy, CA))
    ? paperOf(copy, mount)
    : paperOf(world.secrets.get(server.secret), server.secret);
}

/**
 * Where clients must show a certificate and that of the operator is missing or wrong, it shows the one of the members:
 * otherwise it could not look after a cluster that runs, because of a Secret that the cluster does not need.
 */
function materialOf(world: World, certificates: readonly CertificateView[]): Material | undefined {
  const ca = trustOf(world)?.data[CA] ?? '';
  if (certificatesIn(ca).length === 0) return undefined;
  const own = certificates.find(({ need }) => need.role === 'operator');
  if (!own) return { ca };
  const shown = own.usable ? world.secrets.get(own.need.secret) : ours(world, mountOf(world)).secret;
  return shown ? { ca, cert: textOf(shown, CERT), key: textOf(shown, KEY) } : { ca };
}

const mountOf = ({ cluster }: World): string => serverMountName(cluster.metadata.name ?? '');

const mountedIn = (world: World): string | undefined =>
  certificatesIn(textOf(ours(world, mountOf(world)).secret, CERT))[0]?.fingerprint256;
