import { neutralize, toCsvLine } from '../../domain/text/spreadsheet.js'
import { TOKEN_TYPES } from '../../domain/token/token-types.js'
import { interrupted, usage } from '../../errors.js'
import { ROW_FORMATS } from '../../global-flags.js'
import { exportedAttributes, type TokenView } from '../../operations/token/token-attributes.js'
import { BEGINS_AS_JSON } from '../input/flags.js'
import { countOf, display, toJson } from '../output/display.js'
import { pickFields, readField, toCsvCell } from '../output/fields.js'
import { createProgress } from '../output/progress.js'
import { findMasked, type IsMasked, walkPages } from '../pages.js'
import { runOnTokens } from '../run.js'
import type { Task, TerminalCommand } from '../task.js'
import { openExportTarget } from './export-target.js'
import { MASKED } from './rows.js'

const PAGE = 100
/** No answer contains `deduplicate_token`. */
const COLUMNS = exportedAttributes.filter((name) => name !== 'deduplicate_token')

/** @throws CofferError `conflict` if the file exists, and the errors of listing tokens */
export const exportTokens: TerminalCommand['run'] = (context, [path], options) =>
  runOnTokens(context, options, (task) => exportAll(task, path))

async function exportAll(task: Task, path = '-'): Promise<void> {
  const { context, options } = task
  const { signal, terminal, clock, config } = context
  const ending = /\.(csv|json)$/i.exec(path)?.[1]?.toLowerCase() ?? 'ndjson'
  const format = String(options.format ?? config.output ?? ending)
  if (!ROW_FORMATS.some((known) => known === format))
    throw usage(
      `An export cannot have the format ${display(format)}. Give --format with one of: ${ROW_FORMATS.join(', ')}.`,
    )
  const isArray = format === 'json'
  const target = await openExportTarget(context, path)
  const { put } = target
  const progress = createProgress(terminal, { label: 'Exporting tokens' }, clock)
  // After this call, an interrupt ends the export between two pages and removes the new file.
  context.handlesSignals()
  let count = 0
  try {
    await task.withOpenVault(async () => {
      const { head, formatRow } = createForm(format, config.fields, await findMasked(task))
      if (!(await put(head))) return
      for await (const { data } of walkPages(task, { ...task.input, size: PAGE })) {
        if (signal.aborted) throw interrupted()
        const rows = (data as TokenView[]).map(formatRow)
        const begin = isArray && count > 0 && rows.length > 0 ? ',\n' : ''
        if (!(await put(begin + rows.join(isArray ? ',\n' : '')))) return
        count += rows.length
        await progress.show(count)
      }
      if (isArray) await put('\n]\n')
    }, 'server')
  } catch (error) {
    await target.discard()
    throw error
  }
  await target.complete()
  await progress.finish()
  const shown = options.reveal === true ? ', which now contains data in plaintext' : ''
  const how = task.key === undefined && shown === '' ? ' (masked; --reveal for plaintext)' : shown
  if (path !== '-') await task.notice(`Exported ${countOf(count, 'token')} to ${path}${how}.`)
}

/** Adds `masked: true` to rows with masked data, so that an import refuses these rows. */
function createForm(format: string, fields: readonly string[] | undefined, isMasked?: IsMasked) {
  const hasData = fields?.some((field) => /^data(\.|$)/.test(field)) !== false
  const columns = [...(fields ?? COLUMNS), ...(hasData && isMasked ? [MASKED] : [])]
  const mark = (token: TokenView) => ({
    ...token,
    ...(hasNoMask(token) && { mask: null }),
    ...(hasData && token.data !== undefined && isMasked?.(token) && { [MASKED]: true }),
  })
  if (format === 'csv')
    return {
      head: `${toCsvLine(columns.map(neutralize))}\n`,
      formatRow: (token: TokenView) =>
        `${toCsvLine(columns.map((column) => toCell(readField(mark(token), column), column)))}\n`,
    }
  const toText = (token: TokenView) =>
    toJson(fields === undefined ? mark(token) : pickFields(mark(token), columns))
  return format === 'json'
    ? { head: '[\n', formatRow: toText }
    : { head: '', formatRow: (token: TokenView) => `${toText(token)}\n` }
}

/**
 * Returns true if the token has no mask, although its type has a default mask. The export then contains `mask: null`,
 * so that an import does not add the default mask.
 */
function hasNoMask({ type, mask }: TokenView): boolean {
  return mask === undefined && TOKEN_TYPES.find(({ name }) => name === type)?.mask !== undefined
}

/** Writes text as a JSON string if an import would read the text as JSON or as an empty cell. */
function toCell(value: unknown, column: string): string {
  if (column !== 'data' && column !== 'mask') return toCsvCell(value)
  const isAmbiguous = typeof value === 'string' && (BEGINS_AS_JSON.test(value) || /^(null)?$/.test(value))
  return isAmbiguous || (value === null && column === 'mask') ? toJson(value) : toCsvCell(value)
}
