/** Another program in the foreground, with its input, output and exit code. */
import { spawn } from 'node:child_process';

/** Ctrl-C reaches it from the terminal: this process waits for it, and cleans up after it. */
export const runChild = (
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<number | 'missing'> =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: 'inherit', env: { ...env } });
    child.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'ENOENT' ? resolve('missing') : reject(error),
    );
    child.once('close', (code, signal) => resolve(code ?? (signal === 'SIGINT' ? 130 : 1)));
  });
