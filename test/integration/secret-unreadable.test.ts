/** A real API server that cannot return one Secret of a cluster, as when its KMS provider is unreachable. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isPodReady } from '../../src/domain/pod.ts';
import { pods } from '../../src/kube/resources.ts';
import { eventually } from '../support/servers/processes.ts';
import { scenery } from '../support/servers/scene.ts';
import { clusters, startWorld, type World } from '../support/servers/world.ts';

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(async () => {
  await world?.stop();
});
const { aScene, ends } = scenery(() => world);

const PATIENCE_MS = 120_000;

/** Deletes one Pod, and waits until its member has another one that is ready. */
async function losePod(namespace: string): Promise<void> {
  const [lost] = await world.list(pods, namespace);
  const { name = '', uid = '' } = lost?.metadata ?? {};
  await world.admin.delete(pods, { namespace, name }, { uid });
  await eventually(
    `another Pod ${name}`,
    async () => {
      const pod = await world.admin.get(pods, { namespace, name });
      return pod && pod.metadata.uid !== uid && isPodReady(pod) ? pod : undefined;
    },
    { timeoutMs: PATIENCE_MS },
  );
}

test(
  'a Secret that cannot be read is reported, lost Pods still come back, and it recovers by itself',
  async () => {
    const scene = await aScene();
    const { namespace, proxy } = scene;
    const becomes = (type: string, status: string, reason?: string) =>
      world.patiently(PATIENCE_MS).condition(namespace, 'db', type, status, reason);
    await world.createCluster(namespace, 'db', {
      tls: { client: { managed: {} }, peer: { managed: {} } },
      replicas: 3,
    });
    await becomes('Progressing', 'False', 'Reconciled');
    await becomes('CertificatesValid', 'True', 'Valid');

    const name = 'db-peer-ca';
    const heal = proxy.fault({ verb: 'get', resource: 'secrets', name }, { do: 'answer', code: 500 });
    const { length } = proxy.calls;
    // An edit makes the operator read Secrets again at once.
    await world.admin.patch(clusters, { namespace, name: 'db' }, { spec: { progressDeadlineSeconds: 601 } });
    const cluster = await becomes('CertificatesValid', 'Unknown', 'SecretUnreadable');
    expect(cluster.status?.conditions?.find((c) => c.type === 'CertificatesValid')?.message).toContain(
      `Secret ${name} cannot be read: 500`,
    );
    await losePod(namespace);
    await becomes('Available', 'True', 'QuorumHealthy');
    expect(proxy.calls.slice(length).filter((c) => c.verb === 'create' && c.resource === 'secrets')).toEqual([]);

    // An operator that has never read it cannot reach the members, and still creates their Pods again.
    await scene.operator.stop('SIGKILL');
    scene.start();
    await becomes('Degraded', 'True', 'SecretUnreadable');
    await losePod(namespace);

    const reads = proxy.calls.slice(length).filter((c) => c.code === 500 && c.name === name);
    expect(reads.length).toBeLessThan(20);
    heal();
    await becomes('CertificatesValid', 'True', 'Valid');
    await becomes('Degraded', 'False', 'QuorumHealthy');
    await becomes('Progressing', 'False', 'Reconciled');
    await ends(scene);
  },
  5 * PATIENCE_MS,
);
