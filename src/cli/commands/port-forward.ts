/** `kubectl etcd port-forward`: a local endpoint, and an environment for programs that use it. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { privateFolder, tcpBridge } from '../bridge.ts';
import { runChild } from '../child.ts';
import { type Context, UserError } from '../context.ts';
import { accountOf, type Session } from '../gather/session.ts';
import { onTarget, type TargetFlags } from '../gather/target.ts';

export interface ForwardFlags extends TargetFlags {
  readonly port?: string;
}

type Variables = Readonly<Record<string, string>>;

/** Certificates as files, because that is what programs read; in a folder of this user alone, until the command ends. */
async function variablesOf(session: Session, endpoint: string, folder: string): Promise<Variables> {
  const [first] = session.reached;
  const tls = first && session.credentials.access.tls?.(first.endpoint);
  const account = accountOf(session);
  const write = async (name: string, content: string | undefined): Promise<string | undefined> => {
    if (content === undefined) return undefined;
    await writeFile(join(folder, name), content, { mode: 0o600 });
    return join(folder, name);
  };
  const [ca, cert, key] = await Promise.all([
    write('ca.crt', tls?.ca),
    write('tls.crt', tls?.cert),
    write('tls.key', tls?.key),
  ]);
  return {
    ETCDCTL_API: '3',
    ETCDCTL_ENDPOINTS: endpoint,
    ...(ca !== undefined && { ETCDCTL_CACERT: ca }),
    ...(cert !== undefined && { ETCDCTL_CERT: cert }),
    ...(key !== undefined && { ETCDCTL_KEY: key }),
    ...(account && { ETCDCTL_USER: `${account.user}:${account.password}` }),
  };
}

const quoted = (value: string): string => `'${value.replaceAll("'", String.raw`'\''`)}'`;
const script = (variables: Variables): string =>
  Object.entries(variables)
    .map(([name, value]) => `export ${name}=${quoted(value)}\n`)
    .join('');

function portOf(text: string | undefined): number {
  const port = Number(text ?? 0);
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new UserError(`--port must be a number up to 65535, not ${text}`);
  return port;
}

export const portForward = (
  context: Context,
  cluster: string | undefined,
  command: readonly string[],
  flags: ForwardFlags,
): Promise<number> =>
  onTarget(context, cluster, flags, async ({ session }) => {
    const folder = await privateFolder();
    const bridge = await tcpBridge(session, portOf(flags.port)).catch(async (error: unknown) => {
      await folder.remove();
      throw new UserError(error instanceof Error ? error.message : String(error), { cause: error });
    });
    try {
      const variables = await variablesOf(session, bridge.address, folder.path);
      const [program, ...args] = command;
      if (program !== undefined) {
        const code = await runChild(program, args, { ...context.env, ...variables });
        if (code === 'missing') throw new UserError(`there is no program ${program}`);
        return code;
      }
      // The password is in a file, not on the screen.
      const file = join(folder.path, 'env');
      await writeFile(file, script(variables), { mode: 0o600 });
      context.print(bridge.address);
      context.note(`in another shell, for etcdctl and others that read its variables: . ${file}`);
      context.note('Ctrl-C ends it');
      await new Promise<void>((resolve) => {
        if (context.signal.aborted) resolve();
        context.signal.addEventListener('abort', () => resolve(), { once: true });
      });
      return 0;
    } finally {
      bridge.close();
      await folder.remove();
    }
  });
