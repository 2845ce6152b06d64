/** Other programs on this machine that use a cluster, and the shell. */
import type { Command } from 'commander';
import type { Run } from './flags.ts';
import { action, asking, examples, formatted, ofOneCluster } from './registration.ts';

export function connecting(root: Command, run: Run): void {
  const etcdctl = ofOneCluster(root.commandsGroup('Connect:').command('etcdctl'))
    .description('run etcdctl against a cluster, with its certificates and credentials')
    .argument('[words...]', 'after --')
    .option('--builtin', 'without a local etcdctl: get, put, del, member list, endpoint health, alarm list')
    .action(
      action(run, async (context, flags, [cluster = '', ...words]) =>
        (await import('./commands/etcdctl.ts')).etcdctl(context, cluster, words, flags),
      ),
    );
  examples(etcdctl, 'kubectl etcd etcdctl db -- get --prefix /registry/pods --keys-only');
  const forward = ofOneCluster(root.command('port-forward'))
    .description('a local port that leads to a member, for other programs')
    .argument('[command...]', 'after --: run this program with the environment, and end with it')
    .option('--port <port>', 'the local port; without it, a free one')
    .action(
      action(run, async (context, flags, [cluster = '', ...command]) =>
        (await import('./commands/port-forward.ts')).portForward(context, cluster, command, flags),
      ),
    );
  examples(forward, 'kubectl etcd port-forward db --port 2379', 'kubectl etcd port-forward db -- ./my-tool');
  formatted(asking(ofOneCluster(root.command('benchmark'))), 'json or yaml')
    .description('a short load on a cluster, with advice; its keys are deleted afterwards')
    .option('--clients <number>', 'at once, up to 100; without it, 10')
    .option('--seconds <number>', 'for each of the three loads, up to 60; without it, 5')
    .option('--size <bytes>', 'of a value, up to 65536; without it, 256')
    .action(
      action(run, async (context, flags, [cluster = '']) =>
        (await import('./commands/benchmark.ts')).benchmark(context, cluster, flags),
      ),
    );
}
