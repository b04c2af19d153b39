import { createHash } from 'node:crypto'
import { resolve } from 'node:path'
import { readServerUrl } from '../../client/socket-fetch.js'
import { isObject } from '../../domain/json/json.js'
import { CofferError, usage, validationError } from '../../errors.js'
import { ROW_FORMATS } from '../../global-flags.js'
import { loadOperation } from '../../operations/load.js'
import { identifyVault } from '../../vault/open.js'
import { createUnknownWarning } from '../input/names.js'
import { countOf } from '../output/display.js'
import { printWarning } from '../output/output.js'
import { createProgress } from '../output/progress.js'
import { repeatCommand } from '../output/repeat-command.js'
import { placeOf } from '../target/place.js'
import { findTenantChoice } from '../target/vault.js'
import type { Task } from '../task.js'
import { readCsv } from './csv.js'
import { type ImportLog, openImportLog, type Refused } from './import-log.js'
import { requireResult } from './resumed-rows.js'
import { decodeChunks, type Row, readRows } from './rows.js'
import { type Send, sendToServer, sendToVault } from './send.js'

/** Small batches need less garbage collection. */
const TO_VAULT = { rows: 250, characters: 4 * 1024 * 1024 }
const TO_SERVER = { rows: 1000, characters: 400 * 1024 }
/** If the server of the vault stops during the import, the next attempt opens the vault without a server. */
const MAX_ATTEMPTS = 5
const MAX_TOLD = 20
const KEPT =
  'Imported rows are kept. Remove them from the file and repeat the command. ' +
  'An import with --resume FILE skips them when you repeat it.'

export async function importRows(task: Task): Promise<void> {
  const { context, options } = task
  const settings = readSettings(task)
  const about = settings.isResumable ? await describeRun(task, settings) : undefined
  const notice = (text: string) => void printWarning(context.terminal, text)
  const log = await openImportLog(settings.path, about, { pid: context.pid, notice })
  // After this call, an interrupt ends the import between two batches.
  context.handlesSignals()
  context.signal.addEventListener('abort', () => void task.notice('Stopping…'), { once: true })
  const work = new ImportRun(task, settings, log)
  try {
    await work.finish()
  } finally {
    await log.close(work.isUndone)
  }
  const { refused, created, deduplicated } = work.counts
  const counts =
    options.dryRun === true
      ? { would_be_created: created, would_be_deduplicated: deduplicated, refused }
      : { created, deduplicated, refused }
  await task.print({ ...(log.rows === 0 ? {} : { resumed_after: log.rows }), ...counts })
  work.throwRefused()
}

type Settings = ReturnType<typeof readSettings>

function readSettings({ context, options, args }: Task) {
  const { format: given, type, results, resume } = options as Record<string, string | undefined>
  const source = args[0] ?? '-'
  const map = (options.map as string[] | undefined) ?? []
  const wanted = given ?? (/\.csv$/i.test(source) || map.length > 0 ? 'csv' : undefined)
  const format = ROW_FORMATS.find((known) => known === wanted)
  if (wanted !== undefined && format === undefined) throw usage(`--format takes ${ROW_FORMATS.join(', ')}.`)
  if (options.dryRun === true && (resume !== undefined || context.config.url !== undefined))
    throw usage('--dry-run works only on a vault, not on a server, and cannot be combined with --resume.')
  if (results !== undefined && resume !== undefined)
    throw usage('--resume records the results. Remove --results.')
  const file = resume ?? results
  const path = file === undefined ? undefined : resolve(context.cwd, file)
  // A dry run reports all rows.
  const continuesOnError = options.continueOnError === true || options.dryRun === true
  return { source, format, map, type, path, continuesOnError, isResumable: resume !== undefined }
}

/** A digest of the file's path, the target and the settings identifies the run. */
async function describeRun({ context, key }: Task, { source, format, map, type }: Settings): Promise<string> {
  const { cwd, config } = context
  const target =
    config.url === undefined
      ? [await identifyVault(placeOf(context)), key ? undefined : await findTenantChoice(context)]
      : readServerUrl(config.url, config)
  const from = source === '-' ? '-' : resolve(cwd, source)
  const about = JSON.stringify(['coffer import', target, key, from, format, map, type])
  return createHash('sha256').update(about).digest('hex').slice(0, 32)
}

function describeCommand({ args, options, presentation }: Task, maps: readonly string[], isTyped: boolean) {
  const given = { command: 'coffer token import', args, options, own: presentation.options! }
  const type = isTyped || options.type !== undefined ? [] : ['--type token']
  return repeatCommand(given, [...maps, ...type])
}

