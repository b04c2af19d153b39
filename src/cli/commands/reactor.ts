/** `coffer reactor logs`: the last runs of a reactor, and those that come. */
import { setTimeout } from 'node:timers/promises'
import { CofferError } from '../../errors.js'
import type { Desk } from '../context.js'
import { displayLines } from '../output/display.js'
import { chooseFormat, printResult } from '../output/output.js'
import { write } from '../output/terminal.js'
import { findTenantChoice } from './tenant-choice.js'

const COLUMNS = ['created_at', 'outcome', 'status', 'duration_ms', 'memory_mib']
/** Not every run has these. */
const RARE = ['detail', 'errors', 'stack']
const DEFAULT_COUNT = 20
const KEPT = 100
const POLL_MS = 1000

interface Run extends Record<string, unknown> {
  id: string
  console: { level: string; text: string }[]
  detail?: string
  errors?: Record<string, string[]>
  stack?: string
}

/**
 * The newest `-n` runs, oldest first, each with what its code printed; with `--follow` also every one that comes.
 * @throws CofferError `usage`, `not_found`
 */
export async function showRuns(
  desk: Desk,
  id: string,
  flags: Readonly<Record<string, unknown>>,
  wait: (signal: AbortSignal) => Promise<unknown> = waitForNext,
): Promise<void> {
  const { signal } = desk
  const count = readCount(flags.number)
  const tenant = await findTenantChoice(desk)
  const read = () =>
    desk.reachVault(
      (vault) =>
        vault.command('reactor runs', { id, ...(tenant === undefined ? {} : { tenant }) }) as Promise<Run[]>,
    )
  const first = await read()
  await printRuns(desk, first.slice(0, count).toReversed(), flags.follow === true)
  if (flags.follow !== true) return
  let seen = new Set(first.map((run) => run.id))
  while (!signal.aborted) {
    await wait(signal)
    if (signal.aborted) return
    const runs = await read()
    if (!(await printRuns(desk, runs.filter((run) => !seen.has(run.id)).toReversed(), true))) return
    seen = new Set(runs.map((run) => run.id))
  }
}

/** Resolves to whether anybody still reads. */
async function printRuns({ terminal, config }: Desk, runs: Run[], isStream: boolean): Promise<boolean> {
  const format = chooseFormat(terminal, config.output)
  if (format !== 'table') {
    if (isStream && runs.length === 0) return true
    const line = isStream && format === 'json' ? 'ndjson' : format
    await printResult(terminal, runs, { format: line, columns: COLUMNS, fields: config.fields, known: RARE })
    return true
  }
  if (runs.length === 0 && !isStream)
    await printResult(terminal, runs, { format, columns: COLUMNS, hints: { empty: 'It has not run yet.' } })
  await terminal.letGo?.()
  for (const run of runs) if (!(await write(terminal.stdout, describeRun(run)))) return false
  return true
}

function describeRun({ console, detail, errors = {}, stack, ...run }: Run): string {
  const head = `${run.created_at}  ${run.outcome} ${run.status}  ${run.duration_ms} ms  ${run.memory_mib} MiB`
  const messages = Object.entries(errors).flatMap(([path, texts]) => texts.map((text) => `${path}: ${text}`))
  const lines = [
    ...console.map(({ level, text }) => `${level}: ${text}`),
    ...(detail === undefined ? [] : [detail]),
    ...messages,
    ...(stack === undefined ? [] : [stack]),
  ]
  return [head, ...lines.map((line) => displayLines(line).replaceAll(/^/gm, '    ')), ''].join('\n')
}

function waitForNext(signal: AbortSignal): Promise<unknown> {
  return setTimeout(POLL_MS, undefined, { signal }).catch(() => undefined)
}

/** @throws CofferError `usage` */
function readCount(text: unknown): number {
  if (text === undefined) return DEFAULT_COUNT
  const count = /^\d{1,3}$/.test(String(text)) ? Number(text) : Number.NaN
  if (count <= KEPT) return count
  throw new CofferError('usage', `-n takes a number from 0 to ${KEPT}.`)
}
