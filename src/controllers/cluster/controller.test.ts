/** Which changes lead to a look at the cluster that they belong to. */
import { expect, test } from 'vitest';
import { aCluster, FORMED } from '../../../test/support/builders/builders.ts';
import { hear, member, modelWorld, podOf } from '../../../test/support/builders/ports.ts';
import { aSchedule } from '../../../test/support/builders/schedules.ts';
import { CERTIFICATE_NAME_ANNOTATION, CLUSTER_LABEL } from '../../api/names.ts';
import type { Pod, PodDisruptionBudget } from '../../gen/kube.ts';
import { secrets } from '../../kube/resources.ts';
import { wireCluster } from './controller.ts';

function aWorld() {
  const world = modelWorld();
  const looks: (string | undefined)[] = [];
  wireCluster(world, (_key, reason) => looks.push(reason));
  const news = (): number => looks.splice(0).length;
  return { ...world, news, looks };
}

const labelled = (pod: Pod, labels: object, status: object = {}): Pod => ({
  ...pod,
  metadata: { ...pod.metadata, resourceVersion: '9', labels: { ...pod.metadata.labels, ...labels } },
  status: { ...pod.status, ...status },
});

test("a Pod's state is news, the labels that its member gives it are not", () => {
  const { pods, news } = aWorld();
  const pod = podOf(1);
  hear(pods, pod);
  expect(news()).toBeGreaterThan(0);
  hear(pods, labelled(pod, { role: 'voter' }));
  expect(news()).toBe(0);
  hear(pods, labelled(pod, { role: 'voter' }, { phase: 'Failed' }));
  expect(news()).toBeGreaterThan(0);
  pods.apply('', { type: 'delete', object: pod });
  expect(news()).toBeGreaterThan(0);
});

test('what a budget asks for is news, what Kubernetes counts in its status is not', () => {
  const { budgets, news } = aWorld();
  const metadata = { namespace: 'ns', name: 'db', uid: 'budget', labels: { [CLUSTER_LABEL]: 'db' } };
  const budget = (minAvailable: number, healthy: number, version: string): PodDisruptionBudget => ({
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { ...metadata, resourceVersion: version },
    spec: { minAvailable },
    status: { currentHealthy: healthy, desiredHealthy: 2, disruptionsAllowed: 0, expectedPods: 3 },
  });
  hear(budgets, budget(2, 0, '1'));
  expect(news()).toBeGreaterThan(0);
  hear(budgets, budget(2, 3, '2'));
  expect(news()).toBe(0);
  hear(budgets, budget(1, 3, '3'));
  expect(news()).toBeGreaterThan(0);
});

test('whatever a member says is news', () => {
  const { members, news } = aWorld();
  hear(members, member(1));
  expect(news()).toBeGreaterThan(0);
  hear(members, member(1, { status: { isVoter: true } }));
  expect(news()).toBeGreaterThan(0);
});

test('a cluster that nobody has begun with waits for those that are under way', () => {
  const { clusters, looks } = aWorld();
  hear(clusters, aCluster());
  expect(looks.splice(0)).toEqual(['resync']);
  hear(clusters, aCluster({ status: { readyMembers: 0 } }));
  expect(looks.splice(0)).toEqual(['change']);
});

test('what cert-manager says is news, and so is that it has come; Secrets are read again with it', async () => {
  const { certificates, clusters, client, credentials, news } = aWorld();
  const issuerRef = { name: 'i' };
  const cluster = aCluster({ spec: { tls: { peer: { certManager: { issuerRef } } } }, status: FORMED });
  hear(clusters, cluster, { ...aCluster(), metadata: { namespace: 'ns', name: 'plain' } });
  news();
  certificates.apply('', { type: 'synced', resourceVersion: '1' });
  expect(news()).toBe(1);
  const found = async () => (await credentials.view(cluster)).certificates[0]?.findings[0]?.is;
  expect(await found()).toBe('secretMissing');
  await client.create(secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace: 'ns', name: 'db-peer-tls', annotations: { [CERTIFICATE_NAME_ANNOTATION]: 'db-peer' } },
    data: {},
  });
  expect(await found()).toBe('secretMissing');
  const labels = { [CLUSTER_LABEL]: 'db' };
  const spec = { secretName: 'db-peer-tls', issuerRef };
  const metadata = { namespace: 'ns', name: 'db-peer', labels };
  hear(certificates, { apiVersion: 'cert-manager.io/v1', kind: 'Certificate', metadata, spec });
  expect(news()).toBe(1);
  expect(await found()).toBe('keyMissing');
});

test('what a schedule demands and has stored is news for its cluster, what else it says is not', () => {
  const { schedules, news } = aWorld();
  const stored = (time: string) => ({ lastSuccessful: { name: 'x', time, artifact: { uri: 'u' } } });
  hear(schedules, aSchedule({ recoveryPoint: '1h' }));
  expect(news()).toBeGreaterThan(0);
  hear(schedules, aSchedule({ recoveryPoint: '1h' }, { nextScheduleTime: '2026-03-01T01:00:00Z' }));
  expect(news()).toBe(0);
  hear(schedules, aSchedule({ recoveryPoint: '1h' }, stored('2026-03-01T01:00:00Z')));
  expect(news()).toBeGreaterThan(0);
  hear(schedules, aSchedule({ recoveryPoint: '1h', clusterRef: { name: 'other' } }, stored('2026-03-01T01:00:00Z')));
  expect(news()).toBe(2);
});
