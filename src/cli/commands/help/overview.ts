/** `coffer` and `coffer --help`: the commands in groups, on one screen. */
import { truncate } from '../../output/display.js'

/** The commands of each group. `help` and `version` are in none. */
export const GROUPS: Readonly<Record<string, readonly string[]>> = {
  Start: ['init', 'serve', 'mcp', 'doctor', 'completion'],
  Data: ['token', 'intent', 'formula', 'reactor', 'proxy', 'webhook', 'log', 'scan'],
  Access: ['app', 'session', 'tenant', 'member', 'invite'],
  Testing: ['control', 'seed', 'openapi'],
  Vault: ['vault', 'config', 'profile'],
}
const [GROUP_COLUMNS, NAME_COLUMNS] = [8, 12]

export interface Summary {
  readonly name: string
  readonly summary: string
}

export function describeGroups(commands: readonly Summary[], topics: readonly string[], columns: number) {
  const summaryOf = (name: string) => commands.find((command) => command.name === name)?.summary ?? ''
  const groups = Object.entries(GROUPS).map(([group, names]) =>
    names.map((name, at) => {
      const head = (at === 0 ? group : '').padEnd(GROUP_COLUMNS) + name.padEnd(NAME_COLUMNS)
      return truncate(head + summaryOf(name), columns)
    }),
  )
  const title = 'A token vault in your terminal, and a server for your tests. Begin: coffer init'
  const screen = groups.map((lines) => lines.join('\n')).join('\n\n')
  return `${title}\n${screen}\nMore: coffer help ${topics.join('|')}\n`
}