class ImportRun {
  readonly counts = { created: 0, deduplicated: 0, refused: 0 }
  readonly #task: Task
  readonly #settings: Settings
  readonly #log: ImportLog
  readonly #send: Send
  readonly #progress: ReturnType<typeof createProgress>
  #done: number
  #isUnknown: boolean
  #readBytes = 0
  readonly #refused: Refused[] = []

  constructor(task: Task, settings: Settings, log: ImportLog) {
    const { context, options } = task
    this.#task = task
    this.#settings = settings
    this.#log = log
    this.#done = log.rows
    this.#isUnknown = log.isBegun
    const send = context.config.url === undefined ? sendToVault : sendToServer
    const stops = !settings.continuesOnError
    this.#send = send(task, { run: log.run, stops, isDryRun: options.dryRun === true })
    this.#progress = createProgress(context.terminal, { label: 'Importing rows' }, context.clock)
  }

  get isUndone(): boolean {
    return this.#done === 0 && !this.#isUnknown
  }

  /** @throws CofferError `interrupted`, or the error that ended the run */
  async finish(): Promise<void> {
    const { input, signal } = this.#task.context
    const { chunks, size, close } = await input.openStream(this.#settings.source, 'the file')
    const batches = this.#readBatches(chunks)
    signal.addEventListener('abort', close, { once: true })
    try {
      if (signal.aborted) close()
      await this.#sendAll(batches, size)
    } catch (error) {
      await this.#progress.finish()
      const isInterrupt = error instanceof CofferError && error.code === 'interrupted'
      if (this.#done > 0 && !isInterrupt) await this.#task.notice(`Stopped after ${this.#describeDone()}`)
      throw error
    } finally {
      signal.removeEventListener('abort', close)
      await batches.return(undefined)
      close()
      await this.#progress.finish()
    }
  }

  throwRefused(): void {
    const earlier = this.#settings.continuesOnError ? this.#log.refused.first : undefined
    const first = earlier ?? this.#refused[0]
    if (first !== undefined)
      throw this.#task.options.dryRun === true ? this.#describeRehearsal() : this.#describeRefusal(first)
  }

  #describeRehearsal(): CofferError {
    const { refused } = this.counts
    const bound =
      refused > MAX_TOLD
        ? ` Only the first ${MAX_TOLD} are listed. To write all results to a file: --results FILE`
        : ''
    const rows = this.#refused.map(({ line, reason }) => [`line ${line}`, [reason]])
    return validationError(`Rows that would be refused: ${refused}.${bound}`, {
      errors: Object.fromEntries(rows),
    })
  }

  #describeRefusal({ line, reason, lacksType }: Refused): CofferError {
    const { created } = this.counts
    const before = this.#log.refused.count
    const refused = before + this.counts.refused
    const earlier = before === 0 ? '' : `, ${before} of them in earlier runs`
    const where = this.#settings.continuesOnError
      ? `Rows refused: ${refused}${earlier}; the first is line ${line}`
      : `The import stopped at line ${line}, with ${countOf(this.#done, 'row')} done (--continue-on-error skips refused rows)`
    const isRepeatable = created === 0 || this.#settings.isResumable
    const advice = lacksType ? '; give the type with --type token' : ''
    return validationError(`${where}: ${reason}${advice}${isRepeatable ? '' : `\n${KEPT}`}`)
  }

  async #sendAll(batches: AsyncIterator<Row[]>, size: number | undefined): Promise<void> {
    const { context, withOpenVault } = this.#task
    const warnOfUnknown = createUnknownWarning(context.terminal, (await loadOperation('token create'))!)
    let batch = await batches.next()
    const sendRest = async (): Promise<void> => {
      for (; !batch.done; batch = await batches.next()) {
        if (context.signal.aborted) throw this.#interrupted()
        await warnOfUnknown(batch.value.map(({ value, fault }) => fault ?? value))
        const goesOn = await this.#sendBatch(batch.value)
        await this.#progress.show(this.#done, size ? this.#readBytes / size : undefined)
        if (!goesOn) return
      }
    }
    for (let attempt = 1; ; attempt++) {
      const before = this.#done
      try {
        return await withOpenVault(sendRest, 'server')
      } catch (error) {
        const isGone = error instanceof CofferError && error.code === 'unavailable'
        if (this.#done > before) attempt = 1
        if (!isGone || context.config.url !== undefined || attempt === MAX_ATTEMPTS) throw error
      }
    }
  }

