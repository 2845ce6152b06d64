/** What can be wrong with the certificates of a cluster, as a closed list, each with a sentence that says what to do. Pure. */

/** Where a certificate is used, and by whom. */
export type Role = 'server' | 'peer' | 'operator' | 'application';

type What =
  | { readonly is: 'secretMissing' }
  | { readonly is: 'secretForeign'; readonly owner: string }
  | { readonly is: 'keyMissing'; readonly key: string }
  | { readonly is: 'notPem'; readonly key: string }
  | { readonly is: 'tooMany'; readonly key: string; readonly most: number }
  /** Of all that is under the key, or of one certificate in it, in bytes. */
  | {
      readonly is: 'tooLarge';
      readonly key: string;
      readonly what: 'all' | 'certificate';
      readonly bytes: number;
      readonly limit: number;
    }
  /** etcd does not know this kind of key, or those who connect to it do not take it. */
  | { readonly is: 'keyUnknown'; readonly key: string; readonly kind: string }
  | { readonly is: 'keyMismatch' }
  /** No chain leads from the certificate to one of those in ca.crt. */
  | { readonly is: 'untrusted'; readonly issuer: string; readonly trust: string }
  /** Members could not be reached, or not reach each other. */
  | { readonly is: 'memberNameMissing'; readonly names: readonly string[] }
  /** Clients that verify would be refused under these names. */
  | { readonly is: 'clientNameMissing'; readonly names: readonly string[] }
  | { readonly is: 'usageMissing'; readonly usage: Usage }
  /** etcd's own gateway from HTTP to gRPC connects with the certificate of the server. */
  | { readonly is: 'gatewayUsageMissing' }
  | { readonly is: 'expired'; readonly key: string; readonly at: string }
  | { readonly is: 'notYetValid'; readonly key: string; readonly at: string }
  | { readonly is: 'expiresSoon'; readonly key: string; readonly at: string }
  /** What members mount is gone, and what is there now is from an authority that they do not trust yet. */
  | { readonly is: 'caChanged' }
  /** Whom members trust is not written anywhere any more. */
  | { readonly is: 'caBundleLost' }
  /** Certificates that it signed are in use, and it is gone. */
  | { readonly is: 'caLost' }
  | { readonly is: 'certManagerMissing' }
  | { readonly is: 'certificateForeign'; readonly certificate: string; readonly owner: string }
  /** cert-manager is at it, and nothing is known to be wrong. */
  | { readonly is: 'certificatePending'; readonly certificate: string; readonly why: string }
  | { readonly is: 'certificateNotReady'; readonly certificate: string; readonly why: string }
  /** What there is goes on to be valid for a while. */
  | { readonly is: 'renewalFailing'; readonly certificate: string; readonly why: string };

export type Usage = 'server auth' | 'client auth';

export type Finding = What & {
  /** The Secret that it is about. */
  readonly secret: string;
};

/** These do not keep a cluster from being started: it works, and somebody should know. */
const MINOR: readonly Finding['is'][] = [
  'clientNameMissing',
  'gatewayUsageMissing',
  'expiresSoon',
  'certificatePending',
  'renewalFailing',
];
export const isFatal = ({ is }: Finding): boolean => !MINOR.includes(is);

/** As reasons of a condition. */
const REASONS: Readonly<Record<Finding['is'], string>> = {
  secretMissing: 'SecretMissing',
  secretForeign: 'NameConflict',
  keyMissing: 'KeyMissing',
  notPem: 'NotPEM',
  tooMany: 'TooManyCertificates',
  tooLarge: 'TooLarge',
  keyUnknown: 'KeyUnsupported',
  keyMismatch: 'KeyMismatch',
  untrusted: 'Untrusted',
  memberNameMissing: 'NameMissing',
  clientNameMissing: 'NameMissing',
  usageMissing: 'UsageMissing',
  gatewayUsageMissing: 'UsageMissing',
  expired: 'Expired',
  notYetValid: 'NotYetValid',
  expiresSoon: 'ExpiresSoon',
  caChanged: 'CAChanged',
  caBundleLost: 'CABundleLost',
  caLost: 'CALost',
  certManagerMissing: 'CertManagerNotInstalled',
  certificateForeign: 'NameConflict',
  certificatePending: 'Issuing',
  certificateNotReady: 'CertificateNotReady',
  renewalFailing: 'RenewalFailing',
};
export const reasonOf = ({ is }: Finding): string => REASONS[is];

