/** What a cluster costs: every write is there for a reason, none is refused, and at rest there is none. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { findCondition } from '../../src/api/conditions.ts';
import { ABOUT_DATA } from '../support/about-data.ts';
import { eventually, pause, stands } from '../support/servers/processes.ts';
import { startWorld, type World } from '../support/servers/world.ts';
import { Client } from '../sweep/client.ts';
import { Ledger } from '../sweep/ledger.ts';
import { Rig } from '../sweep/rig.ts';

let world: World;
let ledger: Ledger;
let rig: Rig;
beforeAll(async () => {
  world = await startWorld();
  ledger = await new Ledger(world.admin).synced();
  rig = await Rig.build(world, ledger);
  await rig.start();
}, 120_000);
afterAll(async () => {
  await rig?.stop();
  ledger?.stop();
  await world?.stop();
});

const told = (): readonly string[] => rig.writes().map(({ verb, resource, code }) => `${verb} ${resource} ${code}`);

test('three members take 12 creations, few updates, and nothing that the API server refuses', async () => {
  await rig.createCluster({ replicas: 3 });
  await eventually(
    'a cluster of three',
    () => findCondition(rig.cluster?.status?.conditions, 'Progressing')?.reason === 'Reconciled' || undefined,
    { timeoutMs: 90_000, seen: () => rig.cluster?.status },
  );
  await eventually('every answer', () => rig.writes().every(({ code }) => code !== undefined) || undefined);
  const made = told();
  expect(made.filter((write) => !/ 20[01]$/.test(write))).toEqual([]);
  expect(made.filter((write) => write.startsWith('create '))).toHaveLength(12);
  expect(made.filter((write) => write.startsWith('delete '))).toEqual([]);
  // 29 on a quick machine; a slow one shows moments in between, and they are told.
  expect(made.length, made.join('\n')).toBeLessThanOrEqual(33);
  const changes = rig.membershipCalls().map(({ method }) => method);
  expect(changes.filter((method) => method === 'Cluster/MemberAdd')).toHaveLength(2);
}, 150_000);

test('at rest it writes nothing, also while clients write', async () => {
  await stands('what may be told a little later', told, 3_000);
  const client = new Client(rig);
  const before = told().length;
  await pause(20_000);
  expect(told().slice(before)).toEqual([]);
  expect(await client.end(), ABOUT_DATA).toMatchObject({ lost: [], acknowledged: expect.any(Number) });
}, 120_000);
