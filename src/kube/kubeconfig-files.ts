/** Several kubeconfig files and a chosen context, as kubectl has them; the operator reads one file. */
import { readFile } from 'node:fs/promises';
import { delimiter, dirname, join, resolve } from 'node:path';
import { parse } from 'yaml';
import type { Identity } from './identity.ts';
import { identityIn, type Kubeconfig } from './kubeconfig.ts';

type Env = Readonly<Record<string, string | undefined>>;
type Json = Readonly<Record<string, unknown>>;

/** The files that kubectl would read: those in KUBECONFIG, else ~/.kube/config. */
export function kubeconfigFiles(env: Env, home: string): readonly string[] {
  const listed = (env['KUBECONFIG'] ?? '').split(delimiter).filter((file) => file !== '');
  return listed.length > 0 ? listed : [join(home, '.kube', 'config')];
}

const PATHS = ['certificate-authority', 'client-certificate', 'client-key', 'tokenFile'];

/** With absolute paths: those of each file are relative to it. */
const rooted = (value: unknown, folder: string): unknown => {
  if (Array.isArray(value)) return value.map((each) => rooted(each, folder));
  if (typeof value !== 'object' || value === null) return value;
  const isPath = (key: string, text: string): boolean =>
    PATHS.includes(key) || (key === 'command' && text.includes('/'));
  const entries = Object.entries(value as Json).map(([key, inner]) => [
    key,
    typeof inner === 'string' && isPath(key, inner) ? resolve(folder, inner) : rooted(inner, folder),
  ]);
  return Object.fromEntries(entries) as Json;
};

async function read(path: string): Promise<Kubeconfig> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    return '';
  });
  return rooted(parse(text) ?? {}, dirname(resolve(path))) as Kubeconfig;
}

/** Merges as kubectl does: the first file that defines a name wins, and a missing file is skipped. */
export async function readKubeconfigs(files: readonly string[], context?: string, env: Env = {}): Promise<Identity> {
  const all = await Promise.all(files.map(read));
  const current = context ?? all.map((file) => file['current-context']).find((name) => name !== undefined);
  const merged = {
    ...(current !== undefined && { 'current-context': current }),
    contexts: all.flatMap((file) => file.contexts ?? []),
    clusters: all.flatMap((file) => file.clusters ?? []),
    users: all.flatMap((file) => file.users ?? []),
  };
  return identityIn(merged, files.join(', '), env, 'user');
}
