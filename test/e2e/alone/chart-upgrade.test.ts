/** `helm upgrade` from the Go operator's chart to ours: in place, and never with two active operators. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { PAUSE_IMAGE } from '../../../local/images.ts';
import { operatorImage, operatorValues } from '../../../local/operator.ts';
import { LEASE_NAME } from '../../../src/api/names.ts';
import { chartDir, root } from '../../../tools/paths.ts';
import { aTenant, becomes, KIND, MEMBER_KIND, type Tenant } from '../../support/journeys/journey.ts';

const RELEASE = 'old';
const DEPLOYMENT = 'old-etcd-operator';

/** The Lease as the Go operator's client library writes it, renewed now. */
async function renewAsGoOperator(tenant: Tenant): Promise<void> {
  const now = new Date().toISOString().replace(/Z$/, '000Z');
  const spec = {
    holderIdentity: `${DEPLOYMENT}-go_1`,
    leaseDurationSeconds: 15,
    acquireTime: now,
    renewTime: now,
    leaseTransitions: 0,
  };
  const metadata = { name: LEASE_NAME, namespace: tenant.namespace };
  await tenant.cluster.apply([{ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec }]);
}
const holder = (tenant: Tenant): Promise<string> =>
  tenant.kubectl('get', 'lease', LEASE_NAME, '-o', 'jsonpath={.spec.holderIdentity}');

test('S8: the release is upgraded in place to Roles of its namespace, and the new operator acts only after the old Lease has expired', async () => {
  const tenant = await aTenant();
  const target = ['--namespace', tenant.namespace, '--wait', '--timeout', '90s'];
  const goChart = join(root, 'test', 'support', 'journeys', 'go-chart');
  await tenant.cluster.helm(['install', RELEASE, goChart, ...target, '--set', `image=${PAUSE_IMAGE}`]);
  onTestFinished(async () => {
    await tenant.cluster.helm(['uninstall', RELEASE, '--namespace', tenant.namespace]);
  });
  const before = await tenant.get('deployment', DEPLOYMENT);
  await renewAsGoOperator(tenant);
  // An old Pod may still run somewhere: the new operator must not lead before there is something that it must not do.
  const living = new AbortController();
  const renewing = (async () => {
    while (!living.signal.aborted) {
      await sleep(3_000);
      await renewAsGoOperator(tenant);
    }
  })();
  renewing.catch(() => living.abort()); // reported where it is awaited
  onTestFinished(async () => {
    living.abort();
    await renewing.catch(() => undefined);
  });

  // The test's main operator watches every namespace; it must not be the one that acts here.
  await tenant.cluster.kubectl(['-n', 'etcd-operator-system', 'scale', 'deployment/etcd-operator', '--replicas=0']);
  onTestFinished(async () => {
    await tenant.cluster.kubectl(['-n', 'etcd-operator-system', 'scale', 'deployment/etcd-operator', '--replicas=1']);
  });
  await tenant.cluster.kubectl(['-n', 'etcd-operator-system', 'wait', '--for=delete', 'pod', '--all', '--timeout=60s']);
  const values = [
    ...operatorValues(await operatorImage()),
    'crds.enabled=false',
    // Without anything cluster-scoped but the admission policies.
    `manager.watchNamespaces={${tenant.namespace}}`,
    'manager.namespaced=true',
    'manager.clusterRole=false',
    'kubeRbacProxy.enabled=false',
  ];
  await tenant.cluster.helm(['upgrade', RELEASE, chartDir, ...target, ...values.flatMap((value) => ['--set', value])]);

  const after = await tenant.get('deployment', DEPLOYMENT);
  expect(after.metadata.uid).toBe(before.metadata.uid);
  const [pod, ...others] = await becomes('one Pod of the operator', async () => {
    const pods = await tenant.list('pods', `app.kubernetes.io/instance=${RELEASE}`);
    expect(pods).toHaveLength(1);
    return pods;
  });
  expect(others).toEqual([]);
  expect(JSON.stringify(pod?.spec)).toContain('localhost/etcd-operator');

  const clusterRoles = () => tenant.cluster.kubectl(['get', 'clusterroles,clusterrolebindings', '-o', 'name']);
  expect(await clusterRoles()).toContain(`${DEPLOYMENT}-go-operator`);
  await tenant.create('patient');
  living.abort();
  await renewing; // renewed once more, and then never again
  await sleep(5_000);
  expect(await holder(tenant)).toBe(`${DEPLOYMENT}-go_1`);
  expect(await tenant.list(MEMBER_KIND)).toEqual([]);
  const account = `system:serviceaccount:${tenant.namespace}:${DEPLOYMENT}`;
  expect(await tenant.kubectl('auth', 'can-i', 'update', 'leases', `--as=${account}`)).toContain('yes');

  await becomes('the new operator to lead', async () => expect(await holder(tenant)).toContain(pod?.metadata.name));
  await becomes('the permissions of the Go operator to be deleted', async () =>
    expect(await clusterRoles()).not.toContain(DEPLOYMENT),
  );
  await tenant.available('patient');
  await tenant.kubectl('delete', KIND, 'patient', '--wait=true'); // while its operator runs and releases the finalizers of the members
  await becomes('its members to be deleted', async () => expect(await tenant.list(MEMBER_KIND)).toEqual([]));
});
