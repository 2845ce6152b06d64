/** The commands and flags. Each command is loaded when it is called, so that `--help` loads none of them. */
import { Command, Option } from 'commander';
import type { StatusFlags } from './commands/status.ts';
import type { Run } from './flags.ts';
import { verbs } from './program-verbs.ts';

const EXAMPLES = `
Examples:
  kubectl etcd status -A                 all clusters, those that need attention first
  kubectl etcd status db                 one cluster on one screen
  kubectl etcd status db --watch         the same, drawn again every two seconds
  kubectl etcd status db --check         exit code 2 when it is not healthy, for scripts
`;

export function program(run: Run, version: string): Command {
  const root = new Command('kubectl etcd')
    .description('Shows the state of etcd clusters of etcd-operator, and operates them.')
    .version(version, '--version', 'print the version')
    .helpOption('-h, --help', 'show this help, or the help of a command')
    .addOption(new Option('-n, --namespace <namespace>', "namespace (default: that of the kubeconfig's context)"))
    .addOption(new Option('-k, --kubeconfig <file>', 'kubeconfig file (default: KUBECONFIG, or ~/.kube/config)'))
    .addOption(new Option('--context <name>', 'context of the kubeconfig'))
    .addOption(new Option('--as <user>', 'act as this user, such as system:serviceaccount:ns:name'))
    .addOption(new Option('--as-group <group>', 'act as a member of this group').argParser(collect))
    .addOption(new Option('-p, --pod <pod>', 'work on one Pod instead of a whole cluster'))
    .addOption(
      new Option('-s, --credentials-secret <secret>', 'name or namespace/name of a Secret with username and password'),
    )
    .addHelpText('after', EXAMPLES)
    .showHelpAfterError('(kubectl etcd --help lists the commands and flags)')
    .configureHelp({ showGlobalOptions: true, sortSubcommands: false })
    .exitOverride();
  statusCommand(root, run);
  verbs(root, run);
  return root;
}

const collect = (value: string, before: readonly string[] = []): readonly string[] => [...before, value];

function statusCommand(root: Command, run: Run): void {
  root
    .commandsGroup('Look:')
    .command('status')
    .description('the state of a cluster; without a name, a table of all clusters of the namespace')
    .argument('[cluster]', 'the EtcdCluster')
    .option('-A, --all-namespaces', 'the clusters of all namespaces')
    .option('-o, --output <format>', 'json, yaml or wide')
    .option('-w, --watch', 'draw it again every two seconds, until Ctrl-C')
    .option('--check', 'exit with code 2 when a cluster is not healthy')
    .action((cluster: string | undefined, _flags: object, command: Command) =>
      run(command.optsWithGlobals(), async (context, flags) => {
        if (flags.pod !== undefined) return (await import('./commands/members.ts')).podStatus(context, flags);
        return (await import('./commands/status.ts')).status(context, cluster, flags as StatusFlags);
      }),
    );
}
