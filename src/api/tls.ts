/** TLS and authentication: both are immutable after the cluster is created. */
import Type from 'typebox';
import { cel } from './cel.ts';
import type { Accepted } from './meta.ts';
import { optionalEnum, optionalFlag, optionalObject, optionalReference, optionalText } from './optional.ts';

export const DEFAULT_DURATION = '2160h';

const exactlyOne = (...fields: readonly string[]): string =>
  `[${fields.map((field) => `has(self.${field})`).join(', ')}].exists_one(given, given)`;

const issuer = (description: string) =>
  Type.Object(
    {
      name: Type.String({ minLength: 1, description: 'The name of the issuer.' }),
      kind: Type.Optional(Type.Enum(['Issuer', 'ClusterIssuer'], { type: 'string', default: 'Issuer' })),
    },
    { description },
  );

const duration = (description: string) =>
  optionalText(description, { pattern: '^([0-9]{1,6}[hms]){1,3}$', maxLength: 32 });

const managedFields = {
  duration: duration(`How long each certificate is valid, such as 720h. Absent: ${DEFAULT_DURATION}.`),
  renewBefore: duration('How long before its expiry a certificate is renewed. Absent: a third of its duration.'),
};
const managedRules = (field: string) =>
  cel(
    {
      rule: "!has(self.duration) || duration(self.duration) >= duration('1h')",
      message: `${field}.duration is shorter than 1h: certificates would have to be renewed all the time`,
      fieldPath: '.duration',
    },
    {
      rule: `!has(self.renewBefore) || duration(self.renewBefore) + duration('5m') <= duration(has(self.duration) ? self.duration : '${DEFAULT_DURATION}')`,
      message: `${field}.renewBefore is not shorter than the duration by 5m: a certificate would have to be renewed as soon as it is issued, and no CA rotation could ever complete`,
      fieldPath: '.renewBefore',
    },
    {
      rule: "!has(self.renewBefore) || duration(self.renewBefore) >= duration('5m')",
      message: `${field}.renewBefore is shorter than 5m: a certificate could expire before the new one has reached every member`,
      fieldPath: '.renewBefore',
    },
  );

const client = optionalObject(
  'TLS between clients and members.',
  {
    serverSecretRef: optionalReference(
      'tls.client.serverSecretRef',
      'A Secret with tls.crt, tls.key and ca.crt for the client port.',
    ),
    operatorClientSecretRef: optionalReference(
      'tls.client.operatorClientSecretRef',
      'A Secret with tls.crt and tls.key, the client certificate of the operator. With it, mTLS is on: every client needs a certificate.',
    ),
    certManager: optionalObject('Certificates from cert-manager.', {
      serverIssuerRef: issuer('Issues the certificate of the client port.'),
      operatorClientIssuerRef: Type.Optional(
        issuer(
          'Issues the client certificates of the operator and of applications. With it, mTLS is on: every client needs a certificate; the one for applications is in the Secret <cluster>-client-tls.',
        ),
      ),
    }),
    managed: optionalObject(
      'Certificates from a CA that the operator creates and rotates for the clients of this cluster.',
      {
        ...managedFields,
        clientCertificates: optionalEnum(
          'Required: mTLS, every client needs a certificate; the one for applications is in the Secret <cluster>-client-tls. None: only members serve a certificate. Absent: Required.',
          ['Required', 'None'],
        ),
      },
      managedRules('tls.client.managed'),
    ),
  },
  cel(
    {
      rule: exactlyOne('serverSecretRef', 'certManager', 'managed'),
      message: 'tls.client needs exactly one of serverSecretRef, certManager and managed',
    },
    {
      rule: '!(has(self.operatorClientSecretRef) && has(self.certManager))',
      message:
        'tls.client.operatorClientSecretRef cannot accompany certManager: use certManager.operatorClientIssuerRef',
      fieldPath: '.operatorClientSecretRef',
    },
    {
      rule: '!(has(self.operatorClientSecretRef) && has(self.managed))',
      message: 'tls.client.operatorClientSecretRef cannot accompany managed: the operator issues its own certificate',
      fieldPath: '.operatorClientSecretRef',
    },
  ),
);

const peer = optionalObject(
  'TLS between members (peers), always with certificates on both sides (mTLS).',
  {
    secretRef: optionalReference('tls.peer.secretRef', 'A Secret with tls.crt, tls.key and ca.crt for the peer port.'),
    certManager: optionalObject('Certificates from cert-manager.', {
      issuerRef: issuer('Issues the certificate of the peer port.'),
    }),
    managed: optionalObject(
      'Certificates from a CA that the operator creates and rotates for the peers of this cluster.',
      managedFields,
      managedRules('tls.peer.managed'),
    ),
  },
  cel({
    rule: exactlyOne('secretRef', 'certManager', 'managed'),
    message: 'tls.peer needs exactly one of secretRef, certManager and managed',
  }),
);

export const tls = optionalObject(
  'TLS of the client port and of the peer port. Cannot be added, removed or changed later.',
  { client, peer },
  cel({
    rule: 'has(self.client) || has(self.peer)',
    message: 'tls is empty and encrypts nothing: set tls.client, tls.peer or both, or leave tls out',
  }),
);

export const auth = optionalObject('Authentication of clients. Cannot be added, removed or changed later.', {
  enabled: optionalFlag('Whether clients must authenticate. Absent: false.'),
  rootCredentialsSecretRef: optionalReference(
    'auth.rootCredentialsSecretRef',
    'A Secret whose key password is the password of the user root.',
  ),
});

export type Tls = NonNullable<Accepted<typeof tls>>;
export type Auth = NonNullable<Accepted<typeof auth>>;

/** Whether clients must authenticate. */
export const wantsAuth = (spec: { readonly auth?: Auth }): boolean => spec.auth?.enabled === true;
