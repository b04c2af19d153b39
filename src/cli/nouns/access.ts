import { describeSeen, SEEN_WORDS } from '../../domain/access/cell-text.js'
import { MAX_APPLICATIONS } from '../../domain/access/matrix-limits.js'
import { arrayOf, count, date, enumOf, object, text } from '../../framework/output.js'
import type { ResultOf } from '../../operations/all.js'
import { countOf, display, formatCount, measureWidth, truncate } from '../output/display.js'
import { printResult } from '../output/output.js'
import { isTerminal, write } from '../output/terminal.js'
import type { Hooks, Presentations, Task } from '../task.js'

type Matrix = ResultOf<'access matrix'>
type Preview = ResultOf<'access preview'>
type Cell = Preview['cells'][number]
type Row = { readonly [column: string]: string }

const GAP_COLUMNS = 2
/** A longer name or value is cut, so that at least one container fits beside the names on 80 columns. */
const MAX_COLUMNS = 32

const cell = { container: text, sees: enumOf('plain', 'masked', 'redacted', 'none'), 'example?': {} } as const
const decider = { by: text, 'rule?': count, 'description?': text } as const
/** The items of CSV, NDJSON and other formats that print one item on each line. */
const matrixLines = arrayOf(
  object({
    ...{ application: text, application_id: text, application_type: text },
    ...{ ...cell, ...decider, permission: text, tenant: text, at: date },
  }),
)
const previewLines = arrayOf(object({ ...cell, ...decider, permission: text }))

/** Whether to print one item for each cell. JSON without --fields is the whole answer instead. */
const asLines = ({ format, context }: Task) => format !== 'json' || context.config.fields !== undefined

const showMatrix: Hooks = {
  run: async (task) => {
    const answer = (await task.ask()) as Matrix
    if (task.format !== 'table' || task.context.config.fields !== undefined)
      await task.print(asLines(task) ? linesOf(answer) : answer)
    else await printMatrix(task, answer)
    await noticeCut(task, answer)
  },
}

const showPreview: Hooks = {
  view: (answer, task) => {
    const { permission, cells } = answer as Preview
    if (task.format === 'table' && task.context.config.fields === undefined) return tableOf(answer as Preview)
    return asLines(task) ? cells.map((each) => ({ ...each, permission })) : answer
  },
}

function linesOf({ applications, permission, tenant, at }: Matrix) {
  return applications.flatMap(({ id, name, type, cells }) =>
    cells.map((each) => ({
      ...{ application: name, application_id: id, application_type: type },
      ...{ container: each.container, sees: each.sees, example: each.example },
      ...{ by: each.by, rule: each.rule, description: each.description },
      ...{ permission, tenant: tenant.name, at },
    })),
  )
}

function describeCell(each: Cell, mask: Preview['containers'][number]['mask']): string {
  const value = describeSeen(each, mask)
  return value === undefined ? SEEN_WORDS[each.sees] : `${SEEN_WORDS[each.sees]} ${value}`
}

function describeBy({ by, rule, description }: Cell): string {
  if (by === 'rule') return description === undefined ? `rule ${rule}` : `rule ${rule}: ${description}`
  return { permissions: 'permissions', nothing: 'nothing grants it', expiry: 'expired' }[by]
}

function tableOf({ containers, cells }: Preview): Row[] {
  return cells.map((each, at) => ({
    container: each.container,
    sees: describeCell(each, containers[at]!.mask),
    because: describeBy(each),
  }))
}

/** If the columns do not fit beside each other, draws several tables below each other. */
async function printMatrix(task: Task, answer: Matrix): Promise<void> {
  const { context } = task
  const { stdout } = context.terminal
  const width = isTerminal(stdout) && stdout.columns ? stdout.columns : Number.POSITIVE_INFINITY
  let isCut = false
  const cut = (text: string): string => {
    const short = truncate(display(text), MAX_COLUMNS)
    isCut ||= short !== display(text)
    return short
  }
  const names = nameRows(answer.applications).map(cut)
  const columns = answer.containers.map(({ container, mask }, at) => ({
    container,
    cells: answer.applications.map(({ cells }) => cut(describeCell(cells[at]!, mask))),
  }))
  const isFiltered = task.input.application !== undefined || answer.total_applications > 0
  const none = 'No application yet. Create one: coffer app create --help'
  const hints = { empty: isFiltered ? 'No application matches. List them: coffer app list' : none }
  if (names.length === 0) return void (await printResult(context.terminal, [], { format: 'table', hints }))
  const first = widest(['application', ...names])
  for (const [at, block] of splitColumns(columns, width - first).entries()) {
    const rows = names.map((application, row) => ({
      application,
      ...Object.fromEntries(block.map(({ container, cells }) => [container, cells[row]!])),
    }))
    if (at > 0) await write(stdout, '\n')
    await printResult(context.terminal, rows, { format: 'table' })
  }
  if (isCut) await task.notice('Names and values are cut to fit. Show all with -o csv.')
}

/** The beginning of the id distinguishes applications with equal names. */
function nameRows(applications: Matrix['applications']): string[] {
  return applications.map(({ id, name, is_expired }) => {
    const isShared = applications.filter((each) => each.name === name).length > 1
    return `${name}${isShared ? ` (${id.slice(0, 8)})` : ''}${is_expired ? ' (expired)' : ''}`
  })
}

const widest = (texts: readonly string[]) =>
  Math.min(MAX_COLUMNS, Math.max(...texts.map((each) => measureWidth(display(each)))))

function splitColumns<C extends { container: string; cells: string[] }>(columns: C[], room: number): C[][] {
  const blocks: C[][] = []
  let left = 0
  for (const column of columns) {
    const needed = GAP_COLUMNS + widest([column.container, ...column.cells])
    if (blocks.length === 0 || needed > left) {
      blocks.push([])
      left = room
    }
    blocks.at(-1)!.push(column)
    left -= needed
  }
  return blocks
}

async function noticeCut({ notice, format, input }: Task, answer: Matrix): Promise<void> {
  const { applications, containers, total_applications, total_containers, permission } = answer
  if (format === 'table' && applications.length > 0)
    await notice(
      `The table is for the permission ${permission}. The values are examples: made-up data with the mask of the newest token in the container.`,
    )
  const page = (input.page as number | undefined) ?? 1
  if (total_applications > applications.length) {
    const next = page * MAX_APPLICATIONS < total_applications ? ` Next: --page ${page + 1}.` : ''
    await notice(
      `Shown: ${countOf(applications.length, 'application')} of ${formatCount(total_applications)}, page ${page}.${next} Choose one: --application NAME`,
    )
  }
  if (total_containers > containers.length)
    await notice(
      `Shown: ${countOf(containers.length, 'container')} of ${formatCount(total_containers)}. Choose others: --container /pci/`,
    )
}

export const presentations: Presentations = {
  'access matrix': { result: matrixLines, hooks: showMatrix },
  'access preview': { result: previewLines, hooks: showPreview },
}
