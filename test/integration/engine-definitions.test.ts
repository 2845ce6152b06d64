/** An operator that starts before the CRDs of its kinds are installed, or still runs when one of them is deleted. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { crds } from '../../src/api/crds.ts';
import { etcdSnapshots } from '../../src/api/names.ts';
import type { Resource } from '../../src/kube/object.ts';
import { type Written, written } from '../support/servers/api-server.ts';
import { installCrds } from '../support/servers/control-plane.ts';
import { type Child, eventually, freePort } from '../support/servers/processes.ts';
import { startWorld, type World } from '../support/servers/world.ts';

const snapshots: Resource<Written> = etcdSnapshots;
const SNAPSHOTS = 'etcdsnapshots.etcd-operator.cozystack.io';
const advice = (name: string): string =>
  `the CustomResourceDefinition ${name} is not installed: install the CRDs of the chart (crds.enabled=true)`;
const CLUSTERS = 'etcdclusters.etcd-operator.cozystack.io';
const NEEDED = [CLUSTERS, 'etcdmembers.etcd-operator.cozystack.io'];
/** Of a kind without which the operator works. */
const note = (name: string): string =>
  `the CustomResourceDefinition ${name} is not installed: objects of this kind are not reconciled`;
const all = crds.map(({ metadata }) => metadata.name);
const optional = all.filter((name) => !NEEDED.includes(name));
const install = (names: readonly string[]) =>
  installCrds(
    world.admin,
    crds.filter(({ metadata }) => names.includes(metadata.name)),
  );

let world: World;
let operator: Child;
let port: number;
beforeAll(async () => {
  world = await startWorld([]);
  port = await freePort();
  operator = world.startOperator(`--health-probe-bind-address=127.0.0.1:${port}`);
});
afterAll(async () => {
  await world?.stop();
});

const page = async (path: string): Promise<{ readonly code: number; readonly text: string }> => {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`);
  return { code: answer.status, text: await answer.text() };
};
const says = (what: string, holds: (answer: Awaited<ReturnType<typeof page>>) => boolean) =>
  eventually(
    what,
    async () => {
      const answer = await page('/readyz');
      return holds(answer) ? answer : undefined;
    },
    { seen: () => operator.log().slice(-2_000) },
  );
/** It reports that these CRDs are missing, and nothing else: its other caches are filled. */
const saysOnly =
  (names: readonly string[]) =>
  ({ code, text }: Awaited<ReturnType<typeof page>>): boolean => {
    const isReady = !names.some((name) => NEEDED.includes(name));
    const lines = text.split('\n').filter(Boolean);
    return (
      code === (isReady ? 200 : 503) &&
      lines.length === names.length + (isReady ? 1 : 0) &&
      names.every((name) => text.includes((NEEDED.includes(name) ? advice : note)(name)))
    );
  };
const installed = (name: string): Promise<unknown> =>
  world.admin.transport.json(`/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${name}`);

/** The operator has reconciled a snapshot. */
async function looksAtSnapshots(): Promise<void> {
  const namespace = await world.namespace();
  const spec = { clusterRef: { name: 'db' }, destination: { pvc: { claimName: 'c' } } };
  await world.admin.create(snapshots, written(snapshots, namespace, 'one', spec));
  await eventually('its condition', async () => {
    const found = await world.admin.get(snapshots, { namespace, name: 'one' });
    return found?.status?.['conditions'] ? true : undefined;
  });
}

test('without CRDs it is not ready, reports which are missing and what to do, and stays alive', async () => {
  await says('all of them', saysOnly(all));
  // The page may be ahead of the log.
  const texts = [...NEEDED.map(advice), ...optional.map(note)];
  await eventually('all of them in the log', () => texts.every((text) => operator.log().includes(text)) || undefined);
  for (const text of texts) expect(operator.log().split(text)).toHaveLength(2); // reported once
  expect(await page('/healthz')).toEqual({ code: 200, text: 'ok\n' });
});

test('with one that it needs still missing it names that one', async () => {
  await install(NEEDED.filter((name) => name !== CLUSTERS));
  await says('all but one', saysOnly([CLUSTERS, ...optional]));
});

test('without the CRDs of snapshots and defragmentation it is ready, and looks after clusters', async () => {
  await install([CLUSTERS]);
  await says('ready', saysOnly(optional));
  const namespace = await world.namespace();
  await world.createCluster(namespace, 'db');
  await world.condition(namespace, 'db', 'Available', 'True');
});

test('when they are installed, it reconciles what exists by itself', async () => {
  await install(optional);
  await says('ready', saysOnly([]));
  await looksAtSnapshots();
});

test('when one is deleted while it runs, it reports it, continues with the others, and with that one when it is back', async () => {
  await world.admin.transport.json(`/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${SNAPSHOTS}`, {
    method: 'DELETE',
  });
  await eventually('the CRD to be deleted', () =>
    installed(SNAPSHOTS).then(
      () => undefined,
      () => true,
    ),
  );
  await says('the one that was deleted', saysOnly([SNAPSHOTS]));
  const namespace = await world.namespace();
  await world.createCluster(namespace, 'db');
  await world.condition(namespace, 'db', 'Available', 'True');
  await install([SNAPSHOTS]);
  await says('ready again', saysOnly([]));
  await looksAtSnapshots();
});
