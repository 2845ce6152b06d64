/** What is looked at before cert-manager is asked for anything. */
import { expect, test } from 'vitest';
import { aCluster, CLUSTER_UID } from '../../../../test/support/builders/builders.ts';
import { failingReads, hear, type ModelWorld, modelWorld } from '../../../../test/support/builders/ports.ts';
import type { Tls } from '../../../api/tls.ts';
import type { Certificate } from '../../../domain/cert-manager.ts';
import { certificateFor, requestedNeeds } from './cert-manager-requests.ts';
import { certificates, observeIssuance } from './observe-cert-manager.ts';

const tls: Tls = { peer: { certManager: { issuerRef: { name: 'i' } } } };
const cluster = aCluster({ spec: { tls } });
const [peer] = requestedNeeds(cluster).map((need) => certificateFor(cluster, need, 'cluster.local')) as [Certificate];
const { signal } = new AbortController();

const look = async (world: ModelWorld, of = cluster) =>
  (await observeIssuance(world, of, 'cluster.local', signal)).issuance;
const synced = (world = modelWorld()): ModelWorld => {
  world.certificates.apply('', { type: 'synced', resourceVersion: '1' });
  return world;
};
const held = async (world: ModelWorld) => {
  const issuance = await look(world);
  return issuance?.is === 'there' ? issuance.certificates[0] : undefined;
};

test('whether cert-manager is there is known only when the cache has been told', async () => {
  const world = modelWorld();
  expect(await look(world, aCluster())).toBeUndefined();
  expect(await look(world)).toEqual({ is: 'unknown' });
  world.certificates.apply('', { type: 'missing' });
  expect(await look(world)).toEqual({ is: 'missing' });
  world.certificates.apply('', { type: 'synced', resourceVersion: '1' });
  expect(await held(world)).toMatchObject({ holding: { is: 'absent' } });
});

test('before a name counts as free, the server is asked: others carry no label of ours, and an earlier operator neither', async () => {
  const world = synced();
  const { labels: _, ...metadata } = peer.metadata;
  await world.client.create(certificates, { ...peer, metadata });
  expect(await held(world)).toMatchObject({ holding: { is: 'ours' } });
  const other = synced();
  await other.client.create(certificates, { ...peer, metadata: { namespace: 'ns', name: 'db-peer' } });
  expect(await held(other)).toMatchObject({ holding: { is: 'foreign' } });
});

test('what is before the issuer is looked for only while something is to be issued', async () => {
  const world = synced();
  const request = { apiVersion: 'cert-manager.io/v1', kind: 'CertificateRequest' } as const;
  const requests = { group: 'cert-manager.io', version: 'v1', plural: 'certificaterequests', kind: request.kind };
  await world.client.create(requests, { ...request, metadata: { namespace: 'ns', name: 'db-peer-3' } });
  const said = (ready: 'True' | 'False', issuing: 'True' | 'False'): Certificate => ({
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
  for (const [ready, issuing, looked] of [
    ['True', 'False', false],
    ['True', 'True', true],
    ['False', 'False', true],
  ] as const) {
    hear(world.certificates, said(ready, issuing));
    expect((await held(world))?.request?.metadata.name).toBe(looked ? 'db-peer-3' : undefined);
  }
});

test('a request that may not be read keeps nobody from looking after the cluster', async () => {
  const world = synced();
  hear(world.certificates, { ...peer, metadata: { ...peer.metadata, uid: 'u' } });
  const refuse = { get: () => Promise.reject(new Error('forbidden')) };
  const { issuance } = await observeIssuance({ ...world, client: refuse }, cluster, 'cluster.local', signal);
  expect(issuance).toMatchObject({ is: 'there', certificates: [{ holding: { is: 'ours' } }] });
});

test('a Certificate that cannot be read is unknown: it is neither absent nor of another owner', async () => {
  const world = synced(modelWorld(failingReads(500, certificates.plural)));
  expect((await held(world))?.holding).toEqual({ is: 'unknown', why: '500 no KMS provider' });
});
