/** The operator with --observe-only beside the clusters of another operator: with a real API server and real etcd. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { LEASE_NAME } from '../../src/api/names.ts';
import type { Resource } from '../../src/kube/object.ts';
import {
  events,
  leases,
  persistentVolumeClaims,
  podDisruptionBudgets,
  pods,
  secrets,
  services,
} from '../../src/kube/resources.ts';
import { type Child, eventually } from '../support/servers/processes.ts';
import { clusters, members, startWorld, type World } from '../support/servers/world.ts';

let world: World;
let observer: Child | undefined;

beforeAll(async () => {
  world = await startWorld();
});
afterAll(async () => {
  await world?.stop();
});
afterEach(async (context) => {
  if (context.task.result?.state === 'fail') process.stderr.write(observer?.log() ?? '');
  await observer?.stop('SIGKILL');
});

const KINDS: readonly Resource[] = [
  clusters,
  members,
  pods,
  persistentVolumeClaims,
  services,
  podDisruptionBudgets,
  secrets,
  events,
];

/** Every object with its resourceVersion. */
const recorded = async (namespace: string): Promise<readonly string[]> =>
  (
    await Promise.all(
      KINDS.map(async (resource) =>
        (
          await world.list(resource, namespace)
        ).map(({ metadata }) => `${resource.kind} ${metadata.name} ${metadata.resourceVersion}`),
      ),
    )
  ).flat();

test('it logs what it would do to a damaged, an edited and a new cluster, each once, and changes nothing', async () => {
  const other = world.startOperator();
  const namespace = await world.namespace();
  await world.createCluster(namespace, 'damaged', { replicas: 3 });
  await world.createCluster(namespace, 'edited');
  await world.condition(namespace, 'damaged', 'Progressing', 'False', 'Reconciled');
  await world.condition(namespace, 'edited', 'Progressing', 'False', 'Reconciled');
  await other.stop('SIGKILL');
  const [member] = (await world.list(members, namespace)).filter(({ spec }) => spec.clusterName === 'damaged');
  const lost = { namespace, name: member?.metadata.name ?? '' };
  const pod = await world.admin.get(pods, lost);
  await world.admin.delete(pods, lost, { uid: pod?.metadata.uid ?? '' });
  await eventually('the Pod to be deleted', async () =>
    (await world.admin.get(pods, lost)) === undefined ? true : undefined,
  );
  await world.admin.patch(clusters, { namespace, name: 'edited' }, { spec: { replicas: 3 } });
  await world.createCluster(namespace, 'new');
  const before = await recorded(namespace);

  // A second one would wait for the Lease, if they needed it.
  observer = world.startOperator('--observe-only', '--leader-elect', '--namespace=kube-system');
  const lines = (rule: string, key: string): readonly string[] =>
    (observer?.log() ?? '')
      .split('\n')
      .filter((line) => line.includes(`observe only, not executed: ${rule}`) && line.includes(`"${namespace}/${key}"`));
  await eventually('the plans to be logged', () => {
    const plans = [lines('makeVolumeAndPod', lost.name), lines('addLearner', 'edited'), lines('bootstrap', 'new')];
    return Promise.resolve(plans.every((found) => found.length > 0) ? true : undefined);
  });
  expect(lines('makeVolumeAndPod', lost.name)[0]).toContain(`create Pod ${lost.name}`);
  expect(lines('bootstrap', 'new')).toHaveLength(1);
  expect(observer.log()).not.toContain('reconcile failed');
  expect(await recorded(namespace)).toEqual(before);
  expect(await world.admin.get(leases, { namespace: 'kube-system', name: LEASE_NAME })).toBeUndefined();
});
