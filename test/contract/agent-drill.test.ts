/** The agent drills stored snapshots with real etcd of each version, and detects manifests that do not match. */
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Manifest } from '../../src/agent/format/manifest.ts';
import { HOPELESS_EXIT } from '../../src/domain/agent-result.ts';
import { type DrillTask, MOUNTS } from '../../src/domain/agent-task.ts';
import { Agent, type Run } from '../support/servers/agent.ts';
import { ask, ETCD_VERSIONS, type EtcdLab, type EtcdVersion, startLab } from '../support/servers/etcd.ts';
import { eventually } from '../support/servers/processes.ts';
import {
  KEY,
  store,
  type Taken,
  type TakenByAll,
  takeAll,
  toolsOf,
  withDamagedPage,
} from '../support/servers/snapshot-files.ts';
import { kindOf, must } from './etcd-world.ts';

vi.setConfig({ testTimeout: 240_000 }); // each test starts several processes, and many run in parallel
let lab: EtcdLab;
let taken: TakenByAll;
let rooms = 0;

beforeAll(async () => {
  lab = await startLab();
  taken = await takeAll(lab);
}, 120_000);
afterAll(() => lab.close());

async function room(version: EtcdVersion) {
  const folder = join(lab.folder, `room-${++rooms}`);
  mkdirSync(folder);
  const { address, endpoint } = lab.node(`unused-${rooms}`, { version });
  const agent = new Agent(folder);
  const task = (more: Partial<DrillTask> = {}): DrillTask => ({
    task: 'drill',
    from: { kind: 'pvc', root: MOUNTS.source },
    key: 'x.db',
    encrypted: false,
    version,
    bumpRevision: 1_000_000,
    ...more,
  });
  const tools = { ...(await toolsOf(version)), DRILL_ADDRESS: address };
  const start = (more?: Partial<DrillTask>, other = {}) => agent.start(task(more), { ...tools, ...other });
  const drill = (more?: Partial<DrillTask>, other = {}): Promise<Run> => start(more, other).ended;
  /** `unreachable` once the drill's etcd has ended. */
  const isOver = async () => kindOf(await lab.client.status(ask({ endpoint }, 1_000)));
  return { agent, start, drill, isOver };
}

const passed = ({ result, output }: Run) => {
  if (!result?.ok || result.task !== 'drill') throw new Error(`the drill failed: ${output}`);
  const { durationMilliseconds, recoveryMilliseconds = 0, ...rest } = result;
  expect(recoveryMilliseconds).toBeGreaterThan(0);
  expect(durationMilliseconds).toBeGreaterThan(recoveryMilliseconds); // two restores, of which one counts
  return rest;
};
const failure = ({ result, output }: Run) => {
  if (!result || result.ok) throw new Error(`no failure: ${output}`);
  return result;
};

describe.concurrent.for(ETCD_VERSIONS)('etcd %s', (version) => {
  test.for(['open', 'guarded'] as const)(
    'the drill finds all keys of a snapshot (%s), and its etcd has ended',
    async (which) => {
      const at = await room(version);
      const { revision, totalKeys, ...source } = taken[version][which];
      await store(at.agent, 'x.db', { ...source, revision, totalKeys });
      expect(passed(await at.drill())).toEqual({ ok: true, task: 'drill', revision, totalKeys, hashCompared: true });
      expect(await at.isOver()).toBe('unreachable');
    },
  );

  test.for<[string, (source: Taken) => Partial<Manifest>, string]>([
    ['a higher revision was acknowledged', ({ revision }) => ({ revision: revision + 1 }), 'was acknowledged'],
    ['there were more keys', ({ totalKeys }) => ({ totalKeys: totalKeys + 1 }), 'keys at revision'],
    ['the keys had another hash', ({ hash }) => ({ hash: { ...hash, hash: hash.hash ^ 1 } }), 'hash of its keys'],
  ])('the drill fails when the manifest says that %s', async ([, lie, words]) => {
    const at = await room(version);
    const source = taken[version].open;
    await store(at.agent, 'x.db', source, { manifest: lie(source) });
    const { reason, message } = failure(await at.drill());
    expect([reason, message]).toEqual(['DrillFailed', expect.stringContaining(words)]);
    expect(await at.isOver()).toBe('unreachable');
  });

  test('a page that was damaged in the member: every digest matches, and the drill reports SnapshotDamaged', async () => {
    const at = await room(version);
    await store(at.agent, 'x.db', withDamagedPage(taken[version].open));
    const run = await at.drill();
    const { reason, message } = failure(run);
    expect([reason, message, run.code]).toEqual([
      'SnapshotDamaged',
      expect.stringContaining('etcdutl snapshot status failed'),
      HOPELESS_EXIT,
    ]);
  });
});

