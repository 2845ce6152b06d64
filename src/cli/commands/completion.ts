/** `kubectl etcd completion SHELL`: the scripts; and `__complete`, which they ask. */
import type { Command } from 'commander';
import { type Candidate, complete, connectionIn, separated } from '../completion.ts';
import { UserError } from '../context.ts';

/** A person waits for the key Tab. */
const LIST_MS = 2_000;
/** In the protocol of kubectl: names of files too, or none. */
const DIRECTIVES = { files: ':0', noFiles: ':4' };

interface Io {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly print: (text: string) => void;
  readonly home: string;
}

/** One candidate on a line, with a description after a tab. Without an answer of the API server: no names. */
export async function answerShell(root: Command, words: readonly string[], { env, print, home }: Io): Promise<number> {
  const { candidates, list, files } = complete(root, words);
  const given = separated(words);
  const typed = given.at(-1) ?? '';
  const names = list === undefined ? [] : await listNames(list, given, env, home).catch(() => []);
  const found: readonly Candidate[] = [
    ...candidates,
    ...names.filter((word) => word.startsWith(typed)).map((word) => ({ word })),
  ];
  for (const { word, about } of found) print(about === undefined ? word : `${word}\t${about}`);
  print(files ? DIRECTIVES.files : DIRECTIVES.noFiles);
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
    case $line in
      :0) compopt -o default 2>/dev/null ;;
      :*) ;;
      *) COMPREPLY+=("\${line%%$'\\t'*}") ;;
    esac
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
    case $line in
      :0) _files ;;
      :*) ;;
      *) found+=("\${line/$'\\t'/:}") ;;
    esac
  done < <(kubectl-etcd __complete "\${(@)words[2,CURRENT-1]}" "$words[CURRENT]" 2>/dev/null)
  compset -P '--*='
  _describe 'kubectl-etcd' found
}
compdef _kubectl_etcd kubectl-etcd
`;

const FISH = `# For kubectl-etcd itself: kubectl etcd completion fish | source. For kubectl etcd: kubectl etcd completion kubectl
function __kubectl_etcd
  set -l words (commandline -opc)
  set -l typed (commandline -ct)
  set -l flag (string match -r -- '^--[^=]+=' $typed)
  for line in (kubectl-etcd __complete $words[2..-1] $typed 2>/dev/null)
    switch $line
      case ':0'
        __fish_complete_path $typed
      case ':*'
      case '*'
        echo $flag$line
    end
  end
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
