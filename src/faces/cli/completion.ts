// Completion of commands and options in shells, made from the table of commands.
import { type Command, command, GROUPS, type Output } from './command.js';
import { longName } from './option.js';
import { wrongUsage } from './failure.js';

const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];

/** The words that may follow the words typed so far; options under the key of their command. */
function tableOf(commands: readonly Command[]): Map<string, string[]> {
  const table = new Map<string, Set<string>>();
  const add = (key: string, word: string): void => void table.set(key, (table.get(key) ?? new Set()).add(word));
  for (const { name, options } of commands) {
    const [first = '', second] = name.split(' ');
    add('', first);
    if (second !== undefined) add(first, second);
    for (const option of Object.keys(options)) add(name, `--${longName(option)}`);
    add(name, '--help');
  }
  for (const [group, { aliases }] of Object.entries(GROUPS)) {
    for (const alias of aliases) for (const word of table.get(group) ?? []) add(alias, word);
  }
  return new Map([...table].map(([key, words]) => [key, [...words].sort()]));
}

function cases(table: ReadonlyMap<string, readonly string[]>): string {
  return [...table].map(([key, words]) => `    '${key}') words='${words.join(' ')}' ;;`).join('\n');
}

/** Bash and zsh share it: zsh runs completions of bash. */
function bashScript(table: ReadonlyMap<string, readonly string[]>): string {
  return `_everstep() {
  local typed="" word words=""
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) ;; *) typed="\${typed:+$typed }$word" ;; esac
  done
  case "$typed" in
${cases(table)}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _everstep everstep
`;
}

function fishScript(table: ReadonlyMap<string, readonly string[]>): string {
  const lines = [...table].map(([key, words]) => {
    const condition = key === '' ? '__fish_use_subcommand' : `string match -q -- '${key}*' (__everstep_typed)`;
    return `complete -c everstep -f -n "${condition}" -a '${words.join(' ')}'`;
  });
  return `function __everstep_typed
  string join ' ' -- (string match -v -- '-*' (commandline -opc)[2..])
end
${lines.join('\n')}
`;
}

function scriptFor(shell: Shell, commands: readonly Command[]): string {
  const table = tableOf(commands);
  if (shell === 'fish') return fishScript(table);
  return shell === 'zsh' ? `autoload -U +X bashcompinit && bashcompinit\n${bashScript(table)}` : bashScript(table);
}

/** `commands` are those to complete. */
export function completionCommand(commands: () => readonly Command[]): Command {
  return command({
    name: 'completion',
    about: 'Print a script that completes commands in your shell',
    parameter: { name: 'SHELL', takes: 'one', about: 'bash, zsh or fish' },
    options: {},
    examples: [
      ['everstep completion bash', 'add: source <(everstep completion bash) to ~/.bashrc; the same for zsh'],
      ['everstep completion fish', 'add: everstep completion fish | source to config.fish'],
    ],
    run: async (_context, { args: [given = ''] }): Promise<Output> => {
      const shell = SHELLS.find((one) => one === given);
      if (shell === undefined) throw wrongUsage(`SHELL must be one of ${SHELLS.join(', ')}.`);
      const script = scriptFor(shell, commands());
      return { json: script, text: () => script.trimEnd() };
    },
  });
}
