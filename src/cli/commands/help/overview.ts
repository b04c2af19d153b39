/** The text of `coffer` and `coffer --help`: the commands in groups, on one screen. */
import { fold, indent } from '../../output/display.js'

export const GROUPS: Readonly<Record<string, readonly string[]>> = {
  Start: ['init', 'serve', 'mcp', 'doctor', 'completion'],
  Data: ['token', 'intent', 'key', 'formula', 'reactor', 'proxy', 'webhook', 'document', 'log', 'scan'],
  Cards: ['3ds', 'enrich', 'updater', 'network-token', 'google-pay', 'apple-pay'],
  Access: ['app', 'access', 'session', 'tenant'],
  People: ['member', 'invite'],
  Testing: ['control', 'seed', 'pull', 'conform', 'openapi'],
  Vault: ['vault', 'config', 'profile'],
}
/** For each group whose nouns share one line: the description on this line. */
const SHARED: Readonly<Record<string, string>> = {
  Cards: 'services',
  People: 'members of your tenant, and invitations',
  Vault: 'maintenance, settings, and named sets of flags',
}
const [GROUP_COLUMNS, NAME_COLUMNS] = [8, 12]
const MIN_SUMMARY = 20

export interface Summary {
  readonly name: string
  readonly summary: string
}

export function describeGroups(commands: readonly Summary[], topics: readonly string[], columns: number) {
  const summaryOf = (name: string) => commands.find((command) => command.name === name)?.summary ?? ''
  const groups = Object.entries(GROUPS).map(([group, names]) => {
    const shared = SHARED[group]
    if (shared !== undefined) return [describeShared(group, names, shared, columns)]
    return names.map((name, at) => {
      const head = (at === 0 ? group : '').padEnd(GROUP_COLUMNS) + name.padEnd(NAME_COLUMNS)
      const summary = fold(summaryOf(name), Math.max(MIN_SUMMARY, columns - head.length))
      return head + indent(summary, head.length).trimStart()
    })
  })
  const title = 'A token vault in your terminal, and a server for your tests. Begin: coffer init'
  const screen = groups.map((lines) => lines.join('\n')).join('\n')
  return `${fold(title, columns)}\n${screen}\n${describeTopics(topics, columns)}\n`
}

function describeShared(group: string, names: readonly string[], shared: string, columns: number): string {
  const line = fold(`${names.join(', ')}: ${shared}`, Math.max(MIN_SUMMARY, columns - GROUP_COLUMNS))
  return group.padEnd(GROUP_COLUMNS) + indent(line, GROUP_COLUMNS).trimStart()
}

function describeTopics(topics: readonly string[], columns: number): string {
  const lines: string[] = []
  for (const topic of topics) {
    const longer = `${lines.at(-1)}|${topic}`
    if (lines.length > 0 && longer.length <= columns) lines[lines.length - 1] = longer
    else lines.push(`More: coffer help ${topic}`)
  }
  return lines.join('\n')
}
