/** A real API server for benchmarks, and programs that measure themselves against it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { HttpClient } from '../../src/kube/http-client.ts';
import { startControlPlane, writeKubeconfig } from '../../test/support/servers/control-plane.ts';
import { Processes } from '../../test/support/servers/processes.ts';
import { root } from '../../tools/paths.ts';
import { run } from '../../tools/process.ts';

export interface KubeLab {
  readonly admin: HttpClient;
  /** A kubeconfig of the administrator; through another port if one is given. */
  kubeconfig(through?: { readonly server: string; readonly ca?: string }): Promise<string>;
  /** Where the API server listens. */
  port(): Promise<number>;
  close(): Promise<void>;
}

export async function startKubeLab(): Promise<KubeLab> {
  const folder = mkdtempSync(join(tmpdir(), 'etcd-operator-bench-'));
  const processes = new Processes(folder);
  const stop = async (): Promise<void> => {
    await processes.stopAll();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const { admin } = await startControlPlane(processes, folder);
    let count = 0;
    return {
      admin,
      port: async () => Number(new URL((await admin.transport.identity()).server).port),
      kubeconfig: async (through) => {
        const { server, ca = '', token = '' } = { ...(await admin.transport.identity()), ...through };
        return writeKubeconfig(folder, `bench-${++count}`, server, ca, token);
      },
      close: async () => {
        await admin.transport.close();
        await stop();
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Runs a program of this folder in a process of its own, with a garbage collector that can be called; it prints JSON. */
export async function measured<T>(program: string, ...args: readonly string[]): Promise<T> {
  const file = join(root, 'bench', 'support', `${program}.ts`);
  const { stdout } = await run(process.execPath, ['--expose-gc', file, ...args]);
  return JSON.parse(stdout) as T;
}

/** Many at once, so that the API server is the bottleneck and not latency. */
export async function inParallel<T>(
  items: Iterable<T>,
  atOnce: number,
  work: (item: T) => Promise<unknown>,
): Promise<void> {
  const left = items[Symbol.iterator]();
  const worker = async (): Promise<void> => {
    for (let next = left.next(); !next.done; next = left.next()) await work(next.value);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}
