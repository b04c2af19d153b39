/** `coffer token import`: reads rows, sends them by the batch, and tells what became of each. */
import { resolve } from 'node:path'
import { isObject } from '../../domain/json/json.js'
import { CofferError } from '../../errors.js'
import type { RowResult } from '../../operations/token/import.js'
import type { Steps, Task } from '../context/task.js'
import { countOf } from '../output/display.js'
import { createProgress } from '../output/progress.js'
import { readCsv } from './csv.js'
import { type ImportLog, openImportLog } from './results.js'
import { decodeChunks, ROW_FORMATS, type Row, type RowFormat, readRows } from './rows.js'
import { rehearseHere, type Send, sendToServer, sendToVault } from './send.js'

/** Rows of a batch, and their characters: a vault takes a unit of work, a server a request. */
const TO_VAULT = { rows: 2000, characters: 4 * 1024 * 1024 }
const TO_SERVER = { rows: 1000, characters: 400 * 1024 }
/** A server that had the vault open may end; whoever comes next opens it. */
const MOST_ATTEMPTS = 5

export const importRows: Steps = {
  gather: async () => ({}),
  run: async (task) => {
    const { context, options } = task
    const settings = readSettings(task)
    const log = await openImportLog(settings.files, settings.about)
    const { run, rows, isComplete } = log.start
    if (isComplete) {
      await log.end(true)
      return task.notice(`This import is complete: ${rows} rows. Nothing is left to do.`)
    }
    const sending = { run, stops: options.continueOnError !== true, rehearses: options.dryRun === true }
    const isRemote = context.config.url !== undefined
    const send = !isRemote
      ? sendToVault(task, sending)
      : sending.rehearses
        ? rehearseHere(sending)
        : sendToServer(task, sending)
    // From here on an interrupt ends the run between two batches.
    context.stopsItself()
    const stopping = () => void task.notice('Stopping…')
    context.signal.addEventListener('abort', stopping, { once: true })
    const work = new Run(task, settings, log, send)
    let isDone = false
    try {
      isDone = await work.finish()
    } finally {
      await log.end(isDone && !sending.rehearses)
    }
    const { refused, created, deduplicated } = work.tally
    const told = sending.rehearses
      ? { would_be_created: created, would_be_deduplicated: deduplicated, refused }
      : { created, deduplicated, refused }
    await task.print({ ...(rows === 0 ? {} : { resumed_after: rows }), ...told })
    work.refuse()
  },
}

interface Settings {
  source: string
  format: RowFormat | undefined
  map: readonly string[]
  type: string | undefined
  files: { results: string | undefined; resume: string | undefined }
  /** Names source, target and settings, so that another run is told from this one. */
  about: string
}

function readSettings({ context, options, words }: Task): Settings {
  const { cwd, config } = context
  const text = (name: string) => (typeof options[name] === 'string' ? (options[name] as string) : undefined)
  const path = (name: string) => (text(name) === undefined ? undefined : resolve(cwd, text(name)!))
  const source = words[0] ?? '-'
  const map = (options.map as string[] | undefined) ?? []
  const given = text('format') ?? (/\.csv$/i.test(source) || map.length > 0 ? 'csv' : undefined)
  const format = ROW_FORMATS.find((known) => known === given)
  if (given !== undefined && format === undefined)
    throw new CofferError('usage', `--format takes ${ROW_FORMATS.join(', ')}.`)
  const files = { results: path('results'), resume: path('resume') }
  if (options.dryRun === true && files.resume !== undefined)
    throw new CofferError('usage', '--dry-run writes nothing, so there is nothing to --resume.')
  const target = config.url ?? config.vault
  const about = [
    source === '-' ? '-' : resolve(cwd, source),
    target,
    format,
    map,
    text('type'),
    files.results,
  ]
  return { source, format, map, type: text('type'), files, about: JSON.stringify(about) }
}

/** One import, from where an earlier run of it was cut short. */
class Run {
  /** Rows that are done, those of earlier runs included. */
  done: number
  readonly tally = { created: 0, deduplicated: 0, refused: 0 }
  readonly #task: Task
  readonly #settings: Settings
  readonly #log: ImportLog
  readonly #send: Send
  #firstRefused: { line: number; reason: string } | undefined
  #readBytes = 0

  constructor(task: Task, settings: Settings, log: ImportLog, send: Send) {
    this.#task = task
    this.#settings = settings
    this.#log = log
    this.#send = send
    this.done = log.start.rows
  }

