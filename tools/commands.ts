/** The commands of `./dev`. Each is loaded when it is called, so that no command pays for the others. */
import { levels } from './test/arguments.ts';

export interface Command {
  readonly name: string;
  readonly takes: string;
  /** One sentence for the list. */
  readonly does: string;
  /** Needs nothing but this checkout and its packages unless stated otherwise. */
  readonly load: () => Promise<(args: readonly string[]) => Promise<number>>;
}

export const commands: readonly Command[] = [
  {
    name: 'demo',
    takes: '',
    does: 'Show a real etcd cluster run under the operator on a real Kubernetes on this machine.',
    load: async () => (await import('./commands/demo.ts')).demo,
  },
  {
    name: 'test',
    takes: `[${levels.join('|')}] [filter] [--all]`,
    does: 'Run all checks and tests, or one level of them, or those that match the filter.',
    load: async () => (await import('./commands/test.ts')).test,
  },
  {
    name: 'mutants',
    takes: '[--sim|--record] [text]',
    does: 'Inject deliberate faults, one at a time, and fail when the tests detect fewer than they must.',
    load: async () => (await import('./commands/mutants.ts')).mutants,
  },
  {
    name: 'up',
    takes: '',
    does: 'Start the local Kubernetes: three nodes on this machine.',
    load: async () => (await import('./commands/cluster.ts')).up,
  },
  {
    name: 'down',
    takes: '[demo|test|scratch]',
    does: 'Stop the local Kubernetes and remove every trace of it.',
    load: async () => (await import('./commands/cluster.ts')).down,
  },
  {
    name: 'kubectl',
    takes: '…',
    does: 'Run kubectl against the local Kubernetes.',
    load: async () => (await import('./commands/cluster.ts')).kubectl,
  },
  {
    name: 'helm',
    takes: '…',
    does: 'Run Helm against the local Kubernetes.',
    load: async () => (await import('./commands/cluster.ts')).helm,
  },
  {
    name: 'image',
    takes: '…',
    does: "Build the operator's container image, without Docker.",
    load: async () => (await import('./image/command.ts')).imageCommand,
  },
  {
    name: 'plugin',
    takes: '…',
    does: 'Build kubectl-etcd, the kubectl plugin.',
    load: async () => (await import('./plugin/command.ts')).pluginCommand,
  },
  {
    name: 'bench',
    takes: '[name]',
    does: 'Run the benchmarks, or one of them, and keep the figures.',
    load: async () => (await import('./commands/bench.ts')).bench,
  },
  {
    name: 'fmt',
    takes: '',
    does: 'Format all sources.',
    load: async () => (await import('./commands/static.ts')).fmt,
  },
  {
    name: 'lint',
    takes: '',
    does: 'Check format, lint rules and types.',
    load: async () => (await import('./commands/static.ts')).lint,
  },
  {
    name: 'gen',
    takes: '[--check]',
    does: 'Regenerate the generated files; with --check, only report which are out of date.',
    load: async () => (await import('./commands/gen.ts')).gen,
  },
];

export function listing(): string {
  const head = (command: Command): string => `  ./dev ${command.name} ${command.takes}`.trimEnd();
  const wide = 26;
  const lines = commands.map((command) => {
    const left = head(command);
    return left.length < wide ? `${left.padEnd(wide)}${command.does}` : `${left}\n${' '.repeat(wide)}${command.does}`;
  });
  return ['The one script of this repository. New here? ./dev demo', '', ...lines].join('\n');
}
