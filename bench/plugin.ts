/** How long a user waits for `kubectl etcd`: a real API server, real etcd processes behind port-forwards, and the operator. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { clusters, startWorld, type World } from '../test/support/servers/world.ts';
import { type Figure, type Goal, measureTimes } from '../tools/figures.ts';
import { buildScript } from '../tools/plugin/build.ts';
import { run } from '../tools/process.ts';

export const about = 'how long a user waits for kubectl etcd';

const FLEET = 1_000;
const AT_ONCE = 32;
const READY_MS = 180_000;

export async function measure(progress: (detail: string) => void): Promise<readonly Figure[]> {
  const folder = await mkdtemp(join(tmpdir(), 'kubectl-etcd-bench-'));
  progress('servers');
  const world = await startWorld();
  try {
    await world.forwardPorts();
    const script = await buildScript(folder);
    const plugin = (...args: readonly string[]) =>
      run(process.execPath, [script, '--kubeconfig', world.apiServer.kubeconfig, ...args]);
    const operator = world.startOperator();
    progress('three members with mTLS');
    const namespace = await aSecuredCluster(world);
    const one = await measureTimes('status of three members, mTLS', 5, () => plugin('status', 'db', '-n', namespace));
    const help = await measureTimes('--help', 5, () => plugin('--help'));
    await operator.stop('SIGKILL'); // the fleet is only listed
    progress(`${FLEET} clusters`);
    await aFleet(world);
    const fleet = await measureTimes(`status -A of ${FLEET + 1} clusters`, 5, () => plugin('status', '-A'));
    return [within(help, 300), within(one, 1_500), within(fleet, 5_000)];
  } finally {
    await world.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

const within = (figure: Figure, atMost: number): Figure => ({ ...figure, goal: { atMost } satisfies Goal });

async function aSecuredCluster(world: World): Promise<string> {
  const namespace = await world.namespace();
  await world.createCluster(namespace, 'db', { replicas: 3, tls: { client: { managed: {} }, peer: { managed: {} } } });
  await world.patiently(READY_MS).condition(namespace, 'db', 'Progressing', 'False', 'Reconciled');
  return namespace;
}

/** With a status, as the operator writes it. */
async function aFleet(world: World): Promise<void> {
  const namespace = await world.namespace();
  const lastTransitionTime = new Date().toISOString();
  const condition = (type: string, status: 'True' | 'False', reason: string) => ({
    type,
    status,
    reason,
    message: 'All members are ready',
    lastTransitionTime,
  });
  const status = {
    readyMembers: 3,
    version: '3.6.16',
    clusterID: 'cafe000000000001',
    quorum: { needed: 2, healthy: 3, margin: 1 },
    conditions: [
      condition('Available', 'True', 'QuorumHealthy'),
      condition('Progressing', 'False', 'Reconciled'),
      condition('Degraded', 'False', 'QuorumHealthy'),
    ],
  };
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < FLEET) {
      const name = `c-${next++}`;
      await world.createCluster(namespace, name, { replicas: 3 });
      await world.admin.patch(clusters, { namespace, name }, { status }, { subresource: 'status' });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}
