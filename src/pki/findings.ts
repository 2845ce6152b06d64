/** Everything that can be wrong with the certificates of a cluster, each with a message that says what to do. Pure. */

/** What a certificate is used for. */
export type Role = 'server' | 'peer' | 'operator' | 'application';

type What =
  | { readonly is: 'secretMissing' }
  | { readonly is: 'secretForeign'; readonly owner: string }
  | { readonly is: 'keyMissing' | 'notPem'; readonly key: string }
  | { readonly is: 'tooMany'; readonly key: string; readonly most: number }
  /** The whole value of the key, or one certificate in it; in bytes. */
  | {
      readonly is: 'tooLarge';
      readonly key: string;
      readonly what: 'all' | 'certificate';
      readonly bytes: number;
      readonly limit: number;
    }
  /** etcd or its clients do not support this type of key. */
  | { readonly is: 'keyUnknown'; readonly key: string; readonly kind: string }
  | { readonly is: 'keyMismatch' }
  /** No CA in ca.crt verifies the certificate. */
  | { readonly is: 'untrusted'; readonly issuer: string; readonly trust: string }
  /** The operator or other members could not connect to a member. */
  | { readonly is: 'memberNameMissing'; readonly names: readonly string[] }
  /** Members that run have their names in it; a new one would not. */
  | { readonly is: 'newMemberNameMissing'; readonly names: readonly string[] }
  /** Clients that verify the server would fail with these host names. */
  | { readonly is: 'clientNameMissing'; readonly names: readonly string[] }
  | { readonly is: 'usageMissing'; readonly usage: Usage }
  /** etcd's own gateway from HTTP to gRPC connects with the server certificate. */
  | { readonly is: 'gatewayUsageMissing' }
  | { readonly is: 'expired' | 'notYetValid' | 'expiresSoon'; readonly key: string; readonly at: string }
  /** The Secret that members mount was deleted, and the user's certificate is now from a CA that they do not trust yet. */
  | { readonly is: 'caChanged' }
  /** No Secret has the recorded CA bundle any more. */
  | { readonly is: 'caBundleLost' }
  /** The CA is lost while certificates that it signed are in use. */
  | { readonly is: 'caLost' }
  | { readonly is: 'certManagerMissing' }
  | { readonly is: 'certificateForeign'; readonly certificate: string; readonly owner: string }
  /** The cluster itself does not need the certificate for applications. */
  | { readonly is: 'applicationForeign'; readonly object: string; readonly owner: string }
  /** cert-manager is issuing it, and reports no error. */
  | { readonly is: 'certificatePending'; readonly certificate: string; readonly message: string }
  | { readonly is: 'certificateNotReady'; readonly certificate: string; readonly message: string }
  /** The current certificate is still valid for a while. */
  | { readonly is: 'renewalFailing'; readonly certificate: string; readonly message: string };

export type Usage = 'server auth' | 'client auth';

export type Finding = What & {
  /** The Secret that it is about. */
  readonly secret: string;
};

/** Warnings: the cluster is bootstrapped in spite of them. */
const MINOR: readonly Finding['is'][] = [
  'newMemberNameMissing',
  'applicationForeign',
  'clientNameMissing',
  'gatewayUsageMissing',
  'expiresSoon',
  'certificatePending',
  'renewalFailing',
];
export const isFatal = ({ is }: Finding): boolean => !MINOR.includes(is);

/** Condition reasons. */
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
  newMemberNameMissing: 'NameMissing',
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
  applicationForeign: 'NameConflict',
  certificatePending: 'Issuing',
  certificateNotReady: 'CertificateNotReady',
  renewalFailing: 'RenewalFailing',
};
export const reasonOf = ({ is }: Finding): string => REASONS[is];

