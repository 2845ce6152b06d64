/** The cost of a cluster: every write has a reason, none is refused, and an idle cluster causes none. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { findCondition } from '../../src/domain/conditions.ts';
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

const writes = (): readonly string[] => rig.writes().map(({ verb, resource, code }) => `${verb} ${resource} ${code}`);

test('three members need 12 creates, few updates, and nothing that the API server refuses', async () => {
  await rig.createCluster({ replicas: 3 });
  await eventually(
    'a cluster of three',
    () => findCondition(rig.cluster?.status?.conditions, 'Progressing')?.reason === 'Reconciled' || undefined,
    { timeoutMs: 90_000, seen: () => rig.cluster?.status },
  );
  await eventually('every answer', () => rig.writes().every(({ code }) => code !== undefined) || undefined);
  const made = writes();
  expect(made.filter((write) => !/ 20[01]$/.test(write))).toEqual([]);
  expect(made.filter((write) => write.startsWith('create '))).toHaveLength(12);
  expect(made.filter((write) => write.startsWith('delete '))).toEqual([]);
  // 29 on a quick machine; a slow one has intermediate states, which are reported.
  expect(made.length, made.join('\n')).toBeLessThanOrEqual(33);
  const changes = rig.membershipCalls().map(({ method }) => method);
  expect(changes.filter((method) => method === 'Cluster/MemberAdd')).toHaveLength(2);
}, 150_000);

test('an idle cluster causes no writes, also while clients write', async () => {
  await stands('coalesced status writes', writes, 3_000);
  const client = new Client(rig);
  const before = writes().length;
  await pause(20_000);
  expect(writes().slice(before)).toEqual([]);
  expect(await client.end(), ABOUT_DATA).toMatchObject({ lost: [], acknowledged: expect.any(Number) });
}, 120_000);
