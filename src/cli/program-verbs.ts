/** The commands that operate a cluster: the same names as those of the Go operator's plugin, and more. */
import type { Command } from 'commander';
import type { Context } from './context.ts';
import type { GlobalFlags, Run } from './flags.ts';

/** Loads a command and calls it with the operands and all flags. */
type Call = (context: Context, flags: object, operands: readonly string[]) => Promise<number>;

/** Commander hands over the operands, then the flags, then the command. */
const action =
  (run: Run, call: Call) =>
  (...given: readonly unknown[]): Promise<void> => {
    const command = given.at(-1) as Command;
    const operands = given.slice(0, -2).filter((operand) => typeof operand === 'string');
    return run(command.optsWithGlobals<GlobalFlags>(), (context, flags) => call(context, flags, operands));
  };

const asking = (command: Command): Command =>
  command.option('-y, --yes', 'do not ask').option('--dry-run', 'say what would be done, and do nothing');

const forced = (command: Command): Command =>
  asking(command).option('--force', 'although the operator owns the membership of the cluster');

const onCluster = (command: Command): Command => command.argument('[cluster]', 'the EtcdCluster; or one Pod with -p');
const ofCluster = (command: Command): Command =>
  command.option('-c, --cluster <name>', 'the EtcdCluster; or one Pod with -p');

export function verbs(root: Command, run: Run): void {
  onCluster(root.commandsGroup('Look:').command('members'))
    .description("etcd's member list")
    .action(
      action(run, async (context, flags, [cluster]) =>
        (await import('./commands/members.ts')).members(context, cluster, flags),
      ),
    );
  root
    .command('doctor')
    .description('check a cluster, with advice: disks, quota, spread, versions, certificates, backups')
    .argument('<cluster>', 'the EtcdCluster')
    .option('-o, --output <format>', 'json or yaml')
    .option('--check', 'exit with code 2 when there is a problem')
    .action(
      action(run, async (context, flags, [cluster = '']) =>
        (await import('./commands/doctor.ts')).doctor(context, cluster, flags),
      ),
    );
  root
    .command('report')
    .description('objects, logs and checks of a cluster in one file for support, without secrets')
    .argument('<cluster>', 'the EtcdCluster')
    .option('--out <file>', 'the file; without it, etcd-report-….tar.gz in this folder')
    .action(
      action(run, async (context, flags, [cluster = '']) =>
        (await import('./commands/report.ts')).report(context, cluster, flags),
      ),
    );
  maintenance(root, run);
  leadership(root, run);
  edits(root, run);
  membership(root, run);
  snapshots(root, run);
}

function maintenance(root: Command, run: Run): void {
  const load = () => import('./commands/maintenance.ts');
  asking(onCluster(root.commandsGroup('Operate:').command('defrag')))
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

function edits(root: Command, run: Run): void {
  const load = () => import('./commands/spec.ts');
  const edit = (name: string, description: string): Command =>
    asking(root.command(name).description(description).argument('<cluster>', 'the EtcdCluster'));
  edit('scale', 'change the number of members')
    .argument('<replicas>', 'such as 3 or 5')
    .action(
      action(run, async (context, flags, [name = '', to = '']) => (await load()).scale(context, name, to, flags)),
    );
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

function membership(root: Command, run: Run): void {
  const load = () => import('./commands/membership.ts');
  forced(root.commandsGroup('Membership, which the operator owns:').command('leave'))
    .description('with -p: remove the member of this Pod from etcd')
    .action(action(run, async (context, flags) => (await load()).leave(context, flags)));
  forced(ofCluster(root.command('remove-member').argument('<id>', 'hexadecimal')))
    .description('remove a member from etcd')
    .action(action(run, async (context, flags, [id = '']) => (await load()).removeMember(context, id, flags)));
  forced(ofCluster(root.command('add-member').argument('<peer-url>', 'such as http://host:2380')))
    .description('add a voter to etcd')
    .action(action(run, async (context, flags, [url = '']) => (await load()).addMember(context, url, flags)));
}

function snapshots(root: Command, run: Run): void {
  const load = () => import('./commands/snapshot.ts');
  const snapshot = root
    .commandsGroup('Back up:')
    .command('snapshot')
    .description('with -p: the database of this Pod, into a local file; see also snapshot download')
    .argument('<file>', 'is written when its digest matches')
    .action(
      action(run, async (context, flags, [file = '']) => (await load()).snapshot(context, undefined, file, flags)),
    );
  snapshot
    .command('download')
    .description('the database of a follower, into a local file')
    .argument('<cluster>', 'the EtcdCluster')
    .argument('<file>', 'is written when its digest matches')
    .action(
      action(run, async (context, flags, [cluster, file = '']) =>
        (await load()).snapshot(context, cluster, file, flags),
      ),
    );
}