/** What is wrong, and what a person can do. Nothing of a key is ever part of it. */
export function sentenceOf(f: Finding): string {
  const secret = `Secret ${f.secret}`;
  switch (f.is) {
    case 'secretMissing':
      return `${secret} is not there: create it, or correct the reference`;
    case 'secretForeign':
      return `${secret} exists and belongs to ${f.owner}: delete or rename it, or give the cluster another name`;
    case 'keyMissing':
      return `${secret} has no ${f.key}: add it`;
    case 'notPem':
      return `${f.key} of ${secret} is not PEM that can be read: put it there as PEM, unencrypted`;
    case 'tooMany':
      return `${f.key} of ${secret} has more than ${f.most} certificates, and is not looked at: leave those there that are needed`;
    case 'tooLarge':
      return f.what === 'all'
        ? `${f.key} of ${secret} has ${f.bytes} bytes, more than the ${f.limit} that the operator examines: leave there only what is needed`
        : `a certificate in ${f.key} of ${secret} has ${f.bytes} bytes of PEM, more than the ${f.limit} that the operator examines: issue it with fewer names`;
    case 'keyUnknown':
      return `a certificate in ${f.key} of ${secret} has a key of the kind ${f.kind}, which etcd or those who connect to it do not take: issue it with one of RSA with at least 2048 bits, of ECDSA on P-256, P-384 or P-521, or of Ed25519`;
    case 'keyMismatch':
      return `tls.key of ${secret} does not belong to the certificate in its tls.crt: put the pair there that was issued together`;
    case 'untrusted':
      return `the certificate in tls.crt of ${secret}, issued by ${f.issuer}, does not lead to a certificate in ca.crt of Secret ${f.trust}: add the missing intermediates to tls.crt, or the right authority to ca.crt`;
    case 'memberNameMissing':
      return `the certificate in tls.crt of ${secret} lacks ${list(f.names)}, by which members are reached, also those that come later: issue it with ${f.names.length === 1 ? 'that name' : 'those names'}`;
    case 'clientNameMissing':
      return `the certificate in tls.crt of ${secret} lacks ${list(f.names)}: clients that connect there and verify the server are refused`;
    case 'usageMissing':
      return `the certificate in tls.crt of ${secret} may not be used for ${f.usage}: issue it with that extended key usage`;
    case 'gatewayUsageMissing':
      return `the certificate in tls.crt of ${secret} may not be used for client auth, and etcd's own HTTP gateway connects with it: requests over HTTP and JSON fail; gRPC works`;
    case 'expired':
      return `${f.key} of ${secret} has expired on ${f.at}: renew it`;
    case 'notYetValid':
      return `${f.key} of ${secret} is not valid before ${f.at}: issue it with an earlier date, or correct the clock`;
    case 'expiresSoon':
      return `${f.key} of ${secret} expires on ${f.at}: renew it before that`;
    case 'caChanged':
      return `${secret}, which members mount, is gone, and a new one cannot be made: members that run do not trust the authority that is there now. Put a certificate of the old authority, and its ca.crt, into the Secret that the spec names; it can be exchanged after that`;
    case 'caBundleLost':
      return `${secret}, which says whom members trust, is gone: members that run go on, and nothing is exchanged and no member made. Put it back from a backup, with its owner reference, or put the authority of before into ca.crt of the Secret that the spec names`;
    case 'caLost':
      return `${secret}, which held the authority of this cluster, is gone or of no use: members go on with the certificates that they have, which cannot be renewed. Put it back from a backup, with its owner reference, or have a new one made and brought to all members: annotate the EtcdCluster with etcd-operator.cozystack.io/rotate-ca and any new value`;
    case 'certManagerMissing':
      return 'cert-manager is not installed: the API server does not know Certificates of cert-manager.io/v1, and the spec asks for them. Install cert-manager, and the operator goes on by itself';
    case 'certificateForeign':
      return `Certificate ${f.certificate} exists and belongs to ${f.owner}: delete or rename it, or give the cluster another name`;
    case 'certificatePending':
      return `cert-manager is issuing Certificate ${f.certificate}: ${f.why}`;
    case 'certificateNotReady':
      return `Certificate ${f.certificate} is not ready: ${f.why}`;
    case 'renewalFailing':
      return `Certificate ${f.certificate} is not renewed: ${f.why}`;
  }
}

const list = (names: readonly string[]): string => names.join(', ');
