/** TLS of an EtcdCluster. Each spec is added to `version: 3.6.16`. */
import { type Row, ref } from './row.ts';

export const server = { client: { serverSecretRef: ref('s') } };
export const peer = { peer: { secretRef: ref('p') } };
const issuer = { name: 'ca' };
const clusterIssuer = { name: 'ca', kind: 'ClusterIssuer' };

export const specs: readonly Row[] = [
  ['TLS for clients', { tls: server }],
  ['TLS for peers', { tls: peer }],
  [
    'TLS for both, with client certificates',
    { tls: { client: { ...server.client, operatorClientSecretRef: ref('o') }, ...peer } },
  ],
  [
    'certificates from cert-manager',
    {
      tls: {
        client: { certManager: { serverIssuerRef: clusterIssuer, operatorClientIssuerRef: clusterIssuer } },
        peer: { certManager: { issuerRef: clusterIssuer } },
      },
    },
  ],
  ['certificates of the operator', { tls: { client: { managed: {} }, peer: { managed: {} } } }],
  [
    'certificates of the operator for a day, and clients without one',
    { tls: { client: { managed: { duration: '24h', renewBefore: '1h30m', clientCertificates: 'None' } } } },
  ],
  ['peers with certificates for minutes', { tls: { peer: { managed: { duration: '1h', renewBefore: '55m' } } } }],
  ['peers with certificates for a day', { tls: { peer: { managed: { duration: '24h', renewBefore: '8h' } } } }],
  [
    'certificates for minutes, for clients',
    { tls: { client: { managed: { duration: '30m' } } } },
    'tls.client.managed.duration is shorter than 1h',
  ],
  [
    'renewal before issuance, for peers',
    { tls: { peer: { managed: { renewBefore: '2160h' } } } },
    'tls.peer.managed.renewBefore is not shorter than the duration',
  ],
  [
    'renewal in the last minute, for peers',
    { tls: { peer: { managed: { renewBefore: '59s' } } } },
    'tls.peer.managed.renewBefore is shorter than 5m',
  ],
  ['a duration that is none', { tls: { peer: { managed: { duration: '3d' } } } }, 'tls.peer.managed.duration'],
  [
    'certificates for minutes',
    { tls: { peer: { managed: { duration: '59m' } } } },
    'tls.peer.managed.duration is shorter than 1h',
  ],
  [
    'renewal before issuance',
    { tls: { client: { managed: { duration: '24h', renewBefore: '24h' } } } },
    'tls.client.managed.renewBefore is not shorter than the duration',
  ],
  [
    'renewal before issuance with the default duration',
    { tls: { client: { managed: { renewBefore: '3000h' } } } },
    'tls.client.managed.renewBefore is not shorter than the duration',
  ],
  [
    'renewal a second after issuance',
    { tls: { client: { managed: { duration: '1h', renewBefore: '59m59s' } } } },
    'tls.client.managed.renewBefore is not shorter than the duration by 5m',
  ],
  [
    'renewal in the last minute',
    { tls: { client: { managed: { renewBefore: '1m' } } } },
    'tls.client.managed.renewBefore is shorter than 5m',
  ],
  ['clients that may', { tls: { client: { managed: { clientCertificates: 'Optional' } } } }, 'clientCertificates'],
  [
    'certificates of the operator and of the user',
    { tls: { client: { managed: {}, ...server.client } } },
    'tls.client needs exactly one of',
  ],
  [
    'the operator’s certificate beside a managed CA',
    { tls: { client: { managed: {}, operatorClientSecretRef: ref('o') } } },
    'operatorClientSecretRef cannot accompany managed',
  ],
  ['TLS that encrypts nothing', { tls: {} }, 'tls is empty and encrypts nothing'],
  [
    'TLS for clients without a certificate',
    { tls: { client: {} } },
    'tls.client needs exactly one of serverSecretRef, certManager and managed',
  ],
  [
    'two certificates for clients',
    { tls: { client: { ...server.client, certManager: { serverIssuerRef: issuer } } } },
    'tls.client needs exactly one of',
  ],
  [
    'the operator’s certificate from elsewhere',
    { tls: { client: { certManager: { serverIssuerRef: issuer }, operatorClientSecretRef: ref('o') } } },
    'operatorClientSecretRef cannot accompany certManager: use certManager.operatorClientIssuerRef',
  ],
  [
    'no Secret named for clients',
    { tls: { client: { serverSecretRef: {} } } },
    'tls.client.serverSecretRef.name is empty',
  ],
  [
    'a Secret in another namespace, by a path',
    { tls: { client: { serverSecretRef: ref('../../other/secrets/x') } } },
    'spec.tls.client.serverSecretRef.name',
  ],
  ['a Secret with as long a name as Kubernetes allows', { tls: { client: { serverSecretRef: ref('s'.repeat(253)) } } }],
  [
    'no Secret named for the operator',
    { tls: { client: { ...server.client, operatorClientSecretRef: ref('') } } },
    'operatorClientSecretRef.name is empty',
  ],
  ['no Secret named for peers', { tls: { peer: { secretRef: {} } } }, 'tls.peer.secretRef.name is empty'],
  [
    'TLS for peers without a certificate',
    { tls: { peer: {} } },
    'tls.peer needs exactly one of secretRef, certManager and managed',
  ],
  [
    'two certificates for peers',
    { tls: { peer: { secretRef: ref('p'), certManager: { issuerRef: issuer } } } },
    'tls.peer needs exactly one of',
  ],
  ['an issuer without a name', { tls: { peer: { certManager: { issuerRef: { name: '' } } } } }, 'issuerRef.name'],
  [
    'an issuer of another kind',
    { tls: { peer: { certManager: { issuerRef: { name: 'x', kind: 'Vault' } } } } },
    'issuerRef.kind',
  ],
  ['cert-manager without an issuer', { tls: { client: { certManager: {} } } }, 'serverIssuerRef'],
];
