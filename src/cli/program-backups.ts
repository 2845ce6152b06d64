/** Snapshots and schedules. */
import type { Command } from 'commander';
import type { Run } from './flags.ts';
import { action, asking, examples, formatted, ofOneCluster, waiting } from './registration.ts';

const loadBackups = () => import('./commands/backups.ts');

export function backups(root: Command, run: Run): void {
  const load = () => import('./commands/snapshot.ts');
  const snapshot = root
    .commandsGroup('Back up:')
    .command('snapshot')
    .description('create, list, download and restore snapshots; with -p FILE: the database of this Pod')
    .argument('[file]', 'with -p: is written when its digest matches');
  const ofPod = action(run, async (context, flags, [file = '']) =>
    (await load()).snapshot(context, undefined, file, flags),
  );
  // Without a file, the commands are meant: "missing argument" would hide them.
  snapshot.action((file: string | undefined, ...rest: readonly unknown[]) =>
    file === undefined ? snapshot.help({ error: true }) : ofPod(file, ...rest),
  );
  create(snapshot, run);
  listed(snapshot.command('list'))
    .description('EtcdSnapshots, the newest first')
    .action(
      action(run, async (context, flags, [cluster]) => (await loadBackups()).listSnapshots(context, cluster, flags)),
    );
  ofOneCluster(snapshot.command('download'))
    .description('the database of a follower, into a local file')
    .argument('<file>', 'is written when its digest matches')
    .action(
      action(run, async (context, flags, [cluster, file = '']) =>
        (await load()).snapshot(context, cluster, file, flags),
      ),
    );
  restore(snapshot, run);
  schedules(root, run);
}

const listed = (command: Command): Command =>
  formatted(command.argument('[cluster]', 'of one EtcdCluster only')).option(
    '-A, --all-namespaces',
    'of all namespaces',
  );

function create(snapshot: Command, run: Run): void {
  const command = waiting(ofOneCluster(snapshot.command('create')))
    .description('take a snapshot now; without a destination, where the only schedule of the cluster stores its own')
    .option('--name <name>', 'of the EtcdSnapshot; without it, the cluster and the time')
    .option('--schedule <name>', 'store it as this schedule does')
    .option('--pvc <claim>', 'into a PersistentVolumeClaim: claim or claim/folder')
    .option('--s3 <bucket>', 'into a bucket: bucket or bucket/prefix')
    .option('--s3-endpoint <url>', 'of the S3 service')
    .option('--s3-region <region>', 'without it, us-east-1')
    .option('--s3-secret <secret>', 'with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY')
    .option('--s3-path-style', 'endpoint/bucket/key, which most S3-compatible services need')
    .action(
      action(run, async (context, flags, [cluster = '']) =>
        (await loadBackups()).createSnapshot(context, cluster, flags),
      ),
    );
  examples(
    command,
    'kubectl etcd snapshot create db',
    'kubectl etcd snapshot create db --pvc backups/db',
    'kubectl etcd snapshot create db --s3 backups/db --s3-endpoint https://s3.example.com --s3-secret s3',
  );
}

function restore(snapshot: Command, run: Run): void {
  const command = waiting(snapshot.command('restore'))
    .description('restore a snapshot into a new EtcdCluster with the spec of the one that it was taken of')
    .argument('<snapshot>', 'the EtcdSnapshot')
    .argument('<cluster>', 'the new EtcdCluster')
    .option('--like <cluster>', 'with the spec of this EtcdCluster')
    .option('--replicas <number>', 'with this number of members')
    .option('--etcd-version <version>', 'with this version of etcd')
    .option('--storage-size <size>', 'with volumes of this size')
    .action(
      action(run, async (context, flags, [from = '', into = '']) =>
        (await loadBackups()).restoreSnapshot(context, from, into, flags),
      ),
    );
  examples(
    command,
    'kubectl etcd snapshot restore db-20260301120000 db2',
    'kubectl etcd snapshot restore db-20260301120000 db2 --dry-run > db2.yaml',
  );
}

function schedules(root: Command, run: Run): void {
  const load = () => import('./commands/schedule.ts');
  const schedule = root.command('schedule').description('list, run, suspend and resume schedules of snapshots');
  listed(schedule.command('list'))
    .description('EtcdSnapshotSchedules')
    .action(action(run, async (context, flags, [cluster]) => (await load()).listSchedules(context, cluster, flags)));
  const named = (name: string): Command => schedule.command(name).argument('<schedule>', 'the EtcdSnapshotSchedule');
  waiting(named('run'))
    .description('take a snapshot of the schedule now')
    .action(action(run, async (context, flags, [name = '']) => (await load()).runSchedule(context, name, flags)));
  asking(named('suspend'))
    .description('start no snapshot by it')
    .action(
      action(run, async (context, flags, [name = '']) => (await load()).suspendSchedule(context, name, true, flags)),
    );
  asking(named('resume'))
    .description('start snapshots by it again')
    .action(
      action(run, async (context, flags, [name = '']) => (await load()).suspendSchedule(context, name, false, flags)),
    );
}
