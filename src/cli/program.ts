/** The commands and flags. Each command is loaded when it is called, so that `--help` loads none of them. */
import { Command, Option } from 'commander';
import type { Means } from './flags.ts';
import { backups } from './program-backups.ts';
import { connecting } from './program-connect.ts';
import { look } from './program-look.ts';
import { operate } from './program-operate.ts';

const EXAMPLES = `
Examples:
  kubectl etcd status -A                 all clusters, those that need attention first
  kubectl etcd status db                 one cluster on one screen
  kubectl etcd status db --watch         the same, drawn again every two seconds
  kubectl etcd status db --check         exit code 2 when it is not healthy, for scripts
`;

export function program({ run, print, rules }: Means, version: string): Command {
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
      new Option(
        '-s, --credentials-secret <secret>',
        'name or namespace/name of a Secret with username and password, or a client certificate',
      ),
    )
    .addHelpText('after', EXAMPLES)
    .showHelpAfterError('(kubectl etcd --help lists the commands and flags)')
    .configureHelp({ showGlobalOptions: true, sortSubcommands: false, subcommandTerm: (command) => command.name() })
    .exitOverride();
  look(root, run, rules);
  operate(root, run, rules);
  backups(root, run);
  connecting(root, run);
  shell(root, print);
  return root;
}

const collect = (value: string, before: readonly string[] = []): readonly string[] => [...before, value];

function shell(root: Command, print: (text: string) => void): void {
  root
    .commandsGroup('Shell:')
    .helpCommand('help [command]', 'show the help of a command')
    .command('completion')
    .description('the script that completes words: for kubectl etcd in any shell, or for kubectl-etcd in one')
    .argument('<shell>', 'kubectl, bash, zsh or fish')
    .action(async (name: string) => print((await import('./commands/completion.ts')).completionScript(name)));
}