describe.concurrent('a drill', () => {
  const version = '3.6.16';
  const script = (at: { readonly agent: Agent }, text: string): string => {
    const path = join(at.agent.root, 'etcd');
    writeFileSync(path, `#!/bin/sh\n${text}\n`);
    chmodSync(path, 0o755);
    return path;
  };

  test('whose etcd is killed, as at a memory limit, says nothing about the snapshot, and is repeated', async () => {
    const at = await room(version);
    await store(at.agent, 'x.db', taken[version].open);
    const run = await at.drill({}, { ETCD_PATH: script(at, 'kill -9 $$') });
    expect([failure(run).reason, run.code]).toEqual(['OutOfMemory', 1]);
    expect(failure(run).message).toContain('drill.resources.limits.memory');
  });

  test('whose etcd exits by itself reports that the data cannot be served', async () => {
    const at = await room(version);
    await store(at.agent, 'x.db', taken[version].open);
    const run = await at.drill({}, { ETCD_PATH: script(at, 'echo panic: it is broken >&2; exit 2') });
    expect([failure(run).reason, run.code]).toEqual(['DrillFailed', HOPELESS_EXIT]);
  });

  test('that is interrupted, as by a drain, says nothing about the snapshot, and is repeated', async () => {
    const at = await room(version);
    await store(at.agent, 'x.db', taken[version].open);
    const serving = join(at.agent.root, 'serving');
    const { process: child, ended } = at.start({}, { ETCD_PATH: script(at, `touch ${serving}; exec sleep 600`) });
    await eventually('its etcd runs', () => existsSync(serving) || undefined, { timeoutMs: 120_000 });
    await child.stop('SIGTERM');
    const run = await ended;
    expect([failure(run).reason, run.code]).toEqual(['TimedOut', 1]);
  });

  test('of a full cluster without a key writes to it: the NOSPACE alarm of the source is disarmed', async () => {
    const at = await room(version);
    const node = await lab.seed({ version });
    const { memberId } = must(await lab.client.status(ask(node)));
    must(await lab.client.maintenance.activate(ask(node), { memberId, alarm: 'noSpace' }));
    const bytes = Buffer.concat(await Array.fromAsync(lab.client.maintenance.snapshot(ask(node, 60_000))));
    const { hash: full } = taken[version].open;
    const hash = { ...full, revision: 1, compactRevision: 3 }; // of another past, so that it is not compared
    await store(at.agent, 'x.db', { ...taken[version].open, bytes, revision: 1, totalKeys: 0, hash });
    expect(passed(await at.drill())).toMatchObject({ revision: 1, totalKeys: 0, hashCompared: false });
  });

  test('uses no more of the node than it may', async () => {
    const at = await room(version);
    await store(at.agent, 'x.db', taken[version].open);
    expect(failure(await at.drill({ limitBytes: 100 * 2 ** 20 }))).toMatchObject({
      reason: 'NoSpace',
      message: expect.stringContaining('100 MiB are free'),
    });
  });

  test('does not compare hashes with different compact revisions', async () => {
    const at = await room(version);
    const source = taken[version].open;
    await store(at.agent, 'x.db', source, { manifest: { hash: { ...source.hash, compactRevision: 3, hash: 1 } } });
    expect(passed(await at.drill())).toMatchObject({ hashCompared: false });
  });

  test('reads a compressed and encrypted snapshot', async () => {
    const at = await room(version);
    await store(at.agent, 'x.db.zst.enc', taken[version].open, { compression: 'zstd', key: KEY });
    at.agent.mount(MOUNTS.encryption, { key: KEY.toString('base64') });
    expect(passed(await at.drill({ key: 'x.db.zst.enc', encrypted: true }))).toMatchObject({ hashCompared: true });
  });

  test('starts over in the scratch volume of a killed drill', async () => {
    const at = await room(version);
    await store(at.agent, 'x.db', taken[version].open);
    mkdirSync(join(at.agent.root, MOUNTS.scratch, 'data/member'), { recursive: true });
    expect(passed(await at.drill())).toMatchObject({ revision: taken[version].open.revision });
  });

  test('of a snapshot without a manifest fails', async () => {
    const at = await room(version);
    await store(at.agent, 'x.db', taken[version].open, { manifest: 'none' });
    expect(failure(await at.drill())).toMatchObject({
      reason: 'DrillFailed',
      message: expect.stringContaining('no manifest'),
    });
  });

  test('of a damaged snapshot reports it, and starts no etcd', async () => {
    const at = await room(version);
    await store(at.agent, 'x.db', taken[version].open);
    at.agent.mount(MOUNTS.source, { 'x.db': Buffer.alloc(taken[version].open.bytes.length) });
    expect(failure(await at.drill())).toMatchObject({ reason: 'SnapshotDamaged' });
    expect(existsSync(join(at.agent.root, MOUNTS.scratch, 'data/member'))).toBe(false);
  });
});
