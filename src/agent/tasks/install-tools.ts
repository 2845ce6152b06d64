/**
 * Copies the agent into a shared volume: Node, its loader and libraries, the agent's bundle and the CA certificates. A
 * container of the etcd image runs them from there. The folder gets its final name last, so that an incomplete copy is
 * never used.
 */
import { constants } from 'node:fs';
import { chmod, copyFile, mkdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Success } from '../../domain/agent-result.ts';
import { TOOLS, TOOLS_FOLDER } from '../../domain/agent-tools.ts';
import { AgentFailure } from '../failure.ts';

export interface Running {
  /** The Node binary. */
  readonly node: string;
  /** The agent's bundle. */
  readonly agent: string;
  /** All shared libraries that Node has loaded, its loader among them, by the names that it asked for. */
  readonly libraries: readonly string[];
  readonly certificates: string;
}

const isLoader = (path: string): boolean => /^ld-linux(-[\w-]+)?\.so\.\d+$/.test(basename(path));

/** The files that this process runs with: on every architecture, and wherever the image has them. */
export function running(): Running {
  const report: { excludeNetwork?: boolean; getReport(): object } = process.report;
  report.excludeNetwork = true; // it would resolve names
  const { sharedObjects } = report.getReport() as { readonly sharedObjects: readonly string[] };
  return {
    node: process.execPath,
    agent: process.argv[1] ?? '',
    libraries: sharedObjects.filter((path) => path.startsWith('/') && path !== process.execPath),
    certificates: process.env['SSL_CERT_FILE'] ?? '/etc/ssl/certs/ca-certificates.crt',
  };
}

/** The destination of each file, relative to the folder. */
export function layout({ node, agent, libraries, certificates }: Running): ReadonlyMap<string, string> {
  const loader = libraries.find(isLoader);
  if (loader === undefined)
    throw new AgentFailure('Internal', `none of ${libraries.join(', ')} is a dynamic loader: use the operator's image`);
  return new Map([
    ...libraries.map((path) => [join(TOOLS.libraries, basename(path)), path] as const),
    [TOOLS.node, node],
    [TOOLS.agent, agent],
    [TOOLS.certificates, certificates],
    [TOOLS.loader, loader],
  ]);
}

/** Into `folder`, which exists only when it is complete. */
export async function installTools(from: Running, folder: string): Promise<void> {
  if (await stat(folder).catch(() => undefined)) return;
  const unfinished = join(dirname(folder), '.unfinished');
  await rm(unfinished, { recursive: true, force: true });
  for (const [name, source] of layout(from)) {
    const path = join(unfinished, name);
    await mkdir(dirname(path), { recursive: true });
    try {
      await copyFile(source, path, constants.COPYFILE_FICLONE);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'ENOSPC')
        throw new AgentFailure(
          'NoSpace',
          `no space left on the node for the agent's tools: free some, or raise its ephemeral storage`,
        );
      throw new AgentFailure('Internal', `${source} cannot be copied: ${code ?? String(error)}`, { cause: error });
    }
    await chmod(path, 0o755);
  }
  await rename(unfinished, folder);
}

export async function install(): Promise<Success> {
  await installTools(running(), TOOLS_FOLDER);
  return { ok: true, task: 'install-tools' };
}
