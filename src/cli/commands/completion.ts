/** `kubectl etcd completion SHELL`: the scripts; and `__complete`, which they ask. */
import type { Command } from 'commander';
import { type Candidate, complete, connectionIn } from '../completion.ts';
import { UserError } from '../context.ts';

/** A person waits for the key Tab. */
const LIST_MS = 2_000;
/** In the protocol of kubectl: no names of files. */
const NO_FILES = ':4';

interface Io {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly print: (text: string) => void;
  readonly home: string;
}

/** One candidate on a line, with a description after a tab. Without an answer of the API server: no names. */
export async function answerShell(root: Command, words: readonly string[], { env, print, home }: Io): Promise<number> {
  const { candidates, list } = complete(root, words);
  const typed = words.at(-1) ?? '';
  const names = list === undefined ? [] : await listNames(list, words, env, home).catch(() => []);
  const found: readonly Candidate[] = [
    ...candidates,
    ...names.filter((word) => word.startsWith(typed)).map((word) => ({ word })),
  ];
  for (const { word, about } of found) print(about === undefined ? word : `${word}\t${about}`);
  print(NO_FILES);
  return 0;
}

async function listNames(
  list: NonNullable<ReturnType<typeof complete>['list']>,
  words: readonly string[],
  env: Io['env'],
  home: string,
): Promise<readonly string[]> {
  const [{ connect }, { namesOf }] = await Promise.all([import('../connection.ts'), import('../gather/names.ts')]);
  const { client, namespace } = await connect(connectionIn(words), env, home);
  try {
    return await namesOf(client, list, namespace, AbortSignal.timeout(LIST_MS));
  } finally {
    await client.transport.close();
  }
}

/** kubectl runs a program of this name for the words after `kubectl etcd`, in every shell that it completes. */
const KUBECTL = `#!/bin/sh
# Put this into a folder of your PATH as kubectl_complete-etcd, and make it executable.
exec kubectl-etcd __complete "$@"
`;

const BASH = `# For kubectl-etcd itself: source <(kubectl etcd completion bash). For kubectl etcd: kubectl etcd completion kubectl
_kubectl_etcd() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" line
  COMPREPLY=()
  while IFS= read -r line; do
    [[ $line == :* ]] || COMPREPLY+=("\${line%%$'\\t'*}")
  done < <(kubectl-etcd __complete "\${COMP_WORDS[@]:1:COMP_CWORD-1}" "$cur" 2>/dev/null)
}
complete -F _kubectl_etcd kubectl-etcd
`;

const ZSH = `#compdef kubectl-etcd
# For kubectl-etcd itself: source <(kubectl etcd completion zsh). For kubectl etcd: kubectl etcd completion kubectl
_kubectl_etcd() {
  local -a found
  local line
  while IFS= read -r line; do
    [[ $line == :* ]] || found+=("\${line/$'\\t'/:}")
  done < <(kubectl-etcd __complete "\${(@)words[2,CURRENT-1]}" "$words[CURRENT]" 2>/dev/null)
  _describe 'kubectl-etcd' found
}
compdef _kubectl_etcd kubectl-etcd
`;

const FISH = `# For kubectl-etcd itself: kubectl etcd completion fish | source. For kubectl etcd: kubectl etcd completion kubectl
function __kubectl_etcd
  set -l words (commandline -opc)
  kubectl-etcd __complete $words[2..-1] (commandline -ct) 2>/dev/null | string match -v ':*'
end
complete -c kubectl-etcd -f -a '(__kubectl_etcd)'
`;

const SCRIPTS: Readonly<Record<string, string>> = { kubectl: KUBECTL, bash: BASH, zsh: ZSH, fish: FISH };

export function completionScript(shell: string): string {
  const script = SCRIPTS[shell];
  if (script === undefined)
    throw new UserError(`there is completion for ${Object.keys(SCRIPTS).join(', ')}, not for ${JSON.stringify(shell)}`);
  return script;
}
