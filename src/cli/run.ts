/** Runs one operation from the command line: input, `perform`, output. */

import { CofferError } from '../errors.js'
import type { AnyOperation } from '../framework/operation.js'
import { type List, listOf } from '../framework/page.js'
import { ASK_SMALLER } from '../framework/recipient.js'
import type { RegisteredOperation } from '../framework/registry.js'
import type { NumberSchema } from '../framework/schema.js'
import type { OutboxMail } from '../operations/invite/outbox.js'
import type { Vault } from '../vault/vault.js'
import { findDelivery, noteDelivery, writesMail } from './commands/invite.js'
import { findTenantChoice } from './commands/tenant-choice.js'
import type { Desk } from './context.js'
import { requireVault } from './credentials.js'
import { listFlags } from './input/options.js'
import { gatherInput } from './input/request.js'
import { chooseFormat, printNotice, printResult } from './output/output.js'

const LARGEST_PAGE = 1000
/** So long a command that only reads takes expired tokens off the disk. */
const SWEEP_BY_READING_MS = 20

/** @throws CofferError whatever the operation refuses. */
export async function runOperation(
  desk: Desk,
  definition: RegisteredOperation,
  words: readonly string[],
  options: Readonly<Record<string, unknown>>,
): Promise<void> {
  const { terminal, config } = desk
  const format = chooseFormat(terminal, config.output)
  const key = await readApiKey(desk)
  if (terminal.mayPrompt) requireVault(desk)
  const isExplained = options.explain === true || typeof options.explainAs === 'string'
  if (terminal.mustHaveFields && !isExplained)
    (await import('./known-fields.js')).requireFields(definition.output, config.fields ?? [])
  const input = await gatherInput(desk, definition, words, options)
  const isReveal = options.reveal === true
  if (isExplained) {
    const { explainOperation } = await import('./output/explain.js')
    const application = typeof options.explainAs === 'string' ? options.explainAs : undefined
    return explainOperation(desk, definition, input, { key, application, reveal: isReveal })
  }
  const tenant = key === undefined ? await findTenantChoice(desk) : undefined
  await confirmDestruction(desk, definition, words, key)
  let mail: OutboxMail | undefined
  const result = await desk.reachVault(async (vault) => {
    const call = createCall(vault, definition, { key, isReveal, tenant })
    if (options.all !== true) {
      const result = await call(input)
      await warnOfFormula(desk, vault, definition, input)
      await sweepExpired(desk, vault, definition)
      if (key === undefined && writesMail(definition)) mail = await findDelivery(desk, vault, result)
      return result
    }
    const size = typeof input.size === 'number' ? input.size : pageSizeOf(definition)
    const pages = walkPages(call, { ...input, size }, desk.signal)
    // A stream is printed while the vault is open; everything else is complete before.
    const isStream = format === 'ndjson' || format === 'id'
    const whole = isStream ? undefined : await collectPages(pages)
    if (isStream)
      await printResult(terminal, itemsOf(pages), {
        format,
        columns: definition.columns,
        fields: config.fields,
      })
    await sweepExpired(desk, vault, definition)
    return whole
  })
  if (result === undefined && options.all === true) return
  await printResult(terminal, result, {
    format,
    columns: definition.columns,
    fields: config.fields,
    known: true,
    hints: hintsFor(desk, definition, input),
  })
  if (mail !== undefined) await noteDelivery(desk, mail)
  if (definition.name === 'tenant delete')
    await (await import('./commands/tenant.js')).concludeTenantDeletion(desk)
  if (!isReveal) await noteHiddenData(desk, definition, result, format)
}

/** What expired goes from the disk with the commands that follow. That it could not does not undo what was done. */
async function sweepExpired(
  { terminal }: Desk,
  vault: Vault,
  { endpoint }: RegisteredOperation,
): Promise<void> {
  try {
    await vault.sweep(endpoint?.method === 'GET' ? SWEEP_BY_READING_MS : undefined)
  } catch (error) {
    const reason = error instanceof CofferError ? error.message : 'The reason is unknown.'
    await printNotice(terminal, `Expired tokens could not be purged now; it will be tried again. ${reason}`)
  }
}

/** Code that would not run is stored as it is; who stored it should know now rather than when it is run. */
async function warnOfFormula(
  desk: Desk,
  vault: Vault,
  { name }: AnyOperation,
  { code }: Readonly<Record<string, unknown>>,
): Promise<void> {
  if (name !== 'formula create' && name !== 'formula update') return
  const { warnOfCode } = await import('./commands/formula.js')
  await warnOfCode(desk, vault, code)
}

type Call = (input: Record<string, unknown>) => Promise<unknown>

