/** What the cluster controller reads before it requests Certificates. */
import { expect, test } from 'vitest';
import { aCluster, CLUSTER_UID } from '../../../../test/support/builders/builders.ts';
import { failingReads, type ModelWorld, modelWorld, putInCache } from '../../../../test/support/builders/ports.ts';
import type { Tls } from '../../../api/tls.ts';
import type { Certificate } from '../../../domain/cert-manager.ts';
import { certificateFor, requestedNeeds } from './cert-manager-requests.ts';
import { certificates, observeIssuance } from './observe-cert-manager.ts';

const tls: Tls = { peer: { certManager: { issuerRef: { name: 'i' } } } };
const cluster = aCluster({ spec: { tls } });
const [peer] = requestedNeeds(cluster).map((need) => certificateFor(cluster, need, 'cluster.local')) as [Certificate];
const { signal } = new AbortController();

const observed = async (world: ModelWorld, of = cluster) =>
  (await observeIssuance(world, of, 'cluster.local', signal)).issuance;
const synced = (world = modelWorld()): ModelWorld => {
  world.certificates.apply('', { type: 'synced', resourceVersion: '1' });
  return world;
};
const held = async (world: ModelWorld) => {
  const issuance = await observed(world);
  return issuance?.is === 'there' ? issuance.certificates[0] : undefined;
};

test('whether cert-manager is installed is known only when the cache has synced', async () => {
  const world = modelWorld();
  expect(await observed(world, aCluster())).toBeUndefined();
  expect(await observed(world)).toEqual({ is: 'unknown' });
  world.certificates.apply('', { type: 'missing' });
  expect(await observed(world)).toEqual({ is: 'missing' });
  world.certificates.apply('', { type: 'synced', resourceVersion: '1' });
  expect(await held(world)).toMatchObject({ holding: { is: 'absent' } });
});

test('a Certificate that is not in the cache is read from the API server: foreign ones and those of an earlier operator lack the label', async () => {
  const world = synced();
  const { labels: _, ...metadata } = peer.metadata;
  await world.client.create(certificates, { ...peer, metadata });
  expect(await held(world)).toMatchObject({ holding: { is: 'ours' } });
  const other = synced();
  await other.client.create(certificates, { ...peer, metadata: { namespace: 'ns', name: 'db-peer' } });
  expect(await held(other)).toMatchObject({ holding: { is: 'foreign' } });
});

test('the CertificateRequest is read only while a Certificate is being issued', async () => {
  const world = synced();
  const request = { apiVersion: 'cert-manager.io/v1', kind: 'CertificateRequest' } as const;
  const requests = { group: 'cert-manager.io', version: 'v1', plural: 'certificaterequests', kind: request.kind };
  await world.client.create(requests, { ...request, metadata: { namespace: 'ns', name: 'db-peer-3' } });
  const certificate = (ready: 'True' | 'False', issuing: 'True' | 'False'): Certificate => ({
    ...peer,
    metadata: { ...peer.metadata, uid: 'u' },
    status: {
      revision: 2,
      conditions: [
        { type: 'Ready', status: ready },
        { type: 'Issuing', status: issuing },
      ],
    },
  });
  expect(peer.metadata.ownerReferences?.[0]?.uid).toBe(CLUSTER_UID);
  for (const [ready, issuing, isRead] of [
    ['True', 'False', false],
    ['True', 'True', true],
    ['False', 'False', true],
  ] as const) {
    putInCache(world.certificates, certificate(ready, issuing));
    expect((await held(world))?.request?.metadata.name).toBe(isRead ? 'db-peer-3' : undefined);
  }
});

test('a CertificateRequest that cannot be read does not block the reconcile', async () => {
  const world = synced();
  putInCache(world.certificates, { ...peer, metadata: { ...peer.metadata, uid: 'u' } });
  const refuse = { get: () => Promise.reject(new Error('forbidden')) };
  const { issuance } = await observeIssuance({ ...world, client: refuse }, cluster, 'cluster.local', signal);
  expect(issuance).toMatchObject({ is: 'there', certificates: [{ holding: { is: 'ours' } }] });
});

test('a Certificate that cannot be read is unknown: it is neither absent nor of another owner', async () => {
  const world = synced(modelWorld(failingReads(500, certificates.plural)));
  expect((await held(world))?.holding).toEqual({ is: 'unknown', message: '500 no KMS provider' });
});
