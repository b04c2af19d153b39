/** Generates completion scripts for shells from the tree of commands. */
import { CofferError } from '../../errors.js'
import type { CommandContext, CommandFacts } from '../context/context.js'
import { write } from '../output/terminal.js'

const SHELLS: Record<string, (commands: readonly CommandFacts[]) => string> = {
  bash: writeBash,
  zsh: writeZsh,
  fish: writeFish,
}

/** `coffer completion SHELL`. @throws CofferError `usage` for an unknown shell */
export async function printCompletion(
  { terminal, listCommands }: CommandContext,
  shell: string,
): Promise<void> {
  const writeScript = Object.hasOwn(SHELLS, shell) ? SHELLS[shell] : undefined
  if (writeScript === undefined)
    throw new CofferError('usage', `The shell is one of ${Object.keys(SHELLS).join(', ')}.`)
  await write(terminal.stdout, writeScript(listCommands()))
}

/** The subcommands and flags after a command. */
function wordsAfter(commands: readonly CommandFacts[], path: string): string[] {
  const depth = path === '' ? 0 : path.split(' ').length
  const below = commands.filter(
    ({ words }) => words.length === depth + 1 && words.slice(0, depth).join(' ') === path,
  )
  const flags = commands.find(({ words }) => words.join(' ') === path)?.flags ?? []
  return [...below.map(({ words }) => words[depth]!), ...flags]
}

function paths(commands: readonly CommandFacts[]): string[] {
  return commands.map(({ words }) => words.join(' '))
}

function writeBash(commands: readonly CommandFacts[]): string {
  const cases = paths(commands).map(
    (path) => `    ${JSON.stringify(path)}) words="${wordsAfter(commands, path).join(' ')}" ;;`,
  )
  return `# coffer completion for bash: eval "$(coffer completion bash)"
_coffer() {
  local current=\${COMP_WORDS[COMP_CWORD]} path="" word words=""
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [[ $word == -* ]] && break
    path="\${path:+$path }$word"
    [[ $path == *" "*" "* ]] && break
  done
  while :; do
    case "$path" in
${cases.join('\n')}
    esac
    [[ -n $words || -z $path ]] && break
    [[ $path == *" "* ]] && path="\${path% *}" || path=""
  done
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  [[ \${#COMPREPLY[@]} -gt 0 ]] || COMPREPLY=($(compgen -f -- "$current"))
}
complete -o bashdefault -F _coffer coffer
`
}

function writeZsh(commands: readonly CommandFacts[]): string {
  const bash = writeBash(commands).split('\n').slice(1).join('\n')
  return `# coffer completion for zsh: eval "$(coffer completion zsh)"
autoload -U +X bashcompinit && bashcompinit
${bash}`
}

function writeFish(commands: readonly CommandFacts[]): string {
  const lines = commands.flatMap(({ words, summary, flags }) => {
    const condition = describeFishCondition(words.slice(0, -1))
    const text = summary.replaceAll("'", "\\'")
    const own =
      words.length === 0 ? [] : [`complete -c coffer -f -n '${condition}' -a '${words.at(-1)}' -d '${text}'`]
    const when = describeFishCondition(words)
    return [...own, ...flags.map((flag) => `complete -c coffer -n '${when}' -l '${flag.replace(/^--/, '')}'`)]
  })
  return `# coffer completion for fish: coffer completion fish | source\n${lines.join('\n')}\n`
}

function describeFishCondition(words: readonly string[]): string {
  if (words.length === 0) return '__fish_use_subcommand'
  return words.map((word) => `__fish_seen_subcommand_from ${word}`).join('; and ')
}