/** The key to act with; absent for the owner. */
export async function readApiKey({ config, input }: Desk): Promise<string | undefined> {
  return config.apiKeyStdin ? input.readStdinLine('--api-key-stdin') : config.apiKey
}

function createCall(
  vault: Vault,
  { name }: AnyOperation,
  { key, isReveal, tenant }: { key: string | undefined; isReveal: boolean; tenant: string | undefined },
): Call {
  const owner = { reveal: isReveal, ...(tenant === undefined ? {} : { tenant }) }
  const as = key === undefined ? owner : { key }
  const ask = async (input: Record<string, unknown>) =>
    (await vault.ask({ operation: name, input, as })).result
  if (name !== 'token update') return ask
  // Whether the data of a token is text, whose digits are text too, only the vault can tell: by refusing a number.
  return (input) =>
    ask(input).catch((error: unknown) => {
      const isRefused = error instanceof CofferError && error.errors?.data !== undefined
      if (!isRefused || !Number.isSafeInteger(input.data)) throw error
      return ask({ ...input, data: String(input.data) })
    })
}

/** As many at once as the operation allows, within reason. */
function pageSizeOf({ input }: AnyOperation): number {
  const size: NumberSchema | undefined = input.properties?.size
  return Math.min(size?.maximum ?? LARGEST_PAGE, LARGEST_PAGE)
}

/** Pages that are too large together are asked for in smaller ones. */
async function* walkPages(
  call: Call,
  input: Record<string, unknown> & { size: number },
  signal: AbortSignal,
): AsyncGenerator<List<unknown>> {
  let { size } = input
  for (let done = 0; !signal.aborted; ) {
    try {
      const list = (await call({ ...input, size, page: done / size + 1 })) as List<unknown>
      done += size
      yield list
      if (done >= list.pagination.total_items) return
    } catch (error) {
      if (!isTooLarge(error) || size === 1) throw error
      size = largestDivisor(size)
    }
  }
}

function isTooLarge(error: unknown): boolean {
  return error instanceof CofferError && error.errors?.size?.[0]?.startsWith(ASK_SMALLER) === true
}

/** Of what was asked for before, so that the next page begins where the last one ended. */
function largestDivisor(size: number): number {
  let divisor = Math.floor(size / 2)
  while (size % divisor !== 0) divisor--
  return divisor
}

async function* itemsOf(pages: AsyncIterable<List<unknown>>): AsyncGenerator<unknown> {
  for await (const { data } of pages) yield* data
}

/** All pages as the one page they would be. */
async function collectPages(pages: AsyncIterable<List<unknown>>): Promise<List<unknown>> {
  const items: unknown[] = []
  for await (const item of itemsOf(pages)) items.push(item)
  return listOf(items, items.length, { page: 1, size: Math.max(1, items.length) })
}

async function confirmDestruction(
  desk: Desk,
  definition: AnyOperation,
  words: readonly string[],
  key: string | undefined,
): Promise<void> {
  const { terminal, config } = desk
  if (definition.destroys === undefined || config.yes) return
  if (definition.name === 'tenant delete')
    return (await import('./commands/tenant.js')).confirmTenantDeletion(desk, key)
  const { confirm } = await import('./input/prompt.js')
  const isMeant = await confirm(terminal, { message: `${definition.destroys} ${words.join(' ')}. Go on?` })
  if (!isMeant) throw new CofferError('interrupted', 'Nothing was changed.')
}

function hintsFor(
  { registry }: Desk,
  definition: RegisteredOperation,
  input: Readonly<Record<string, unknown>>,
): { empty: string; done: string } {
  const { noun, verb } = definition
  const isFiltered = listFlags(definition).some(
    ({ property }) => !['page', 'size'].includes(property) && input[property] !== undefined,
  )
  const first =
    registry.find(`${noun} create`) === undefined ? '' : ` Create one: coffer ${noun} create --help`
  return {
    empty: isFiltered ? `No ${noun} matches these filters.` : `No ${noun}s yet.${first}`,
    done: verb === 'delete' ? 'Deleted.' : 'Done.',
  }
}

/** A token without a mask shows nothing to somebody who did not ask for the data; say so once, to people. */
async function noteHiddenData(
  { terminal }: Desk,
  { isRevealable, name }: AnyOperation,
  result: unknown,
  format: string,
): Promise<void> {
  const isShown = typeof result !== 'object' || result === null || 'data' in result
  if (!isRevealable || isShown || format !== 'table') return
  const how = name === 'token get' ? 'Show it with --reveal.' : 'Show it with: coffer token get ID --reveal'
  await printNotice(terminal, `The data has no mask, so it is not shown. ${how}`)
}