/** What is wrong, and what to do. Never contains any part of a key. */
export function sentenceOf(f: Finding): string {
  const secret = `Secret ${f.secret}`;
  switch (f.is) {
    case 'secretMissing':
      return `${secret} does not exist: create it, or correct the reference`;
    case 'secretForeign':
      return `${secret} exists and belongs to ${f.owner}: delete or rename it, or give the cluster another name`;
    case 'keyMissing':
      return `${secret} has no ${f.key}: add it`;
    case 'notPem':
      return `${f.key} of ${secret} is not valid PEM: replace it with unencrypted PEM`;
    case 'tooMany':
      return `${f.key} of ${secret} has more than ${f.most} certificates, and is not read: keep only those that are needed`;
    case 'tooLarge':
      return f.what === 'all'
        ? `${f.key} of ${secret} has ${f.bytes} bytes, more than the ${f.limit} that the operator reads: keep only what is needed`
        : `a certificate in ${f.key} of ${secret} has ${f.bytes} bytes of PEM, more than the ${f.limit} that the operator reads: issue it with fewer names`;
    case 'keyUnknown':
      return `a certificate in ${f.key} of ${secret} has a key of type ${f.kind}, which etcd or its clients do not support: issue it with an RSA key of at least 2048 bits, an ECDSA key on P-256, P-384 or P-521, or an Ed25519 key`;
    case 'keyMismatch':
      return `tls.key of ${secret} does not match the certificate in its tls.crt: replace both with a pair that was issued together`;
    case 'untrusted':
      return `the certificate in tls.crt of ${secret}, issued by ${f.issuer}, is not signed by a CA in ca.crt of Secret ${f.trust}: add the missing intermediates to tls.crt, or the right CA to ca.crt`;
    case 'memberNameMissing':
      return `the certificate in tls.crt of ${secret} lacks ${list(f.names)}, the host names of present and future members: issue it with ${f.names.length === 1 ? 'that name' : 'those names'}`;
    case 'newMemberNameMissing':
      return `the certificate in tls.crt of ${secret} lacks ${list(f.names)}: members that run work with it, and no member is added or replaced. Issue it with ${f.names.length === 1 ? 'that name' : 'those names'} as well`;
    case 'clientNameMissing':
      return `the certificate in tls.crt of ${secret} lacks ${list(f.names)}: clients that connect there fail to verify the server`;
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
      return `${secret}, which members mount, was deleted, and cannot be created again: running members do not trust the CA in the Secret that the spec names. Put a certificate of the previous CA, and its ca.crt, into that Secret; rotate the CA after that`;
    case 'caBundleLost':
      return `${secret} with the CA bundle of the members was deleted: running members keep running, but no CA is rotated and no member is created. Restore it from a backup, with its owner reference, or add the previous CA certificate to ca.crt of the Secret that the spec names`;
    case 'caLost':
      return `${secret} with the CA of this cluster was deleted or is not valid: members keep the certificates that they have, which cannot be renewed. Restore it from a backup, with its owner reference, or rotate the CA: annotate the EtcdCluster with etcd-operator.cozystack.io/rotate-ca and any new value`;
    case 'certManagerMissing':
      return 'cert-manager is not installed: the spec needs Certificates of cert-manager.io/v1, and the API server has no such CRD. Install cert-manager; the operator then continues by itself';
    case 'certificateForeign':
      return `Certificate ${f.certificate} exists and belongs to ${f.owner}: delete or rename it, or give the cluster another name`;
    case 'applicationForeign':
      return `${f.object} exists and belongs to ${f.owner}: the operator has no client certificate issued for applications. Go on with your own, or rename that object`;
    case 'certificatePending':
      return `cert-manager is issuing Certificate ${f.certificate}: ${f.message}`;
    case 'certificateNotReady':
      return `Certificate ${f.certificate} is not ready: ${f.message}`;
    case 'renewalFailing':
      return `Certificate ${f.certificate} is not renewed: ${f.message}`;
  }
}

const list = (names: readonly string[]): string => names.join(', ');