  /** Resolves to whether all rows were read. @throws CofferError `interrupted`; that of sending a batch */
  async finish(): Promise<boolean> {
    const { context } = this.#task
    const { chunks, size, close } = await context.input.openStream(this.#settings.source, 'the file')
    const progress = createProgress(context.terminal, { label: 'Importing' }, context.clock)
    const batches = this.#batches(this.#count(chunks))
    let batch: IteratorResult<Row[]>
    const sendAll = async (): Promise<boolean> => {
      for (; !batch.done; batch = await batches.next()) {
        if (context.signal.aborted) throw this.#interrupted()
        if (!(await this.#sendOne(batch.value))) return false
        const share = size === undefined || size === 0 ? undefined : this.#readBytes / size
        await progress.show(this.done, share)
      }
      return true
    }
    try {
      batch = await batches.next()
      for (let attempt = 1, before = -1; ; attempt++) {
        if (this.done > before) attempt = 1
        before = this.done
        try {
          return await this.#task.together(sendAll, 'server')
        } catch (error) {
          const isGone = error instanceof CofferError && error.code === 'unavailable'
          if (!isGone || context.config.url !== undefined || attempt === MOST_ATTEMPTS) throw error
        }
      }
    } finally {
      await batches.return(undefined)
      await close()
      await progress.finish()
    }
  }

  /** False if the run ends with a refused row. */
  async #sendOne(rows: readonly Row[]): Promise<boolean> {
    const results = await this.#send({ first: this.done, rows })
    const isStopped = this.#task.options.continueOnError !== true && results.at(-1)?.status === 'refused'
    // The refused row is not done, so that the run can go on with a better one in its place.
    const done = isStopped ? results.length - 1 : results.length
    if (done === 0 && !isStopped) throw new CofferError('internal', 'A batch came back without results.')
    await this.#log.take(rows, results, done)
    for (const [at, result] of results.entries()) this.#note(result, rows[at]!.line)
    this.done += done
    if (isStopped || done === rows.length) return !isStopped
    // An earlier run was cut short after a commit, and had a shorter batch.
    return this.#sendOne(rows.slice(done))
  }

  #note({ status, reason = '' }: RowResult, line: number): void {
    this.tally[status]++
    if (status === 'refused') this.#firstRefused ??= { line, reason }
  }

  /** @throws CofferError `validation` if a row was refused */
  refuse(): void {
    const refused = this.#firstRefused
    if (refused === undefined) return
    const { line, reason } = refused
    const where =
      this.#task.options.continueOnError === true
        ? `Rows refused: ${this.tally.refused}; the first is line ${line}`
        : `The import stopped at line ${line}, after rows: ${this.done}`
    throw new CofferError('validation', `${where}: ${reason}`)
  }

  #interrupted(): CofferError {
    const advice =
      this.#settings.files.resume === undefined
        ? 'The same command would import them again; --resume FILE, from the beginning, would not.'
        : 'The same command goes on from there.'
    return new CofferError('interrupted', `Interrupted after ${countOf(this.done, 'row')}. ${advice}`)
  }

  async *#count(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of chunks) {
      this.#readBytes += chunk.length
      yield chunk
    }
  }

  /** The rows that are not done yet, by the batch. */
  async *#batches(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Row[]> {
    const { format, map, type } = this.#settings
    const most = this.#task.context.config.url === undefined ? TO_VAULT : TO_SERVER
    const texts = decodeChunks(chunks, 'The file')
    let skipped = 0
    let batch: Row[] = []
    let left = most.characters
    for await (const rows of format === 'csv' ? readCsv(texts, map) : readRows(texts, format)) {
      for (const row of rows) {
        if (skipped++ < this.#log.start.rows) continue
        if (batch.length === most.rows || (left < row.length && batch.length > 0)) {
          yield batch
          batch = []
          left = most.characters
        }
        left -= row.length
        batch.push(type === undefined ? row : withType(row, type))
      }
    }
    if (batch.length > 0) yield batch
    if (skipped < this.#log.start.rows)
      throw new CofferError(
        'usage',
        `The file has fewer rows than the ${this.#log.start.rows} that are imported.`,
      )
  }
}

function withType(row: Row, type: string): Row {
  const { value } = row
  return isObject(value) && !('type' in value) ? { ...row, value: { type, ...value } } : row
}
