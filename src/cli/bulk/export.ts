/** `coffer token export`: writes all tokens, or those that filters match, page by page; `token import` reads them again. */
import { open, rm } from 'node:fs/promises'
import { resolve } from 'node:path'
import { decideTransform, type Grants } from '../../domain/access/access.js'
import { CofferError, interrupted, usage } from '../../errors.js'
import type { TokenView } from '../../operations/token/token-attributes.js'
import type { CommandContext } from '../context.js'
import { BEGINS_AS_JSON } from '../input/options.js'
import { countOf, displayLines, toJson } from '../output/display.js'
import { neutralize, pickFields, readField, toCsvCell, toCsvLine } from '../output/fields.js'
import { createProgress } from '../output/progress.js'
import { isTerminal, write } from '../output/terminal.js'
import { walkPages } from '../pages.js'
import { runOperation } from '../run.js'
import type { Hooks, Options, Task } from '../task.js'
import { MASKED, ROW_FORMATS, type RowFormat } from './rows.js'

const PAGE = 100
/** The columns that `token import` takes, so that an export can be imported. */
const COLUMNS = [
  'id',
  'type',
  'data',
  'mask',
  'containers',
  'metadata',
  'search_indexes',
  'fingerprint_expression',
  'expires_at',
]

/** Exports as the operation that lists by cursor. @throws CofferError those of it, `conflict` for a file that exists */
export async function exportTokens(
  context: CommandContext,
  args: readonly (string | undefined)[],
  options: Options,
): Promise<void> {
  const steps: Hooks = { run: (task) => exportAll(task, args[0]) }
  await runOperation(context, context.registry.find('token list-after')!, [], options, steps)
}

async function exportAll(task: Task, path = '-'): Promise<void> {
  const { context, options } = task
  const { signal, terminal, clock, config } = context
  const format = chooseFormat(options.format ?? config.output, path)
  const target = path === '-' ? undefined : await createFile(resolve(context.cwd, path))
  const show = isTerminal(terminal.stdout) ? displayLines : String
  const put = target?.put ?? ((text: string) => write(terminal.stdout, show(text)))
  const progress = createProgress(terminal, { label: 'Exporting' }, clock)
  // From here on an interrupt ends the export between two pages, and removes the file.
  context.handlesSignals()
  let count = 0
  try {
    await task.withOpenVault(async () => {
      const isMasked = await findMasked(task)
      const form = createForm(format, config.fields, isMasked)
      if (!(await put(form.begin))) return
      for await (const { data } of walkPages(task, { ...task.input, size: PAGE })) {
        if (signal.aborted) throw interrupted()
        const rows = (data as TokenView[]).map((token, at) => form.show(token, count + at))
        if (!(await put(rows.join('')))) return
        count += rows.length
        await progress.show(count)
      }
      await put(form.end)
    }, 'server')
    await target?.close()
  } catch (error) {
    await target?.discard()
    throw error
  }
  await progress.finish()
  if (target !== undefined) await task.notice(`Exported ${countOf(count, 'token')} to ${path}.`)
}

type IsMasked = (token: TokenView) => boolean

/** Tells of a token whether its data is shown masked; undefined where none is. Of a session, which cannot ask, all are. */
async function findMasked({ ask, key, options }: Task): Promise<IsMasked | undefined> {
  if (key === undefined) return options.reveal === true ? undefined : () => true
  const grants = (await ask({}, 'app whoami').catch(() => ({}))) as Partial<Grants>
  const { rules = [], permissions = [] } = grants
  return (token) => decideTransform({ rules, permissions }, 'token:read', token) !== 'reveal'
}

function chooseFormat(given: unknown, path: string): RowFormat {
  const ending = /\.(csv|json)$/i.exec(path)?.[1]?.toLowerCase() ?? 'ndjson'
  const format = ROW_FORMATS.find((known) => known === (given ?? ending))
  if (format === undefined) throw usage(`An export is ${ROW_FORMATS.join(', ')}: give it as --format.`)
  return format
}

/** Rows with masked data have `masked`: true, which an import refuses. */
function createForm(format: RowFormat, fields: readonly string[] | undefined, isMasked?: IsMasked) {
  const hasData = fields?.some((field) => /^data(\.|$)/.test(field)) !== false
  const columns = [...(fields ?? COLUMNS), ...(hasData && isMasked ? [MASKED] : [])]
  const mark = (token: TokenView) =>
    hasData && token.data !== undefined && isMasked?.(token) ? { ...token, [MASKED]: true } : token
  if (format === 'csv') {
    const cells = (token: TokenView) =>
      columns.map((column) => toCell(readField(mark(token), column), column))
    const begin = `${toCsvLine(columns.map(neutralize))}\n`
    return { begin, show: (token: TokenView) => `${toCsvLine(cells(token))}\n`, end: '' }
  }
  const toText = (token: TokenView) =>
    toJson(fields === undefined ? mark(token) : pickFields(mark(token), columns))
  if (format === 'ndjson') return { begin: '', show: (token: TokenView) => `${toText(token)}\n`, end: '' }
  return {
    begin: '[\n',
    show: (token: TokenView, at: number) => `${at === 0 ? '' : ',\n'}${toText(token)}`,
    end: '\n]\n',
  }
}

/** Text that an import would take for JSON is written as JSON. */
function toCell(value: unknown, column: string): string {
  const isAmbiguous = typeof value === 'string' && (column === 'data' || column === 'mask')
  return isAmbiguous && BEGINS_AS_JSON.test(value) ? toJson(value) : toCsvCell(value)
}

async function createFile(path: string) {
  const file = await open(path, 'wx', 0o600).catch((cause: { code?: unknown }) => {
    if (cause.code === 'EEXIST')
      throw new CofferError('conflict', `${path} exists already. Give another file.`, { cause })
    throw new CofferError('storage_failed', `${path} cannot be written.`, { cause })
  })
  return {
    put: async (text: string) => {
      await file.appendFile(text)
      return true
    },
    close: async () => {
      await file.sync()
      await file.close()
    },
    discard: async () => {
      await file.close()
      await rm(path, { force: true })
    },
  }
}
