/** Clusters of the Go operator keep running under ours: the same Pods, the same members, and they can be scaled. */
import { expect, onTestFinished, test } from 'vitest';
import { OPERATOR_NAMESPACE } from '../../../local/operator.ts';
import { settled } from '../../support/journeys/at-rest.ts';
import { asGoOperator } from '../../support/journeys/go-cluster.ts';
import type { GoCluster } from '../../support/journeys/go-manifests.ts';
import { type AnObject, aTenant, KIND, MEMBER_KIND, testCluster } from '../../support/journeys/journey.ts';
import { serving } from '../../support/journeys/serving.ts';

async function operators(count: 0 | 1): Promise<void> {
  const cluster = await testCluster();
  const inNamespace = ['-n', OPERATOR_NAMESPACE];
  await cluster.kubectl([...inNamespace, 'scale', 'deployment/etcd-operator', `--replicas=${count}`]);
  await (count === 0
    ? cluster.kubectl([...inNamespace, 'wait', '--for=delete', 'pod', '--all', '--timeout=60s'])
    : cluster.kubectl([...inNamespace, 'rollout', 'status', 'deployment/etcd-operator', '--timeout=90s']));
}

const identity = ({ metadata, status }: AnObject): string =>
  `${metadata.name} ${metadata.uid} ${JSON.stringify(status?.containerStatuses?.map((each) => each.restartCount))}`;

const CASES: readonly (readonly [string, GoCluster])[] = [
  [
    'that the Go operator created',
    { name: 'inherited', members: ['inherited-x7k2p', 'inherited-b4m9q', 'inherited-t2v8w'] },
  ],
  [
    'that the Go operator itself had adopted',
    {
      name: 'legacy',
      members: ['legacy-0', 'legacy-1', 'legacy-2'],
      adopted: { service: 'legacy-headless', dataDir: 'default.etcd' },
    },
  ],
];

const inThisRun = CASES.filter(([, go]) => go.adopted !== undefined || process.env['DEV_TEST_ALL']);

test.each(inThisRun)(
  'a cluster %s keeps its Pods, scales up and down and survives the loss of one',
  async (_whose, go) => {
    const tenant = await aTenant();
    await operators(0);
    onTestFinished(() => operators(1));
    await asGoOperator(tenant, go);
    const before = (await tenant.list('pods')).map(identity);
    const { endsWell } = await serving(tenant, go.name);

    await operators(1);
    await settled(tenant, go.name);
    expect((await tenant.list('pods')).map(identity)).toEqual(before);
    const cluster = await tenant.get(KIND, go.name);
    const owners = (await tenant.list(MEMBER_KIND)).flatMap((member) => member.metadata.ownerReferences ?? []);
    expect(owners).toEqual(
      go.members.map(() => expect.objectContaining({ uid: cluster.metadata.uid, controller: true })),
    );
    await tenant.edit(go.name, { replicas: 5 });
    await settled(tenant, go.name);
    expect((await tenant.list('pods')).map(identity)).toEqual(expect.arrayContaining(before));
    expect(await tenant.list(MEMBER_KIND)).toHaveLength(5);
    await tenant.edit(go.name, { replicas: 3 });
    await settled(tenant, go.name);
    // created again by ours, it finds its data and its address where the old Pod had them
    const [survivor] = await tenant.list(MEMBER_KIND);
    await tenant.kubectl('delete', 'pod', survivor?.metadata.name ?? '', '--wait=true');
    await endsWell(3);
    expect((await tenant.list(MEMBER_KIND)).map((member) => member.metadata.uid)).toContain(survivor?.metadata.uid);
  },
);
