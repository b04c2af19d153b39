/** `coffer token import`: reads rows, sends them by the batch, and tells what became of each. */
import { createHash } from 'node:crypto'
import { resolve } from 'node:path'
import { readServerUrl } from '../../client/socket-fetch.js'
import { isObject } from '../../domain/json/json.js'
import { CofferError, usage, validationError } from '../../errors.js'
import { loadOperation } from '../../operations/load.js'
import { identifyVault } from '../../vault/open.js'
import { createUnknownNotice } from '../input/unknown.js'
import { countOf } from '../output/display.js'
import { createProgress } from '../output/progress.js'
import { placeOf } from '../target/credentials.js'
import { findTenantChoice } from '../target/tenant-choice.js'
import type { Hooks, Task } from '../task.js'
import { readCsv } from './csv.js'
import { type About, type ImportLog, openImportLog } from './results.js'
import { decodeChunks, ROW_FORMATS, type Row, readRows } from './rows.js'
import { rehearseHere, type Send, sendToServer, sendToVault } from './send.js'

/** Rows of a batch, and their characters: a vault takes a unit of work, a server a request. */
const TO_VAULT = { rows: 2000, characters: 4 * 1024 * 1024 }
const TO_SERVER = { rows: 1000, characters: 400 * 1024 }
/** A server that had the vault open may end; whoever comes next opens it. */
const MOST_ATTEMPTS = 5

export const importRows: Hooks = {
  gather: async () => ({}),
  run: async (task) => {
    const { context, options } = task
    const settings = readSettings(task)
    const log = await openImportLog(settings.files, await describeRun(task, settings))
    const { run, rows, isComplete } = log.start
    const sending = { run, stops: options.continueOnError !== true, rehearses: options.dryRun === true }
    const isRemote = context.config.url !== undefined
    const send = !isRemote
      ? sendToVault(task, sending)
      : sending.rehearses
        ? rehearseHere(sending)
        : sendToServer(task, sending)
    // From here on an interrupt ends the run between two batches.
    context.handlesSignals()
    const stopping = () => void task.notice('Stopping…')
    context.signal.addEventListener('abort', stopping, { once: true })
    const noteUnknown = createUnknownNotice(context.terminal, (await loadOperation('token create'))!)
    const work = new ImportRun(task, settings, log, async (batch) => {
      await noteUnknown(batch.rows.map(({ value }) => value))
      return send(batch)
    })
    let isDone = false
    try {
      isDone = await work.finish()
    } finally {
      await log.end(isDone && !sending.rehearses)
    }
    const { refused, created, deduplicated } = work.tally
    if (isComplete && refused + created + deduplicated === 0)
      return task.notice(`This import is complete: ${rows} rows. Nothing is left to do.`)
    const told = sending.rehearses
      ? { would_be_created: created, would_be_deduplicated: deduplicated, refused }
      : { created, deduplicated, refused }
    await task.print({ ...(rows === 0 ? {} : { resumed_after: rows }), ...told })
    work.refuse()
  },
}

type Settings = ReturnType<typeof readSettings>

function readSettings({ context, options, args }: Task) {
  const { cwd } = context
  const text = (name: string) => (typeof options[name] === 'string' ? (options[name] as string) : undefined)
  const path = (name: string) => (text(name) === undefined ? undefined : resolve(cwd, text(name)!))
  const source = args[0] ?? '-'
  const map = (options.map as string[] | undefined) ?? []
  const given = text('format') ?? (/\.csv$/i.test(source) || map.length > 0 ? 'csv' : undefined)
  const format = ROW_FORMATS.find((known) => known === given)
  if (given !== undefined && format === undefined) throw usage(`--format takes ${ROW_FORMATS.join(', ')}.`)
  const files = { results: path('results'), resume: path('resume') }
  if (options.dryRun === true && files.resume !== undefined)
    throw usage('--dry-run writes nothing, so there is nothing to --resume.')
  return { source, format, map, type: text('type'), files }
}

/** Tells this run from one into another place or with other settings, for its file; a key is there as a digest. */
async function describeRun({ context, key }: Task, settings: Settings): Promise<About> {
  const { cwd, config } = context
  const { source, format, map, type, files } = settings
  if (files.resume === undefined) return {}
  const application = key && createHash('sha256').update(`coffer import ${key}`).digest('hex').slice(0, 32)
  const target =
    config.url !== undefined
      ? { server: readServerUrl(config.url, config) }
      : {
          vault: await identifyVault(placeOf(context)),
          tenant: key ? undefined : await findTenantChoice(context),
        }
  const from = source === '-' ? '-' : resolve(cwd, source)
  return { ...target, application, file: from, format, map, type, results: files.results }
}

/** One import, from where an earlier run of it was cut short. */
class ImportRun {
  readonly tally = { created: 0, deduplicated: 0, refused: 0 }
  readonly #task: Task
  readonly #settings: Settings
  readonly #log: ImportLog
  readonly #send: Send
  readonly #progress: ReturnType<typeof createProgress>
  /** Rows that are done, those of earlier runs included. */
  #done: number
  #readBytes = 0
  #firstRefused: { line: number; reason: string } | undefined

