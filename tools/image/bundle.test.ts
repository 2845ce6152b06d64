import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { root } from '../paths.ts';
import { run } from '../process.ts';
import { bundle, licensesOf } from './bundle.ts';
import { bundles } from './operator.ts';

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'bundle-'));
  await symlink(join(root, 'node_modules'), join(dir, 'node_modules'));
});
afterAll(() => rm(dir, { recursive: true, force: true }));

const PROGRAM = `
import { reportCrashes } from '${join(root, 'src/bin/crash.ts')}';
import { pino } from 'pino';
import { Registry, collectDefaultMetrics } from 'prom-client';
const register = new Registry();
collectDefaultMetrics({ register });
pino().info({ main: import.meta.main, metrics: (await register.metrics()).length > 0 }, 'up');
reportCrashes();
const fail = (): never => { throw new Error('as expected', { cause: 7 }); };
fail();
`;

test('a bundle with CommonJS dependencies runs alone, and its stack traces name lines of the source', async () => {
  const entry = join(dir, 'program.ts');
  await writeFile(entry, PROGRAM);
  const made = await bundle(entry, 'manager.mjs');
  const { code, map } = made;
  const alone = await mkdtemp(join(dir, 'alone-'));
  await writeFile(join(alone, 'manager.mjs'), code);
  await writeFile(join(alone, 'manager.mjs.map'), map);
  const ran = await run(process.execPath, [join(alone, 'manager.mjs')], { allowFailure: true });
  expect(ran.stdout).toContain('"main":true,"metrics":true,"msg":"up"');
  expect(ran.stderr).toMatch(/at fail \(.*program\.ts:9:\d+\)/);
  expect(ran.stderr).toContain('cause');
  expect((await licensesOf([made])).toString()).toMatch(/==== pino \d.*Permission is hereby granted/s);
});

test('the operator starts the agent for the sub-command of the Go operator', { timeout: 60_000 }, async () => {
  const folder = await mkdtemp(join(dir, 'image-'));
  for (const [i, name] of ['manager.mjs', 'agent.mjs'].entries())
    await writeFile(join(folder, name), (await bundles('src/bin'))[i]?.code ?? '');
  await symlink('manager.mjs', join(folder, 'manager'));
  const env = { ...process.env, AGENT_RESULT: join(folder, 'result') };
  const ran = await run(process.execPath, [join(folder, 'manager'), 'snapshot-agent'], { allowFailure: true, env });
  expect([ran.code, ran.stdout]).toEqual([2, '']);
  expect(ran.stderr).toContain('ETCD_ENDPOINTS is not set');
});

test('the clients of stores are in the agent and not in the operator', { timeout: 60_000 }, async () => {
  const [operator, agent] = await bundles('src/bin');
  const stores = /\/(@aws-sdk|@smithy|@azure|google-auth-library|gaxios)(\/|$)/;
  expect(operator?.packages.filter((each) => stores.test(each))).toEqual([]);
  expect(agent?.packages).toEqual(
    expect.arrayContaining(
      ['@aws-sdk/client-s3', '@azure/storage-blob', 'google-auth-library'].map((each) => `node_modules/${each}`),
    ),
  );
  const own = operator?.code.toString() ?? '';
  expect(['openStore', 'openVolume', 'AGENT_ROOT'].filter((word) => own.includes(word))).toEqual([]);
});