  /** Resolves to false if a refused row ends the run. */
  async #sendBatch(rows: readonly Row[]): Promise<boolean> {
    await this.#log.begin(this.#done, this.#task.context.config.url === undefined ? 0 : rows.length)
    const wasUnknown = this.#isUnknown
    this.#isUnknown = true
    const results = await this.#send(rows, this.#done).catch((error: unknown) => {
      const isInterrupt = error instanceof CofferError && error.code === 'interrupted'
      const isRefused = error instanceof CofferError && error.status < 500 && error.code !== 'request_timeout'
      this.#isUnknown = wasUnknown || !isRefused
      throw isInterrupt ? this.#interrupted(', and perhaps one more batch') : error
    })
    this.#isUnknown = results.length === 0 && wasUnknown
    if (results.length === 0) return this.#sendHalves(rows)
    const isStopped = !this.#settings.continuesOnError && results.at(-1)?.status === 'refused'
    // The refused row does not count as done, so that a corrected row can replace it when the run is resumed.
    const count = isStopped ? results.length - 1 : results.length
    await this.#log.append(rows, results, count)
    for (const [at, { status, reason = '', errors = {} }] of results.entries()) {
      this.counts[status]++
      if (status !== 'refused' || this.#refused.length === MAX_TOLD) continue
      const { line, value } = rows[at]!
      const hasType = isObject(value) && (value.type ?? '') !== ''
      this.#refused.push({ line, reason, lacksType: Object.hasOwn(errors, 'type') && !hasType })
    }
    this.#done += count
    if (isStopped || count === rows.length) return !isStopped
    // An interrupted earlier run had committed a shorter batch. The remaining rows are sent now.
    return this.#sendBatch(rows.slice(count))
  }

  /** Halves a refused batch until each refused row is found. */
  async #sendHalves(rows: readonly Row[]): Promise<boolean> {
    if (rows.length === 1) throw new CofferError('internal', 'A batch came back without results.')
    const middle = rows.length >> 1
    return (await this.#sendBatch(rows.slice(0, middle))) && this.#sendBatch(rows.slice(middle))
  }

  #describeDone(perhaps = ''): string {
    const advice = this.#settings.isResumable
      ? 'Run the same command to continue.'
      : 'Running the command again imports these rows again. An import with --resume FILE can be continued.'
    return `${countOf(this.#done, 'row')}${perhaps}. ${advice}`
  }

  #interrupted(perhaps?: string): CofferError {
    return new CofferError('interrupted', `Interrupted after ${this.#describeDone(perhaps)}`)
  }

  async *#count(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    const { signal } = this.#task.context
    try {
      for await (const chunk of chunks) {
        this.#readBytes += chunk.length
        yield chunk
      }
    } catch (error) {
      if (!signal.aborted) throw error
    }
    if (signal.aborted) throw this.#interrupted()
  }

  async *#readBatches(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Row[]> {
    const { format, map, type } = this.#settings
    const most = this.#task.context.config.url === undefined ? TO_VAULT : TO_SERVER
    const texts = decodeChunks(this.#count(chunks), 'The file')
    const { rows: known, resumed } = this.#log
    let { pending } = this.#log
    let skipped = 0
    let batch: Row[] = []
    let left = most.characters
    for await (const rows of format === 'csv'
      ? readCsv(texts, map, (...more) => describeCommand(this.#task, ...more))
      : readRows(texts, format))
      for (const row of rows) {
        // The first new row has no result. Checking this row too detects that the last results have been lost.
        if (resumed !== undefined && skipped <= known) requireResult(resumed, skipped, row.line)
        if (skipped++ < known) continue
        const isFull = batch.length === most.rows || (left < row.length && batch.length > 0)
        // A server recognizes a repeated batch only if the batch is unchanged.
        if (pending > 0 ? batch.length === pending : isFull) {
          yield batch
          batch = []
          pending = 0
          left = most.characters
        }
        left -= row.length
        const { value } = row
        const isTyped = type === undefined || !isObject(value) || 'type' in value
        batch.push(isTyped ? row : { ...row, value: { type, ...value } })
      }
    if (resumed !== undefined && skipped <= known) requireResult(resumed, skipped, undefined)
    if (batch.length < pending)
      throw usage(
        `The file has fewer rows than the ${known + pending} that were imported. ` +
          'If rows were removed from the file, put them back. If this is a different file, give another file as --resume.',
      )
    if (batch.length > 0) yield batch
  }
}
