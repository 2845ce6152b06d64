/** Nodes that are cut off, drained, or lost for good with the volumes on them. */
import { expect, onTestFinished, test } from 'vitest';
import {
  addFreshNode,
  cutNetwork,
  deleteNode,
  destroyNode,
  drain,
  healNetwork,
  uncordon,
} from '../../../local/faults.ts';
import { installOperator, OPERATOR_NAMESPACE, operatorImage } from '../../../local/operator.ts';
import { settled } from '../../support/journeys/at-rest.ts';
import { type AnObject, aTenant, becomes, MEMBER_KIND, type Tenant } from '../../support/journeys/journey.ts';
import { aServingCluster, IN_MEMORY } from '../../support/journeys/serving.ts';

const nodeOf = (pod: AnObject | undefined): string => String(pod?.spec['nodeName']);
const names = async (tenant: Tenant): Promise<readonly string[]> =>
  (await tenant.list(MEMBER_KIND)).map((member) => member.metadata.name);

/** A node on which neither the operator runs nor this machine's route to Services depends; and its member. */
async function aVictim(tenant: Tenant): Promise<{ readonly node: string; readonly member: string }> {
  const pods = ['-n', OPERATOR_NAMESPACE, 'get', 'pods', '-o', 'jsonpath={.items[*].spec.nodeName}'];
  const spared = ['node-1', ...(await tenant.cluster.kubectl(pods)).split(' ')];
  const pod = (await tenant.list('pods')).find((each) => !spared.includes(nodeOf(each)));
  return { node: nodeOf(pod), member: pod?.metadata.name ?? '' };
}

const notReady = (tenant: Tenant, node: string): Promise<string> =>
  tenant.cluster.kubectl(['wait', '--for=condition=Ready=Unknown', `node/${node}`, '--timeout=120s']);
const ready = (tenant: Tenant, node: string): Promise<string> =>
  tenant.cluster.kubectl(['wait', '--for=condition=Ready', `node/${node}`, '--timeout=120s']);

/** The member on the lost node is replaced on another node, and no other member is. */
const isReplaced = (tenant: Tenant, lost: string, before: readonly string[]): Promise<void> =>
  becomes(`${lost} to be replaced`, async () => {
    const now = await names(tenant);
    expect(now).toHaveLength(before.length);
    expect(before.filter((name) => !now.includes(name))).toEqual([lost]);
  });

/** A machine of the same name with an empty disk replaces the lost one. */
const newMachine = (tenant: Tenant, node: string): Promise<string> =>
  addFreshNode(tenant.cluster, Number(node.replace('node-', '')));

test.runIf(process.env['DEV_TEST_ALL'])('no member is replaced when a node is cut off and reconnected', async () => {
  const tenant = await aTenant();
  const { writer, endsWell } = await aServingCluster(tenant, 'island', { replicas: 3 });
  const before = await names(tenant);
  const { node } = await aVictim(tenant);
  await cutNetwork(tenant.cluster, node);
  onTestFinished(() => healNetwork(tenant.cluster, node));
  await writer.served();
  await notReady(tenant, node);
  await writer.served();
  await healNetwork(tenant.cluster, node);
  await ready(tenant, node);
  await endsWell(3);
  expect(await names(tenant)).toEqual(before);
});

test('a member whose node is lost, with its volume and Node object, is replaced at once', async () => {
  const tenant = await aTenant();
  const { writer, endsWell } = await aServingCluster(tenant, 'widow', { replicas: 3 });
  const before = await names(tenant);
  const { node, member } = await aVictim(tenant);
  onTestFinished(async () => {
    await newMachine(tenant, node);
  });
  await deleteNode(tenant.cluster, node);
  await writer.served();
  await isReplaced(tenant, member, before);
  await endsWell(3);
});

test.runIf(process.env['DEV_TEST_ALL'])('a member on a node that is declared out of service is replaced', async () => {
  const tenant = await aTenant();
  const { endsWell } = await aServingCluster(tenant, 'declared', { replicas: 3 });
  const before = await names(tenant);
  const { node, member } = await aVictim(tenant);
  const taint = 'node.kubernetes.io/out-of-service';
  onTestFinished(async () => {
    await tenant.cluster.kubectl(['taint', 'node', node, `${taint}-`]);
    await newMachine(tenant, node);
  });
  await destroyNode(tenant.cluster, node);
  await notReady(tenant, node);
  await tenant.cluster.kubectl(['taint', 'node', node, `${taint}=nodeshutdown:NoExecute`]);
  await isReplaced(tenant, member, before);
  await endsWell(3);
});

test.runIf(process.env['DEV_TEST_ALL'])(
  'a member whose node is NotReady for as long as the chart says is replaced',
  async () => {
    const tenant = await aTenant();
    const image = await operatorImage();
    await installOperator(tenant.cluster, image, ['manager.nodeLostAfterSeconds=20']);
    onTestFinished(() => installOperator(tenant.cluster, image));
    const { endsWell } = await aServingCluster(tenant, 'silent', { replicas: 3 });
    const before = await names(tenant);
    const { node, member } = await aVictim(tenant);
    onTestFinished(async () => {
      await newMachine(tenant, node);
    });
    await destroyNode(tenant.cluster, node);
    await isReplaced(tenant, member, before);
    // until a user declares the node lost for good, the operator cannot know that its Pod has ended
    await tenant.cluster.kubectl(['delete', 'node', node]);
    await endsWell(3);
  },
);

test.runIf(process.env['DEV_TEST_ALL'])(
  'a drain evicts one member and not two, and the member comes back to its volume',
  async () => {
    const tenant = await aTenant();
    const { writer, endsWell } = await aServingCluster(tenant, 'drained', { replicas: 3 });
    const before = await names(tenant);
    onTestFinished(async () => {
      for (const node of ['node-2', 'node-3']) await uncordon(tenant.cluster, node);
    });
    await drain(tenant.cluster, 'node-3', 120);
    await writer.served();
    await expect(drain(tenant.cluster, 'node-2', 20)).rejects.toThrow(/disruption budget|timed out|timeout/);
    await writer.served();
    for (const node of ['node-2', 'node-3']) await uncordon(tenant.cluster, node);
    await endsWell(3);
    expect(await names(tenant)).toEqual(before);
  },
);

test.runIf(process.env['DEV_TEST_ALL'])(
  'members in memory move to other nodes when their nodes are drained one after the other',
  async () => {
    const tenant = await aTenant();
    const { endsWell } = await aServingCluster(tenant, 'movers', { replicas: 3, ...IN_MEMORY });
    onTestFinished(async () => {
      for (const node of ['node-2', 'node-3']) await uncordon(tenant.cluster, node);
    });
    for (const node of ['node-3', 'node-2']) {
      await drain(tenant.cluster, node, 180);
      await settled(tenant, 'movers');
      await uncordon(tenant.cluster, node);
    }
    await endsWell(3);
  },
);
