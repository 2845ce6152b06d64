/** The commands that operate a cluster: the same names as those of the Go operator's plugin, and more. */
import { type Command, Option } from 'commander';
import type { UpgradeFlags } from './commands/upgrade.ts';
import type { OperatorRules, Run } from './flags.ts';
import { action, asking, examples, forced, ofCluster, ofOneCluster, onCluster, waiting } from './registration.ts';

export function operate(root: Command, run: Run, rules: OperatorRules): void {
  edits(root, run);
  rollouts(root, run, rules);
  maintenance(root, run);
  leadership(root, run);
  forced(waiting(root.command('replace').argument('<member>', 'the EtcdMember')), 'although no quorum may remain')
    .description('replace a member by a new one that copies the data')
    .action(
      action(run, async (context, flags, [member = '']) =>
        (await import('./commands/replace.ts')).replace(context, member, flags),
      ),
    );
  membership(root, run);
  asking(root.commandsGroup('Back to the Go operator:').command('hand-back').argument('[cluster]', 'the EtcdCluster'))
    .description('put back what the Go operator needs, after its release was rolled back')
    .option('-A, --all-namespaces', 'the clusters of all namespaces')
    .action(
      action(run, async (context, flags, [cluster]) =>
        (await import('./commands/hand-back.ts')).handBack(context, cluster, flags),
      ),
    );
}

function edits(root: Command, run: Run): void {
  const load = () => import('./commands/spec.ts');
  const edit = (name: string, description: string): Command =>
    asking(ofOneCluster(root.command(name).description(description)));
  root.commandsGroup('Operate:');
  const scale = edit('scale', 'change the number of members')
    .argument('<replicas>', 'such as 3 or 5')
    .action(
      action(run, async (context, flags, [name = '', to = '']) => (await load()).scale(context, name, to, flags)),
    );
  examples(scale, 'kubectl etcd scale db 5');
  edit('pause', 'stop all members, and keep their volumes').action(
    action(run, async (context, flags, [name = '']) => (await load()).pause(context, name, flags)),
  );
  edit('resume', 'start the members of a paused cluster again')
    .option('--replicas <number>', 'with this number of members; otherwise as many as it had')
    .action(action(run, async (context, flags, [name = '']) => (await load()).resume(context, name, flags)));
  edit('suspend', 'make the operator change nothing in a cluster').action(
    action(run, async (context, flags, [name = '']) => (await load()).suspend(context, name, true, flags)),
  );
  edit('unsuspend', 'let the operator act again').action(
    action(run, async (context, flags, [name = '']) => (await load()).suspend(context, name, false, flags)),
  );
  edit('rotate-ca', 'rotate the CAs that the operator manages').action(
    action(run, async (context, flags, [name = '']) => (await load()).rotateCA(context, name, flags)),
  );
}

function rollouts(root: Command, run: Run, rules: OperatorRules): void {
  waiting(ofOneCluster(root.command('restart')))
    .description('restart every member once, one after the other, the leader last')
    .action(
      action(run, async (context, flags, [name = '']) =>
        (await import('./commands/restart.ts')).restart(context, name, flags),
      ),
    );
  const upgrade = waiting(ofOneCluster(root.command('upgrade')))
    .description('change the version of etcd, through every minor on the way; --dry-run shows the way and the checks')
    .addOption(new Option('--to <version>', 'such as 3.6.16').makeOptionMandatory())
    .option('--downgrade', 'although it is an earlier minor')
    .action(
      action(run, async (context, flags, [name = '']) =>
        (await import('./commands/upgrade.ts')).upgrade(context, name, flags as UpgradeFlags, rules),
      ),
    );
  examples(upgrade, 'kubectl etcd upgrade db --to 3.7.3 --dry-run', 'kubectl etcd upgrade db --to 3.7.3');
}

function maintenance(root: Command, run: Run): void {
  const load = () => import('./commands/maintenance.ts');
  const defrag = waiting(onCluster(root.command('defrag')))
    .description('defragment all members by an EtcdDefrag, one after the other, the leader last; with -p, one member')
    .option('--free-space-above <size>', 'only members that would free more than this, such as 200Mi')
    .option('--quota-usage-above <percent>', 'or whose database is larger than this share of the quota, such as 80%')
    .option('--min-reclaim <size>', 'with --quota-usage-above: only if that frees at least this much')
    .option('--direct', 'from here, without the operator; refused while a member is not healthy')
    .action(
      action(run, async (context, flags, [cluster]) =>
        (await import('./commands/defrag.ts')).defrag(context, cluster, flags),
      ),
    );
  examples(defrag, 'kubectl etcd defrag db', 'kubectl etcd defrag db --free-space-above 500Mi');
  asking(onCluster(root.command('compact')))
    .description('compact all revisions before the current one')
    .action(action(run, async (context, flags, [cluster]) => (await load()).compact(context, cluster, flags)));
  const alarm = root.command('alarm').description('alarms of the members: NOSPACE, CORRUPT');
  onCluster(alarm.command('list'))
    .description('list the active alarms')
    .action(action(run, async (context, flags, [cluster]) => (await load()).alarmList(context, cluster, flags)));
  asking(onCluster(alarm.command('disarm')))
    .description('disarm all alarms')
    .action(action(run, async (context, flags, [cluster]) => (await load()).alarmDisarm(context, cluster, flags)));
}

function leadership(root: Command, run: Run): void {
  const load = () => import('./commands/leadership.ts');
  asking(onCluster(root.command('move-leader')))
    .description('make another voter the leader')
    .option('--to <member>', 'this one; otherwise the one that has applied the most')
    .action(action(run, async (context, flags, [cluster]) => (await load()).moveLeader(context, cluster, flags)));
  asking(root.command('forfeit-leadership'))
    .description('with -p: make another voter the leader, if this Pod is it')
    .action(action(run, async (context, flags) => (await load()).forfeitLeadership(context, flags)));
}

const OWNED = 'although the operator owns the membership of the cluster';

function membership(root: Command, run: Run): void {
  const load = () => import('./commands/membership.ts');
  forced(asking(root.commandsGroup('Membership, which the operator owns:').command('leave')), OWNED)
    .description('with -p: remove the member of this Pod from etcd')
    .action(action(run, async (context, flags) => (await load()).leave(context, flags)));
  forced(asking(ofCluster(root.command('remove-member').argument('<id>', 'hexadecimal'))), OWNED)
    .description('remove a member from etcd')
    .action(action(run, async (context, flags, [id = '']) => (await load()).removeMember(context, id, flags)));
  forced(asking(ofCluster(root.command('add-member').argument('<peer-url>', 'such as http://host:2380'))), OWNED)
    .description('add a voter to etcd')
    .action(action(run, async (context, flags, [url = '']) => (await load()).addMember(context, url, flags)));
}
