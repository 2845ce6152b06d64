/**
 * Handshakes of the model: who accepts whose certificate. Every moment is judged as if all connections were opened in it: what an
 * open connection hides shows at its next interruption.
 */
import { X509Certificate } from 'node:crypto';
import type { Ask } from '../../../src/etcd/client.ts';
import type { EtcdError } from '../../../src/etcd/errors.ts';
import type { TlsMaterial } from '../../../src/etcd/transport.ts';

/** One port of a process. */
export interface PortTls {
  /** etcd reads the file with its certificate at every handshake. */
  readonly leaf: () => string;
  /** The CA bundle that it loaded when it started; absent where it verifies no certificates. */
  readonly bundle?: string;
}

export interface NodeTls {
  readonly client?: PortTls;
  readonly peer?: PortTls;
  /** Peers use self-signed certificates, and verify none. */
  readonly peerAutoTls?: boolean;
}

interface Secured {
  readonly options: { readonly tls?: NodeTls | undefined };
}

/** Few texts, compared a million times: parsed and verified once. */
const certificates = new Map<string, readonly X509Certificate[]>();
const signed = new Map<string, Map<string, readonly X509Certificate[]>>();
/** The wall clock of the world. */
let date = 0;
export const setDate = (ms: number): void => {
  date = ms;
};
const isValid = ({ validToDate }: X509Certificate): boolean => validToDate.getTime() > date;

function certificatesIn(pem: string): readonly X509Certificate[] {
  const known = certificates.get(pem);
  if (known) return known;
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  const parsed = blocks.map((block) => new X509Certificate(block));
  certificates.set(pem, parsed);
  return parsed;
}

/** The CAs of the bundle that have signed the certificate. The model has no intermediates. */
function signersIn(bundle: string, leaf: string): readonly X509Certificate[] {
  const results = signed.get(bundle) ?? new Map<string, readonly X509Certificate[]>();
  signed.set(bundle, results);
  const known = results.get(leaf);
  if (known) return known;
  const [certificate] = certificatesIn(leaf);
  const signers = certificatesIn(bundle).filter(
    (ca) => certificate?.checkIssued(ca) === true && certificate.verify(ca.publicKey),
  );
  results.set(leaf, signers);
  return signers;
}

/** Whether a CA of the bundle has signed the certificate, and neither has expired. */
export const accepts = (bundle: string, leaf: string): boolean =>
  certificatesIn(leaf).slice(0, 1).every(isValid) && signersIn(bundle, leaf).some(isValid);

/** Whether no new connection to this port succeeds, because of the age of its certificate or of the CAs that it has loaded. */
export const hasExpired = ({ leaf, bundle }: PortTls): boolean =>
  !certificatesIn(leaf()).slice(0, 1).every(isValid) || (bundle !== undefined && !certificatesIn(bundle).some(isValid));

/** All worlds of a search together would fill the memory. */
export function forgetCertificates(): void {
  certificates.clear();
  signed.clear();
  date = 0;
}

export const fingerprintOf = (pem: string): string | undefined => certificatesIn(pem)[0]?.fingerprint256;
export const commonNameOf = (pem: string): string | undefined =>
  /^CN=(.*)$/m.exec(certificatesIn(pem)[0]?.subject ?? '')?.[1];

/** Peers verify each other on every connection, in both directions. */
export function trustEachOther({ options: one }: Secured, { options: other }: Secured): boolean {
  const [a, b] = [one.tls?.peer, other.tls?.peer];
  if (one.tls?.peerAutoTls || other.tls?.peerAutoTls) return one.tls?.peerAutoTls === other.tls?.peerAutoTls;
  if (!a && !b) return true;
  return (
    a?.bundle !== undefined && b?.bundle !== undefined && accepts(a.bundle, b.leaf()) && accepts(b.bundle, a.leaf())
  );
}

/** Members that refuse each other have no contact: the largest number around one of them go on, the others are cut off. */
export function inContact<T extends Secured>(live: readonly T[]): readonly T[] {
  const [first] = live;
  if (!first || live.every((node) => trustEachOther(first, node))) return live;
  const around = live.map((hub) => live.filter((node) => node === hub || trustEachOther(node, hub)));
  return around.reduce((most, set) => (set.length > most.length ? set : most));
}

/** Why a client with these certificates gets no connection; `undefined` when it does. */
export function refusesHandshake(port: PortTls | undefined, tls: TlsMaterial | undefined): EtcdError | undefined {
  const refused = (message: string): EtcdError => ({ kind: 'tls', message });
  if (!port && !tls) return undefined;
  if (!port || !tls) return refused('one side uses TLS and the other does not');
  const leaf = port.leaf();
  if (!accepts(tls.ca, leaf)) return refused('self-signed certificate in certificate chain');
  const { serverName } = tls;
  if (serverName !== undefined && certificatesIn(leaf)[0]?.checkHost(serverName) === undefined)
    return refused(`the certificate is not for ${serverName}`);
  if (port.bundle !== undefined && !(tls.cert !== undefined && accepts(port.bundle, tls.cert)))
    return refused('tls: bad certificate');
  return undefined;
}

/** With mTLS a client without a token is the user of its certificate's common name. */
export const certificateUser = ({ options }: Secured, { access, endpoint }: Ask): string | undefined => {
  const cert = options.tls?.client?.bundle === undefined ? undefined : access?.tls?.(endpoint).cert;
  return cert === undefined ? undefined : commonNameOf(cert);
};
