/** A lab with a member, an agent with a volume, and helpers for the snapshot suites. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'vitest';
import { build } from '../../local/binaries.ts';
import { type Manifest, parseManifest } from '../../src/agent/format/manifest.ts';
import type { Success } from '../../src/domain/agent-result.ts';
import { MOUNTS, type SnapshotTask } from '../../src/domain/agent-task.ts';
import type { Access } from '../../src/etcd/client.ts';
import { run as runTool } from '../../tools/process.ts';
import { heldWire } from '../support/faults/held-wire.ts';
import { Agent, type Run } from '../support/servers/agent.ts';
import { ask, ETCD_PARTS, type EtcdLab, type EtcdVersion, type Node, startLab } from '../support/servers/etcd.ts';
import { must } from './etcd-world.ts';

export const MIB = 1024 ** 2;
/** Each run of the agent is a process that loads its sources: that takes seconds on a busy machine. */
export const PATIENCE_MS = 240_000;

export interface Scene {
  readonly lab: EtcdLab;
  readonly agent: Agent;
  readonly volume: string;
  readonly task: (node: Pick<Node, 'endpoint'>, more?: Partial<SnapshotTask>) => SnapshotTask;
}

export const it = test.extend<{ scene: Scene }>({
  // oxlint-disable-next-line no-empty-pattern -- vitest reads the names of what a fixture needs
  scene: async ({}, use) => {
    const lab = await startLab();
    const agent = new Agent(lab.folder);
    const volume = join(agent.root, MOUNTS.volume);
    mkdirSync(volume, { recursive: true });
    const task: Scene['task'] = ({ endpoint }, more) => ({
      task: 'snapshot',
      snapshot: { namespace: 'ns', name: 'nightly', uid: 'uid-of-the-snapshot' },
      cluster: { name: 'db', uid: 'uid-of-the-cluster' },
      from: { member: 'db-abcde', endpoint, auth: false },
      to: { kind: 'pvc', root: MOUNTS.volume },
      prefix: 'backups',
      compression: 'none',
      encrypted: false,
      deadlineSeconds: 60,
      ...more,
    });
    await use({ lab, agent, volume, task });
    await agent.close();
    await lab.close();
  },
});

export const artifactOf = ({ result, output }: Run) => {
  if (!result?.ok || result.task !== 'snapshot') throw new Error(`no snapshot: ${output}`);
  return (result satisfies Success).artifact;
};
export const reasonOf = ({ code, result }: Run): string => `${code} ${result && !result.ok ? result.reason : 'ok'}`;
export const messageOf = ({ result }: Run): string => (result && !result.ok ? result.message : '');

export async function fill({ lab }: Scene, node: Node, count: number, size = 1000, access?: Access): Promise<void> {
  for (let i = 0; i < count; i++) {
    const value = new Uint8Array(size).fill(i % 251);
    must(await lab.client.kv.put({ ...ask(node, 30_000), ...(access && { access }) }, `key-${i}`, value));
  }
}

/** All files below the volume. */
export const filesIn = ({ volume }: Scene): string[] =>
  readdirSync(volume, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(volume.length + 1))
    .toSorted();

export const storedIn = ({ volume }: Scene, file: string): { readonly bytes: Buffer; readonly manifest: Manifest } => ({
  bytes: readFileSync(join(volume, 'backups', file)),
  manifest: parseManifest(readFileSync(join(volume, 'backups', `${file}.manifest.json`)), file),
});

interface ToolStatus {
  readonly revision: number;
  readonly totalSize: number;
}

/** The status that etcdutl reports for the file, after a restore from it, which succeeds only when the digest matches. */
export async function judged({ lab }: Scene, version: EtcdVersion, file: Buffer): Promise<ToolStatus> {
  const part = ETCD_PARTS[version];
  const { [part]: folder } = await build([part]);
  const saved = join(lab.folder, 'saved.db');
  writeFileSync(saved, file);
  const etcdutl = join(folder, 'etcdutl');
  await runTool(etcdutl, ['snapshot', 'restore', saved, `--data-dir=${join(lab.folder, 'restored')}`]);
  return JSON.parse((await runTool(etcdutl, ['snapshot', 'status', saved, '--write-out=json'])).stdout) as ToolStatus;
}

/** Where one version represents all. */
export const VERSION = '3.6.16';

/** A member with 32 MiB, and a wire to it that carries a quarter of them and then stops. */
export async function held(scene: Scene) {
  const node = await scene.lab.seed({ version: VERSION });
  await fill(scene, node, 32, MIB);
  const wire = await heldWire({ host: node.address, port: 2379 }, 8 * MIB);
  return { node, wire, at: { endpoint: `http://127.0.0.1:${wire.port}` } };
}
