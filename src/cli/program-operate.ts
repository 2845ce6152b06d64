/** The commands that operate a cluster: the same names as those of the Go operator's plugin, and more. */
import type { Command } from 'commander';
import type { Run } from './flags.ts';
import { action, asking, examples, forced, ofCluster, ofOneCluster, onCluster, waiting } from './registration.ts';

export function operate(root: Command, run: Run): void {
  edits(root, run);
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

function maintenance(root: Command, run: Run): void {
  const load = () => import('./commands/maintenance.ts');
  asking(onCluster(root.command('defrag')))
    .description('defragment the members one after the other, the leader last; with -p, one member')
    .action(action(run, async (context, flags, [cluster]) => (await load()).defrag(context, cluster, flags)));
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
