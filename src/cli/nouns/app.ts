import { summarizeRights } from '../../domain/access/rule-text.js'
import { quoteWord } from '../../domain/text/quote-word.js'
import type { ApplicationView } from '../../operations/application/application-record.js'
import { formatAge, formatAhead } from '../output/ages.js'
import type { Hooks, Presentations, Task } from '../task.js'

const AGENT_PERMISSIONS = ['token:create', 'token:read', 'token:search', 'token:use']

const createAgent: Hooks = {
  gather: async (_, __, { agent: name }) => {
    if (name === undefined) return undefined
    const rule = { priority: 1, container: '/', transform: 'mask', permissions: AGENT_PERMISSIONS }
    return { name, type: 'private', rules: [rule] }
  },
}

const regenerateKeys: Hooks = {
  confirm: async ({ args, input, context }) => {
    const { grace } = input
    const names = args.join(', ')
    const old =
      grace === undefined ? 'are refused immediately' : `still work for ${grace}, and are then refused`
    const what =
      args.length === 1
        ? `This replaces the keys of application ${names} with a new key.`
        : `This gives each of these applications a new key, which replaces its keys: ${names}.`
    const { confirm } = await import('../input/prompt.js')
    await confirm(context.terminal, `${what} The old keys ${old}. Continue?`)
  },
  run: async (task, usual) => {
    let made: Partial<ApplicationView> = {}
    const print: Task['print'] = async (result, ...how) => {
      made = result as ApplicationView
      await task.print(result, ...how)
    }
    await usual?.({ ...task, print })
    const { name = '', keys = [] } = made
    const old = keys.filter(({ expires_at }) => expires_at !== undefined)
    if (old.length === 0) return
    const last = old
      .map(({ expires_at }) => expires_at!)
      .sort()
      .at(-1)!
    const [until, id] = old.length === 1 ? [last, old[0]!.id] : [`${last} at the latest`, 'KEY-ID']
    const which = old.length === 1 ? 'The old key works' : 'The old keys work'
    await task.notice(
      `${which} until ${until}. To revoke one earlier: coffer app key delete ${quoteWord(name)} ${id}`,
    )
  },
}

export function summarizeApplications(applications: readonly unknown[], nowMs: number) {
  const rows = (applications as readonly ApplicationView[]).map((application) => {
    const { id, name, type, created_at, expires_at } = application
    return {
      id,
      name,
      type,
      rights: summarizeRights(rightsOf(application)),
      created: formatAge(created_at, nowMs),
      expires: expires_at === undefined ? '' : formatAhead(expires_at, nowMs),
    }
  })
  const ends = rows.some(({ expires }) => expires !== '') ? ['expires'] : []
  return { rows, columns: ['id', 'name', 'type', 'rights', 'created', ...ends] }
}

/** A server of another version may omit lists that are empty. */
function rightsOf({ permissions = [], rules = [] }: ApplicationView): Parameters<typeof summarizeRights>[0] {
  return { permissions, rules } as Parameters<typeof summarizeRights>[0]
}

export const presentations: Presentations = {
  'app create': {
    options: [
      ['--agent <name>', 'an application for coffer mcp: it stores, finds and uses tokens, and sees masks'],
    ],
    hooks: createAgent,
  },
  'app list': {
    layout: { optional: ['created'] },
    summarize: summarizeApplications,
  },
  'app regenerate': { hooks: regenerateKeys },
  'app regenerate-with-grace': { hooks: regenerateKeys },
  'app key list': {
    empty: 'No such keys. Create one: coffer app key create --help',
    layout: { optional: ['created_by'] },
  },
}
