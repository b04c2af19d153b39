import type { OperationInput } from '../../framework/operation.js'
import { PAGE_PROPERTIES } from '../../framework/page.js'
import type { Format } from '../../global-flags.js'
import type { OperationLine } from '../context.js'
import { type PrintOptions, printResult, type Summarize } from './output.js'

export interface AnswerView {
  /** The notice for an empty list. */
  readonly empty?: string
  /** How its table is laid out. */
  readonly layout?: Pick<PrintOptions, 'wraps' | 'optional'>
  /** Instead of the things themselves in a table, unless `--wide` is given. */
  loadSummary?(): Promise<(items: readonly unknown[], nowMs: number) => ReturnType<Summarize>>
}

interface Asked extends OperationLine {
  readonly input: OperationInput
  readonly format: Format
  readonly presentation: AnswerView
}

export type PrintedBesides = Pick<PrintOptions, 'marks'>

/** Prints an answer, or the answers of several inputs. `more`: what is known of this one. */
export async function printAnswer(asked: Asked, result: unknown, more?: PrintedBesides): Promise<void> {
  const { context, definition, options, format, presentation } = asked
  const { layout, loadSummary } = presentation
  const summarize = format === 'table' && options.wide !== true ? await loadSummary?.() : undefined
  await printResult(context.terminal, result, {
    ...{ format, columns: definition.columns, fields: context.config.fields, ...layout },
    summarize: summarize && ((items) => summarize(items, context.clock())),
    hints: describeHints(asked),
    ...more,
  })
}

function describeHints({ context, definition, input, presentation }: Asked) {
  const { noun, output, confirmation, positionals } = definition
  const isFiltered = Object.keys(input).some((name) => ![...PAGE_PROPERTIES, ...positionals].includes(name))
  const creator = context.registry.operations.find((other) => other.noun === noun && other.success === 201)
  const first = creator === undefined ? '' : ` Create one: coffer ${creator.name} --help`
  const none = isFiltered
    ? `No ${noun} matches these filters.`
    : `No ${noun.replace(/y$/, 'ie')}s yet.${first}`
  const done = output === undefined && confirmation !== undefined ? 'Deleted.' : 'Done.'
  return { empty: presentation.empty ?? none, done }
}