  constructor(task: Task, settings: Settings, log: ImportLog, send: Send) {
    this.#task = task
    this.#settings = settings
    this.#log = log
    this.#send = send
    this.#done = log.start.rows
    const { terminal, clock } = task.context
    this.#progress = createProgress(terminal, { label: 'Importing' }, clock)
  }

  /** Resolves to whether all rows were read. @throws CofferError `interrupted`; that of sending a batch */
  async finish(): Promise<boolean> {
    const { input, signal } = this.#task.context
    const { start } = this.#log
    const { chunks, size, close } = await input.openStream(this.#settings.source, 'the file')
    const batches = this.#readBatches(chunks)
    const stop = () => void close()
    signal.addEventListener('abort', stop, { once: true })
    try {
      if (signal.aborted) stop()
      const first = await batches.next()
      if (start.isComplete) {
        if (first.done) return true
        await this.#task.notice(
          `This import was complete. Its ${countOf(start.rows, 'row')} are skipped; the file has more now.`,
        )
      }
      return await this.#sendAll(batches, first, size)
    } finally {
      signal.removeEventListener('abort', stop)
      await batches.return(undefined)
      await close()
      await this.#progress.finish()
    }
  }

  /** @throws CofferError `validation` if a row was refused */
  refuse(): void {
    if (this.#firstRefused === undefined) return
    const { line, reason } = this.#firstRefused
    const where = this.#continuesOnError
      ? `Rows refused: ${this.tally.refused}; the first is line ${line}`
      : `The import stopped at line ${line}, with ${countOf(this.#done, 'row')} done (--continue-on-error goes on)`
    throw validationError(`${where}: ${reason}`)
  }

  get #continuesOnError(): boolean {
    return this.#task.options.continueOnError === true
  }

  /** Reaches the vault again if the server that had it open has ended. */
  async #sendAll(batches: AsyncIterator<Row[]>, first: IteratorResult<Row[]>, size: number | undefined) {
    const { context, withOpenVault } = this.#task
    let batch = first
    const send = async (): Promise<boolean> => {
      for (; !batch.done; batch = await batches.next()) {
        if (context.signal.aborted) throw this.#interrupted()
        if (!(await this.#sendOne(batch.value))) return false
        await this.#progress.show(this.#done, size ? this.#readBytes / size : undefined)
      }
      return true
    }
    for (let attempt = 1, before = -1; ; attempt++) {
      if (this.#done > before) attempt = 1
      before = this.#done
      try {
        return await withOpenVault(send, 'server')
      } catch (error) {
        const isGone = error instanceof CofferError && error.code === 'unavailable'
        if (!isGone || context.config.url !== undefined || attempt === MOST_ATTEMPTS) throw error
      }
    }
  }

  /** False if the run ends with a refused row. */
  async #sendOne(rows: readonly Row[]): Promise<boolean> {
    const results = await this.#send({ first: this.#done, rows }).catch((error: unknown) => {
      if (error instanceof CofferError && error.code === 'interrupted')
        throw this.#interrupted(', and perhaps a batch more')
      throw error
    })
    const isStopped = !this.#continuesOnError && results.at(-1)?.status === 'refused'
    // The refused row is not done, so that the run can go on with a better one in its place.
    const count = isStopped ? results.length - 1 : results.length
    if (count === 0 && !isStopped) throw new CofferError('internal', 'A batch came back without results.')
    await this.#log.take(rows, results, count)
    for (const [at, { status, reason = '' }] of results.entries()) {
      this.tally[status]++
      if (status === 'refused') this.#firstRefused ??= { line: rows[at]!.line, reason }
    }
    this.#done += count
    if (isStopped || count === rows.length) return !isStopped
    // An earlier run was cut short after a commit, and had a shorter batch.
    return this.#sendOne(rows.slice(count))
  }

  #interrupted(perhaps = ''): CofferError {
    const advice =
      this.#settings.files.resume === undefined
        ? 'The same command would import them again; --resume FILE, from the beginning, would not.'
        : 'The same command goes on from there.'
    return new CofferError(
      'interrupted',
      `Interrupted after ${countOf(this.#done, 'row')}${perhaps}. ${advice}`,
    )
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

  /** The rows that are not done yet, by the batch. */
  async *#readBatches(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Row[]> {
    const { format, map, type } = this.#settings
    const most = this.#task.context.config.url === undefined ? TO_VAULT : TO_SERVER
    const texts = decodeChunks(this.#count(chunks), 'The file')
    const { rows: known } = this.#log.start
    let skipped = 0
    let batch: Row[] = []
    let left = most.characters
    for await (const rows of format === 'csv' ? readCsv(texts, map) : readRows(texts, format)) {
      for (const row of rows) {
        if (skipped++ < known) continue
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
    if (skipped < known)
      throw usage(
        `The file has fewer rows than the ${known} that are imported. If this is a different file, give another file as --resume.`,
      )
  }
}

function withType(row: Row, type: string): Row {
  const { value } = row
  return isObject(value) && !('type' in value) ? { ...row, value: { type, ...value } } : row
}
