/** A user has a Certificate or a Secret of the name that the operator would give to the certificate for applications. */
import { expect, test } from 'vitest';
import { aCluster } from '../../../../test/support/builders/builders.ts';
import { world } from '../../../../test/support/builders/members.ts';
import { type CertificateView, NO_CERTIFICATES } from '../../../access/evaluate/view.ts';
import type { Tls } from '../../../api/tls.ts';
import { findCondition } from '../../../domain/conditions.ts';
import type { Finding } from '../../../pki/findings.ts';
import { decide } from '../decide.ts';
import type { Gathered } from '../observed.ts';
import { certificateFor, requestedNeeds } from './cert-manager-requests.ts';

const issuer = { name: 'i' };
const tls: Tls = { client: { certManager: { serverIssuerRef: issuer, operatorClientIssuerRef: issuer } } };
const cluster = aCluster({ spec: { tls } });
const READY = { type: 'Ready', status: 'True' };
const built = requestedNeeds(cluster).map((need) => ({ need, wanted: certificateFor(cluster, need, 'cluster.local') }));

/** Everything is issued, except for what this Certificate and the findings about its Secret are. */
const fresh = (is: 'foreign' | 'ours' | 'absent', findings: readonly Finding[]): Gathered => ({
  ...world([]),
  cluster,
  etcd: { is: 'notAsked' },
  certificates: {
    ...NO_CERTIFICATES,
    certificates: built.map(({ need }): CertificateView => {
      const isTaken = need.role === 'application';
      return { need, findings: isTaken ? findings : [], usable: !isTaken, notAfter: Date.parse('2026-03-01') };
    }),
  },
  issuance: {
    is: 'there',
    certificates: built.map(({ need, wanted }) => ({
      wanted,
      holding:
        need.role !== 'application' || is === 'ours'
          ? { is: 'ours', object: { ...wanted, status: { conditions: [READY] } } }
          : is === 'absent'
            ? { is }
            : { is, owner: 'no controller' },
    })),
  } as Gathered['issuance'] & object,
});
const secret = 'db-client-tls';

test.each<[string, Gathered, string]>([
  [
    'a Certificate, whose Secret does not exist',
    fresh('foreign', [{ is: 'secretMissing', secret }]),
    'Certificate db-client',
  ],
  [
    'a Certificate of another CA',
    fresh('foreign', [{ is: 'untrusted', secret, issuer: 'CN=mine', trust: 'x' }]),
    'Certificate db-client',
  ],
  [
    'a Secret',
    fresh('ours', [{ is: 'applicationForeign', secret, owner: 'no controller', object: `Secret ${secret}` }]),
    'Secret db-client-tls',
  ],
])('%s: the cluster is bootstrapped, and the condition names it', (_, o, named) => {
  const { rule, status } = decide(o);
  expect(rule).toBe('bootstrap');
  const condition = findCondition(status?.conditions, 'CertificatesValid');
  expect([condition?.status, condition?.reason]).toEqual(['True', 'NameConflict']);
  expect(condition?.message).toContain(`${named} exists and belongs to no controller`);
});

test('no Certificate is requested that would overwrite a Secret of a user', () => {
  const object = `Secret ${secret}`;
  const created = (findings: readonly Finding[]): readonly string[] =>
    (decide(fresh('absent', findings)).contributions ?? []).map(({ row }) => row);
  expect(created([{ is: 'secretMissing', secret }])).toContain('requestCertificates');
  expect(created([{ is: 'applicationForeign', secret, owner: 'no controller', object }])).not.toContain(
    'requestCertificates',
  );
});
