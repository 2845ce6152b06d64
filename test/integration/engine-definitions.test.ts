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
const late = crds.filter(({ metadata }) => metadata.name === SNAPSHOTS);

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
  ({ code, text }: Awaited<ReturnType<typeof page>>): boolean =>
    code === 503 &&
    text.split('\n').filter(Boolean).length === names.length &&
    names.every((name) => text.includes(advice(name)));
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
  const names = crds.map(({ metadata }) => metadata.name);
  await says('all of them', saysOnly(names));
  // The page may be ahead of the log.
  await eventually(
    'all of them in the log',
    () => names.every((name) => operator.log().includes(advice(name))) || undefined,
  );
  for (const name of names) expect(operator.log().split(advice(name))).toHaveLength(2); // reported once
  expect(await page('/healthz')).toEqual({ code: 200, text: 'ok\n' });
});

test('with one still missing it names that one', async () => {
  await installCrds(
    world.admin,
    crds.filter((crd) => !late.includes(crd)),
  );
  await says('only the last one', saysOnly([SNAPSHOTS]));
});

test('when the last one is installed, it becomes ready by itself and reconciles what exists', async () => {
  const namespace = await world.namespace();
  await world.createCluster(namespace, 'db');
  await installCrds(world.admin, late);
  await says('ready', ({ code }) => code === 200);
  await world.condition(namespace, 'db', 'Available', 'True');
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
  await says('the one that went', saysOnly([SNAPSHOTS]));
  const namespace = await world.namespace();
  await world.createCluster(namespace, 'db');
  await world.condition(namespace, 'db', 'Available', 'True');
  await installCrds(world.admin, late);
  await says('ready again', ({ code }) => code === 200);
  await looksAtSnapshots();
});
