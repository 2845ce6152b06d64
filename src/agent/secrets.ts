/** Secrets are files that Kubernetes mounts; they never appear in the environment, in an argument or in an output. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { MOUNTS } from '../domain/agent-task.ts';
import { misconfigured } from './failure.ts';

/** Tests have no mounts: what would be at `/agent` is below this folder. */
export const ROOT_VARIABLE = 'AGENT_ROOT';

/** The path of a mount of `MOUNTS`. */
export const mounted = (mount: string): string => join(process.env[ROOT_VARIABLE] ?? '/', mount);

const seen = new Set<string>();
/** Shorter ones would redact ordinary words. */
const SHORTEST = 6;

/** The text with every Secret value redacted, whatever a library has put into its error. */
export function withoutSecrets(text: string): string {
  let clean = text;
  for (const secret of seen) clean = clean.replaceAll(secret, '[secret]');
  return clean;
}

/** Of Jobs that the Go operator's tools made, which have no such mounts. */
const provided = new Map<string, Buffer>();
export function provideSecret(mount: string, key: string, content: Buffer): void {
  provided.set(join(mount, key), content);
  remember(content);
}

function remember(content: Buffer): void {
  const text = content.toString().trim();
  if (text.length >= SHORTEST) seen.add(text);
}

/** One key of a mounted Secret; `undefined` when the Secret does not have it. */
export async function secretFile(mount: string, key: string): Promise<Buffer | undefined> {
  const given = provided.get(join(mount, key));
  if (given) return given;
  try {
    const content = await readFile(join(mounted(mount), key));
    remember(content);
    return content;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw misconfigured(`the file ${join(mount, key)} of a Secret cannot be read: ${code}`);
  }
}

/** The mounts of the second location, for those that a store asks for. */
const SECOND: Readonly<Record<string, string>> = {
  [MOUNTS.credentials]: MOUNTS.copyCredentials,
  [MOUNTS.storeCa]: MOUNTS.copyCa,
};
export const secondSecretFile = (mount: string, key: string): Promise<Buffer | undefined> =>
  secretFile(SECOND[mount] ?? mount, key);

/** The keys of a mounted Secret. Kubernetes links them to files in folders of its own, whose names begin with dots. */
export const secretNames = async (mount: string): Promise<readonly string[]> =>
  (await readdir(mounted(mount)).catch(() => [])).filter((name) => !name.startsWith('.'));

/** A key that is required. `what` names the Secret in the error. */
export async function neededSecretFile(mount: string, key: string, what: string): Promise<Buffer> {
  const content = await secretFile(mount, key);
  if (content === undefined || content.length === 0)
    throw misconfigured(`${what} has no "${key}": add it to the Secret`);
  return content;
}
