/** A cluster with a client that keeps writing, from its first write to the final check of the data. */

import { expect, onTestFinished } from 'vitest';
import type { Access } from '../../../src/etcd/client.ts';
import { ABOUT_DATA } from '../about-data.ts';
import { atRest, settled } from './at-rest.ts';
import { type AnObject, KIND, type Tenant } from './journey.ts';
import { etcdRegisters, RegisterClient, whatTheySaw } from './registers.ts';
import { aWriter, serviceIp, type Writer } from './writer.ts';

/** Quick to bootstrap, and deleted with its Pod. */
export const IN_MEMORY = { storage: { size: '256Mi', medium: 'Memory' } };

/** Two clients share them, over connections of their own, which mostly lead to different members. */
const REGISTERS = ['seq/register/1', 'seq/register/2'];

export interface Serving {
  /** The cluster before anything happened to it. */
  readonly cluster: AnObject;
  readonly writer: Writer;
  /** The cluster is healthy again: no acknowledged write is lost, it is the same cluster, and it is at rest. */
  readonly endsWell: (voters: number) => Promise<AnObject>;
}

export async function aServingCluster(
  tenant: Tenant,
  name: string,
  spec: Readonly<Record<string, unknown>>,
): Promise<Serving> {
  await tenant.create(name, spec);
  await settled(tenant, name);
  return serving(tenant, name);
}

/** The same for a cluster that exists already. */
export async function serving(tenant: Tenant, name: string, access?: Access): Promise<Serving> {
  const cluster = await tenant.get(KIND, name);
  const writer = await aWriter(tenant, name, access);
  const endpoint = `${access ? 'https' : 'http'}://${await serviceIp(tenant, name)}:2379`;
  const clients = ['first', 'second'].map(
    (client) =>
      new RegisterClient({ name: client, keys: REGISTERS, open: () => etcdRegisters(endpoint, access), pauseMs: 100 }),
  );
  onTestFinished(async () => void (await Promise.all(clients.map((client) => client.stop()))));
  const endsWell = async (voters: number): Promise<AnObject> => {
    await settled(tenant, name);
    const { lost, acknowledged, longestGapMs } = await writer.end();
    process.stdout.write(`${name}: ${acknowledged} writes, at most ${longestGapMs} ms apart\n`);
    expect(lost, ABOUT_DATA).toEqual([]);
    expect((await whatTheySaw(clients)).wrong, ABOUT_DATA).toBeUndefined();
    const after = await atRest(tenant, name, voters);
    expect(after.status?.clusterID, ABOUT_DATA).toBe(cluster.status?.clusterID);
    return after;
  };
  return { cluster, writer, endsWell };
}
