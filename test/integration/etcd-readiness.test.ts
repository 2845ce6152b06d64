/** The response of real etcd to the readiness probe of a member's Pod: of every minor, and of the last one without /readyz. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { memberPod } from '../../src/controllers/member/build.ts';
import { aMember } from '../support/builders/builders.ts';
import { ask, ETCD_VERSIONS, type EtcdLab, type Node, startLab } from '../support/servers/etcd.ts';
import { eventually } from '../support/servers/processes.ts';

const versions = ['3.5.10', ...ETCD_VERSIONS] as const;

let lab: EtcdLab;
beforeAll(async () => {
  lab = await startLab({ versions });
}, 600_000);
afterAll(async () => {
  await lab?.close();
});

/** Like the kubelet's probe. */
async function answer({ address }: Node, path: string): Promise<number> {
  return (await fetch(`http://${address}:2381${path}`, { signal: AbortSignal.timeout(10_000) })).status;
}

function probeOf(version: string): string {
  const options = {
    imageRepository: 'quay.io/coreos/etcd',
    initialState: 'cluster',
    votes: true,
    hasCompany: false,
  } as const;
  const probe = memberPod(aMember({ spec: { version } }), options).spec?.containers[0]?.readinessProbe?.httpGet;
  expect(probe?.port).toBe(2381);
  return probe?.path ?? '';
}

/** Writes until the database is full. */
async function fill(node: Node): Promise<void> {
  await eventually(`${node.name} is full`, async () => {
    await lab.client.put(ask(node), 'key', 'x'.repeat(1_000_000));
    const alarms = await lab.client.maintenance.alarms(ask(node));
    return alarms.ok && alarms.value.some(({ alarm }) => alarm === 'noSpace') ? true : undefined;
  });
}

describe.concurrent.each(versions)('etcd %s', (version) => {
  test('is ready when it serves, and stays ready when its database is full', async () => {
    const node = await lab.seed({ version, flags: ['--quota-backend-bytes=4194304'] });
    const path = probeOf(version);
    expect(await answer(node, path)).toBe(200);
    await fill(node);
    expect(await answer(node, '/health')).toBe(503); // it does report the alarm
    expect(await answer(node, path)).toBe(200);
    await node.stop();
  });

  test('is not ready without a quorum', async () => {
    const [one, other] = await lab.cluster(2, { version });
    if (!one || !other) throw new Error('no members');
    const says = (code: number) =>
      eventually(`${code}`, async () => (await answer(one, probeOf(version))) === code || undefined);
    await says(200); // two members on a slow machine may elect another leader
    await other.stop();
    await says(503);
    await one.stop();
  });
});
