/** Secrets come as files that Kubernetes mounts; nothing of them is in the environment, in an argument or in an output. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AgentFailure } from './failure.ts';

/** Tests have no mounts: what would be at `/agent` is below this folder. */
export const ROOT_VARIABLE = 'AGENT_ROOT';

/** Where a mount of `MOUNTS` is. */
export const mounted = (mount: string): string => join(process.env[ROOT_VARIABLE] ?? '/', mount);

const seen = new Set<string>();
/** Shorter ones would blot out ordinary words. */
const SHORTEST = 6;

/** The text without anything that was read from a Secret, whatever a library has put into its error. */
export function withoutSecrets(text: string): string {
  let clean = text;
  for (const secret of seen) clean = clean.replaceAll(secret, '[secret]');
  return clean;
}

/** One key of a mounted Secret; `undefined` when the Secret does not have it. */
export async function secretFile(mount: string, key: string): Promise<Buffer | undefined> {
  try {
    const content = await readFile(join(mounted(mount), key));
    const text = content.toString().trim();
    if (text.length >= SHORTEST) seen.add(text);
    return content;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw new AgentFailure('Misconfigured', `the file ${join(mount, key)} of a Secret cannot be read: ${code}`);
  }
}

/** One that has to be there. `what` says which Secret lacks it otherwise. */
export async function neededSecretFile(mount: string, key: string, what: string): Promise<Buffer> {
  const content = await secretFile(mount, key);
  if (content === undefined || content.length === 0)
    throw new AgentFailure('Misconfigured', `${what} has no "${key}": add it to the Secret`);
  return content;
}
