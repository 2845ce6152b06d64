/** The commands that change nothing. */
import type { Command } from 'commander';
import type { OperatorRules, Run } from './flags.ts';
import { action, checked, examples, formatted, ofOneCluster, onCluster } from './registration.ts';

export function look(root: Command, run: Run, rules: OperatorRules): void {
  status(root, run);
  formatted(onCluster(root.command('members')))
    .description("etcd's member list")
    .action(
      action(run, async (context, flags, [cluster]) =>
        (await import('./commands/members.ts')).members(context, cluster, flags),
      ),
    );
  checks(root, run);
  formatted(ofOneCluster(root.command('explain')), 'json or yaml')
    .description('why the operator acts, waits or does nothing: the answer of each stage of its decision')
    .action(
      action(run, async (context, flags, [cluster = '']) =>
        (await import('./commands/explain.ts')).explain(context, cluster, flags, rules),
      ),
    );
  traces(root, run);
}

function status(root: Command, run: Run): void {
  const command = root
    .commandsGroup('Look:')
    .command('status')
    .description('the state of a cluster; without a name, a table of all clusters of the namespace')
    .argument('[cluster]', 'the EtcdCluster')
    .option('-A, --all-namespaces', 'the clusters of all namespaces')
    .option('-o, --output <format>', 'json, yaml or wide')
    .option('-w, --watch', 'draw it again every two seconds, until Ctrl-C')
    .option('--check', 'exit with code 2 when a cluster is not healthy')
    .action(
      action(run, async (context, flags, [cluster]) => {
        if ((flags as { readonly pod?: string }).pod !== undefined)
          return (await import('./commands/members.ts')).podStatus(context, flags);
        return (await import('./commands/status.ts')).status(context, cluster, flags);
      }),
    );
  examples(command, 'kubectl etcd status -A', 'kubectl etcd status db --watch', 'kubectl etcd status db --check');
}

function checks(root: Command, run: Run): void {
  checked(formatted(ofOneCluster(root.command('doctor')), 'json or yaml'), 'there is a problem')
    .description('check a cluster, with advice: disks, clocks, quota, spread, versions, certificates, backups')
    .action(
      action(run, async (context, flags, [cluster = '']) =>
        (await import('./commands/doctor.ts')).doctor(context, cluster, flags),
      ),
    );
  checked(formatted(ofOneCluster(root.command('certs')), 'json or yaml'), 'one has a problem or has expired')
    .description('certificates, when they expire, and how far a CA rotation is')
    .action(
      action(run, async (context, flags, [cluster = '']) =>
        (await import('./commands/certs.ts')).certs(context, cluster, flags),
      ),
    );
  checked(formatted(onCluster(root.command('hashkv')), 'json or yaml'), 'they do not all have the same data')
    .description('compare the data of the members')
    .action(
      action(run, async (context, flags, [cluster]) =>
        (await import('./commands/hashkv.ts')).hashkv(context, cluster, flags),
      ),
    );
  formatted(ofOneCluster(root.command('top')))
    .description('rates, latencies and sizes, from the metrics of the members')
    .option('-w, --watch', 'draw it again every two seconds, until Ctrl-C')
    .action(
      action(run, async (context, flags, [cluster = '']) =>
        (await import('./commands/top.ts')).top(context, cluster, flags),
      ),
    );
}

function traces(root: Command, run: Run): void {
  const logs = ofOneCluster(root.command('logs'))
    .description("logs of all members, with the operator's decisions and Events in between")
    .option('-f, --follow', 'go on with what is logged from now on, until Ctrl-C')
    .option('--since <duration>', 'of the last time, such as 10m')
    .option('--tail <lines>', 'of each log; without it and --since, 100')
    .option('--member <name>', 'of one member only')
    .option('--previous', 'of the containers before the last restart')
    .option('--no-operator', 'of the members only')
    .action(
      action(run, async (context, flags, [cluster = '']) =>
        (await import('./commands/logs.ts')).logs(context, cluster, flags),
      ),
    );
  examples(logs, 'kubectl etcd logs db -f', 'kubectl etcd logs db --since 1h --no-operator');
  formatted(ofOneCluster(root.command('events')))
    .description('Events of the cluster, its members and their Pods')
    .option('--warnings', 'only warnings')
    .action(
      action(run, async (context, flags, [cluster = '']) =>
        (await import('./commands/events.ts')).events(context, cluster, flags),
      ),
    );
  ofOneCluster(root.command('report'))
    .description('objects, logs and checks of a cluster in one file for support, without secrets')
    .option('--out <file>', 'the file; without it, etcd-report-….tar.gz in this folder')
    .action(
      action(run, async (context, flags, [cluster = '']) =>
        (await import('./commands/report.ts')).report(context, cluster, flags),
      ),
    );
}
