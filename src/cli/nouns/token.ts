import { isObject } from '../../domain/json/json.js'
import { shortenIds } from '../../domain/token/short-id.js'
import { TOKEN_TYPES } from '../../domain/token/token-types.js'
import { CofferError } from '../../errors.js'
import { count, object } from '../../framework/output.js'
import type { TokenView } from '../../operations/token/token-attributes.js'
import { formatAge, formatAhead } from '../output/ages.js'
import { toJson } from '../output/display.js'
import type { Hooks, Presentation, Presentations, Task } from '../task.js'

const SHORT_BRANDS: Readonly<Record<string, string>> = { 'american-express': 'amex', 'diners-club': 'diners' }

/**
 * Digits in --data are first sent as a number. If the stored data is text, the operation refuses the number, and the
 * digits are sent again as text.
 */
const updateToken: Hooks = {
  run: async (task, usual) => {
    const { input } = task
    const askAgain = (error: unknown) => {
      const isRefused = error instanceof CofferError && error.errors?.data !== undefined
      if (!isRefused || !Number.isSafeInteger(input.data)) throw error
      return task.ask({ ...input, data: String(input.data) })
    }
    const ask: Task['ask'] = (...given) => {
      const asked = task.ask(...given)
      return given.length === 0 ? asked.catch(askAgain) : asked
    }
    await usual!({ ...task, ask })
  },
}

export function summarizeTokens(tokens: readonly unknown[], nowMs: number) {
  const views = tokens as readonly TokenView[]
  const ids = shortenIds(views.map(({ id }) => id))
  const rows = views.map((token, at) => {
    const { type, containers } = token
    const usual = TOKEN_TYPES.find(({ name }) => name === type)?.containers
    const isUsual = usual?.join() === containers.join()
    const created = formatAge(token.created_at, nowMs)
    const expires = token.expires_at === undefined ? '' : formatAhead(token.expires_at, nowMs)
    const shows = describeData(token)
    return { id: ids[at], type, shows, containers: isUsual ? '' : containers, created, expires }
  })
  const used = (['containers', 'created', 'expires'] as const).filter((name) =>
    rows.some((row) => row[name] !== ''),
  )
  return { rows, columns: ['id', 'type', 'shows', ...used] }
}

function describeData({ type, card, bank, data, mask }: TokenView): string {
  const members = isObject(data) ? data : {}
  if (card !== undefined) {
    const { brand = 'card', last4 } = card
    const shown = endOf(type === 'card_number' ? data : members.number, last4)
    return `${SHORT_BRANDS[brand] ?? brand} ${shown}`
  }
  if (bank !== undefined)
    return `${bank.routing_number} ${endOf(members.account_number, bank.account_number_last4)}`
  if (data === undefined) return mask === undefined ? '(no mask)' : '(redacted)'
  return findText(data) ?? toJson(data)
}

function endOf(number: unknown, last4: string): string {
  return typeof number === 'string' && /^\d+$/.test(number) ? number : `•••• ${last4}`
}

function findText(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  if (typeof value !== 'object' || value === null) return undefined
  for (const member of Object.values(value)) {
    const text = findText(member)
    if (text !== undefined) return text
  }
  return undefined
}

const tokens: Presentation = {
  options: [['--wide', 'a table with whole ids, times and data']],
  layout: { optional: ['containers', 'created'] },
  summarize: summarizeTokens,
}

const importResult = object({
  'resumed_after?': count,
  'created?': count,
  'deduplicated?': count,
  'would_be_created?': count,
  'would_be_deduplicated?': count,
  refused: count,
})

const importTokens: Hooks = {
  gather: async () => ({}),
  run: async (task) => (await import('../bulk/import.js')).importRows(task),
}

export const presentations: Presentations = {
  'token import': {
    arguments: [['[file]', 'a file with the rows; without a file, or with -, standard input']],
    options: [
      ['--format <format>', 'ndjson, json or csv'],
      [
        '--map <column=path>',
        'for CSV: the target of a column, such as number=data.number; an empty target skips the column: notes= (repeatable)',
        true,
      ],
      ['--type <text>', 'the type of rows that have no type'],
      [
        '--results <file>',
        'write a line of JSON for each row: the line number, and the id or the reason why the row was refused',
      ],
      ['--continue-on-error', 'skip refused rows'],
      [
        '--resume <file>',
        'like --results; if you run the same command again, the import continues after the last row in this file',
      ],
      ['--dry-run', 'say which rows would be created and refused, and write nothing'],
    ],
    servedBy: 'token tokenize',
    result: importResult,
    hooks: importTokens,
  },
  'token generate': tokens,
  'token list': tokens,
  'token list-after': tokens,
  'token search': {
    ...tokens,
    empty: 'No token matches. Search finds data by search indexes only: coffer help search',
  },
  'token search-after': tokens,
  'token children': {
    ...tokens,
    empty: 'This token has no children. Link one: coffer token link PARENT CHILD',
  },
  'token update': { hooks: updateToken },
}
