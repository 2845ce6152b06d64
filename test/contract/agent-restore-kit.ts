/** A lab for the restore suites: agents with the tools of a version, and members that start from the restored data. */

import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, vi } from 'vitest';
import { exitCodeOf } from '../../src/domain/agent-result.ts';
import { MOUNTS, type RestoreTask } from '../../src/domain/agent-task.ts';
import type { Access } from '../../src/etcd/client.ts';
import { ABOUT_DATA } from '../support/about-data.ts';
import { Agent, type Run } from '../support/servers/agent.ts';
import { ask, type EtcdLab, type EtcdVersion, initialCluster, type Node, startLab } from '../support/servers/etcd.ts';
import { type Taken, toolsOf } from '../support/servers/snapshot-files.ts';
import { must } from './etcd-world.ts';

export const BUMP = 1_000_000;

export interface Scene {
  readonly agent: Agent;
  /** Of the version that restores; not started. */
  readonly node: Node;
  readonly task: (more?: Partial<RestoreTask>) => RestoreTask;
  readonly tools: Readonly<Record<string, string>>;
}

export interface Kit<T> {
  readonly lab: EtcdLab;
  readonly taken: T;
  readonly scene: (version: EtcdVersion) => Promise<Scene>;
  readonly expectKeys: (at: Scene, taken: Taken, access?: Access) => Promise<void>;
}

/** One lab for all tests of a file, with snapshots that are taken before the first test runs. */
export function kitWith<T>(take: (lab: EtcdLab) => Promise<T>): Kit<T> {
  vi.setConfig({ testTimeout: 240_000 }); // each test starts several processes, and many run in parallel
  let lab: EtcdLab;
  let taken: T;
  let agents = 0;
  beforeAll(async () => {
    lab = await startLab();
    taken = await take(lab);
  }, 120_000);
  afterAll(() => lab.close());
  return {
    get lab() {
      return lab;
    },
    get taken() {
      return taken;
    },
    scene: (version) => sceneIn(lab, ++agents, version),
    expectKeys: (at, of, access) => expectKeys(lab, at, of, access),
  };
}

async function sceneIn(lab: EtcdLab, number: number, version: EtcdVersion): Promise<Scene> {
  const name = `restored-${number}`;
  const folder = join(lab.folder, `agent-${number}`);
  mkdirSync(folder);
  const node = lab.node(name, { version });
  return {
    agent: new Agent(folder),
    node,
    tools: await toolsOf(version),
    task: (more) => ({
      task: 'restore',
      from: { kind: 'pvc', root: MOUNTS.source },
      key: 'backups/x.db',
      encrypted: false,
      dataDir: node.folder,
      member: name,
      initialCluster: initialCluster([node]),
      token: 'a-token',
      peerURL: node.peerURL,
      bumpRevision: BUMP,
      version,
      auth: false,
      ...more,
    }),
  };
}

async function expectKeys(lab: EtcdLab, at: Scene, { totalKeys }: Taken, access?: Access): Promise<void> {
  const asked = { ...ask(at.node), ...(access && { access }) };
  const { count } = must(await lab.client.kv.range(asked, { key: 'k', prefix: true, countOnly: true }));
  expect(Number(count), ABOUT_DATA).toBe(totalKeys);
  expect(must(await lab.client.kv.range(asked, { key: 'k0' })).kvs[0]?.value, ABOUT_DATA).toEqual(
    new TextEncoder().encode('again'),
  );
}

export const start = async ({ node }: Scene): Promise<void> => {
  node.start({ initialCluster: initialCluster([node]), state: 'existing' });
  await node.ready();
};
export const succeeded = ({ result, output }: Run) => {
  if (!result?.ok || result.task !== 'restore') throw new Error(`not restored: ${output}`);
  return result;
};
export const failure = ({ code, result, output }: Run) => {
  if (!result || result.ok) throw new Error(`no failure: ${output}`);
  expect(code).toBe(exitCodeOf(result));
  return result;
};
export const inside = ({ node }: Scene): readonly string[] =>
  existsSync(node.folder) ? readdirSync(node.folder).toSorted() : [];
