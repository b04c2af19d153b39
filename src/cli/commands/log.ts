/** `coffer log tail` and `coffer log verify`: the log as it grows, and the proof that nothing in it was touched. */
import { setTimeout } from 'node:timers/promises'
import { CofferError } from '../../errors.js'
import { listLogs } from '../../operations/log/log.js'
import type { Asked, Vault } from '../../vault/vault.js'
import type { Desk } from '../context.js'
import { requireFields } from '../known-fields.js'
import { cellOf } from '../output/layout.js'
import { chooseFormat, type Format, printNotice, printResult } from '../output/output.js'
import { write } from '../output/terminal.js'
import { readApiKey } from '../run.js'
import { findTenantChoice } from './tenant-choice.js'

const COLUMNS = ['created_at', 'actor_type', 'operation', 'entity_type', 'entity_id', 'message']
/** Columns stand below one another though nobody knows what is still to come; an id of one's own may be longer. */
const WIDTHS: Record<string, number> = { actor_type: 11, operation: 6, entity_type: 15, entity_id: 36 }
const DEFAULT_COUNT = 20
const LARGEST_PAGE = 10_000
const POLL_MS = 1000

interface LogList {
  data: Record<string, unknown>[]
  pagination: { total_items: number }
}

/**
 * The newest `-n` records, oldest first; with `--follow` also every one that comes, until interrupted. The vault is
 * opened anew for every look, so that others can work meanwhile.
 * @throws CofferError `usage`, `forbidden`
 */
export async function tailLog(
  desk: Desk,
  flags: Readonly<Record<string, unknown>>,
  wait: (signal: AbortSignal) => Promise<unknown> = waitForNext,
): Promise<void> {
  const { terminal, config, signal } = desk
  const format = chooseFormat(terminal, config.output)
  if (terminal.mustHaveFields) requireFields(listLogs.output, config.fields ?? [])
  const count = readCount(flags.number)
  const as = await chooseCaller(desk)
  const first = await desk.reachVault((vault) => askPage(vault, as, Math.max(1, count)))
  const newest = count === 0 ? [] : first.data.toReversed()
  if (flags.follow !== true) return printWhole(desk, newest, format)
  let seen = first.pagination.total_items
  await printLines(desk, newest, format)
  while (!signal.aborted) {
    await wait(signal)
    if (signal.aborted) return
    const { records, total, skipped } = await desk.reachVault((vault) => readNewer(vault, as, seen))
    seen = total
    if (skipped > 0) await printNotice(terminal, `${skipped} records came too fast to be shown.`)
    if (!(await printLines(desk, records, format))) return
  }
}

/** Records are never taken away, so their number says which are new. */
async function readNewer(vault: Vault, as: Asked['as'], seen: number) {
  const look = await askPage(vault, as, DEFAULT_COUNT)
  const isAll = look.pagination.total_items - seen <= look.data.length
  const { data, pagination } = isAll ? look : await askPage(vault, as, LARGEST_PAGE)
  const fresh = pagination.total_items - seen
  const records = data.slice(0, fresh).toReversed()
  return { records, total: pagination.total_items, skipped: fresh - records.length }
}

async function askPage(vault: Vault, as: Asked['as'], size: number): Promise<LogList> {
  return (await vault.ask({ operation: 'log list', input: { size }, as })).result as LogList
}

async function chooseCaller(desk: Desk): Promise<Asked['as']> {
  const key = await readApiKey(desk)
  if (key !== undefined) return { key }
  const tenant = await findTenantChoice(desk)
  return { reveal: false, ...(tenant === undefined ? {} : { tenant }) }
}

async function printWhole({ terminal, config }: Desk, records: object[], format: Format): Promise<void> {
  await printResult(terminal, records, {
    format,
    columns: COLUMNS,
    fields: config.fields,
    known: true,
    hints: { empty: 'The log is empty.' },
  })
}

/** One line a record, for there is no end to wait for. Resolves to whether anybody still reads. */
async function printLines(
  { terminal, config }: Desk,
  records: Record<string, unknown>[],
  format: Format,
): Promise<boolean> {
  if (format !== 'table') {
    const line = format === 'json' ? 'ndjson' : format
    if (records.length > 0)
      await printResult(terminal, records, {
        format: line,
        columns: COLUMNS,
        fields: config.fields,
        known: true,
      })
    return true
  }
  await terminal.letGo?.()
  for (const record of records) {
    const fields = config.fields ?? COLUMNS
    const text = fields
      .map((name) => (cellOf(name, record[name]) || '-').padEnd(WIDTHS[name] ?? 0))
      .join('  ')
    if (!(await write(terminal.stdout, `${text.trimEnd()}\n`))) return false
  }
  return true
}

function waitForNext(signal: AbortSignal): Promise<unknown> {
  return setTimeout(POLL_MS, undefined, { signal }).catch(() => undefined)
}

/** @throws CofferError `usage` */
function readCount(text: unknown): number {
  if (text === undefined) return DEFAULT_COUNT
  const count = /^\d{1,5}$/.test(String(text)) ? Number(text) : Number.NaN
  if (count <= LARGEST_PAGE) return count
  throw new CofferError('usage', `-n takes a number from 0 to ${LARGEST_PAGE.toLocaleString('en')}.`)
}

interface Proof {
  is_whole: boolean
  records: number
  broken_at?: number
}

/**
 * Proves the tenant's log from its first record to its last.
 * @throws CofferError `vault_damaged` saying at which record it breaks
 */
export async function verifyLog(desk: Desk): Promise<void> {
  const { terminal, config } = desk
  const tenant = await findTenantChoice(desk)
  const proof = (await desk.reachVault((vault) =>
    vault.command('log verify', tenant === undefined ? {} : { tenant }),
  )) as Proof
  await printResult(terminal, proof, {
    format: chooseFormat(terminal, config.output),
    fields: config.fields,
  })
  if (proof.is_whole) {
    await printNotice(
      terminal,
      'Every record follows from the one before it, and none is missing at the end.',
    )
    return
  }
  const { records, broken_at = 0 } = proof
  const what =
    broken_at > records
      ? `ends after ${records} records, and more were written`
      : `is broken at record ${broken_at} of ${records}: it, or one before it, was changed, taken out, put in or moved`
  throw new CofferError('vault_damaged', `The log ${what}. Compare it with a backup.`)
}
