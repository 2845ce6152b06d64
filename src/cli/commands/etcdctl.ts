/** `kubectl etcd etcdctl CLUSTER -- …`: a local etcdctl with endpoint, certificates and credentials, or the same words understood here. */
import { privateFolder, socketBridge } from '../bridge.ts';
import { runChild } from '../child.ts';
import { type Context, UserError } from '../context.ts';
import { accountOf } from '../gather/session.ts';
import { onTarget, type TargetFlags } from '../gather/target.ts';
import { builtIn } from './etcdctl-words.ts';

export interface EtcdctlFlags extends TargetFlags {
  readonly builtin?: boolean;
}

export const etcdctl = (
  context: Context,
  cluster: string,
  words: readonly string[],
  flags: EtcdctlFlags,
): Promise<number> =>
  onTarget(context, cluster, flags, async (target) => {
    if (words.length === 0)
      throw new UserError('name a command of etcdctl after --, such as: -- get --prefix /registry');
    if (flags.builtin) return builtIn(context, target, words);
    const folder = await privateFolder();
    const bridge = await socketBridge(target.session, folder.path);
    try {
      const account = accountOf(target.session);
      // In the environment: arguments are visible to every user of this machine.
      const env = {
        ...context.env,
        ETCDCTL_API: '3',
        ETCDCTL_ENDPOINTS: bridge.address,
        ...(account && { ETCDCTL_USER: `${account.user}:${account.password}` }),
      };
      const code = await runChild('etcdctl', words, env);
      return code === 'missing' ? await builtIn(context, target, words) : code;
    } finally {
      bridge.close();
      await folder.remove();
    }
  });
