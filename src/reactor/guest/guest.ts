import { Buffer } from 'node:buffer'
import { read, writeSync } from 'node:fs'
import { setImmediate } from 'node:timers'
import { omitUndefined } from '../../domain/omit-undefined.js'
import { encodeFrame, FrameReader, splitFrame } from '../../ipc/frames.js'
import type { Done, HostMessage } from '../messages.js'
import { readTime } from './dates.js'
import { describeFailure, readThrownResponse } from './failure.js'
import type { Epoch } from './gate.js'
import { createRealm, type Realm } from './realm.js'
import { Run, type Send } from './run.js'
import { prepareSource, SourceError, START } from './source.js'
import { stripProcess } from './strip.js'
import { describeMessage, readTransformed } from './transformed.js'

const INPUT = 0
const OUTPUT = 1
const EMPTY = Buffer.alloc(0)
const MAX_FRAME_BYTES = 256 * 1024 * 1024
/** Read here, before `stripProcess` removes `reallyExit`. */
const { reallyExit: exit } = process as unknown as { reallyExit(code: number): never }

/** Code without these names exports nothing. */
const EXPORTING = /\b(?:exports|module|arguments)\b/

type Begin = Extract<HostMessage, { kind: 'run' | 'check' }>
type Handler = (request: object) => unknown

class Guest {
  readonly #epoch: Epoch
  readonly #realm: Realm
  #source: { code: string; prepared?: string } | undefined
  #run: Run | undefined
  #resultBytes = 0
  readonly #packages = new Map<string, string>()

  constructor(epoch: Epoch, realm: Realm) {
    this.#epoch = epoch
    this.#realm = realm
  }

  take(message: HostMessage, body: Buffer): void {
    if (message.kind === 'reply') this.#run?.receive(message)
    else if (message.kind === 'package') this.#packages.set(message.name, body.toString())
    else void this.#begin(message, body)
  }

  failFromOutside(error: unknown): void {
    if (this.#run !== undefined) this.#finish(this.#run, this.#describe(error))
  }

  async #begin(message: Begin, body: Buffer): Promise<void> {
    const { time, image = '' } = message.kind === 'run' ? message : {}
    const { describeError } = this.#realm
    const run = new Run(send, { image, date: () => readTime(time ?? {}, Date.now), describeError })
    this.#run = run
    Object.assign(this.#epoch, { current: run, time, setTimeout: run.setTimeout })
    this.#resultBytes = message.kind === 'run' ? message.resultBytes : 0
    const last = await this.#work(message, body, run).catch((error) => this.#describe(error))
    this.#finish(run, last)
  }

  #finish(run: Run, last: Done): void {
    if (this.#run !== run) return
    run.end(last)
    this.#run = undefined
    this.#epoch.current = {}
    this.#rest()
  }

  /** Reports that the guest is idle, after all work of the last run is finished. */
  #rest(): void {
    const { pending } = this.#epoch
    // Reports from the event loop: if the code has started an endless chain of microtasks, the guest must not report
    // that it is idle.
    setImmediate(() => {
      if (pending.size === 0) send({ kind: 'idle' })
      else void Promise.allSettled(pending).then(() => this.#rest())
    })
  }

  async #work(work: Begin, body: Buffer, run: Run): Promise<Done> {
    if (work.kind === 'check' && work.isCompiledOnly === true) {
      prepareSource(work.code)
      if (!EXPORTING.test(work.code)) throw noFunction()
      send({ kind: 'loaded' })
      return { kind: 'done' }
    }
    const handler = this.#load(work.code, run)
    send({ kind: 'loaded' })
    if (work.kind === 'check') return { kind: 'done' }
    const { message, rest, configuration, prefix, applicationOptions, hasClient, resultBytes } = work
    const args = message === undefined ? work.args : describeMessage(message, body)
    const req = rest === undefined ? args : args === undefined ? rest : { ...(rest as object), args }
    const { debug, info, warn, error } = run.console
    const logger = { debug, info, warn, error }
    const res = message?.direction === 'response' ? { res: args } : {}
    const client = hasClient ? run.createClient() : null
    const given = { args: args ?? {}, configuration, [prefix]: client, applicationOptions }
    const result = await handler({ ...given, req, ...res, logger })
    if (message === undefined) return describeResult(result, resultBytes)
    const { raw, ...made } = readTransformed(result, message.direction)
    return { ...describeResult({ raw }, resultBytes), ...made }
  }

  /** Returns `module.exports`, or its `default` for a compiled ES module. */
  #load(code: string | undefined, run: Run): Handler {
    if (code !== undefined) this.#source = { code }
    const source = this.#source!
    source.prepared ??= prepareSource(source.code)
    const exported = this.#realm.load(source.prepared, run, this.#packages) as
      | { default?: unknown }
      | undefined
    for (const each of [exported, exported?.default]) if (typeof each === 'function') return each as Handler
    throw noFunction()
  }

  #describe(error: unknown): Done {
    const { findStack } = this.#realm
    try {
      const res = readThrownResponse(error)
      if (res !== undefined) return { ...describeResult({ res }, this.#resultBytes), isThrown: true }
    } catch (reason) {
      return { kind: 'done', failure: describeFailure(reason, findStack) }
    }
    return { kind: 'done', failure: describeFailure(error, findStack) }
  }
}

function noFunction(): SourceError {
  return new SourceError('The code exports no function; set module.exports to one', START)
}

function describeResult(result: unknown, resultBytes: number): Done {
  const { raw, tokenize, res } = (result ?? {}) as Record<'raw' | 'tokenize' | 'res', unknown>
  const texts = omitUndefined({ raw: toJson(raw), tokenize: toJson(tokenize), res: toJson(res) })
  const bytes = Object.values(texts).reduce((sum, text) => sum + Buffer.byteLength(text), 0)
  if (bytes > resultBytes)
    throw new RangeError(`The result has ${bytes} bytes; at most ${resultBytes} are allowed`)
  return { kind: 'done', ...texts }
}

function toJson(value: unknown): string | undefined {
  return value === undefined || value === null ? undefined : JSON.stringify(value)
}

/** Writes synchronously, so that output does not accumulate in the guest while the host does not read. */
const send: Send = (message, body) => {
  const frame = encodeFrame(message, body)
  try {
    for (let at = 0; at < frame.length; ) at += writeSync(OUTPUT, frame, at)
  } catch {
    // The host has closed the pipe.
    exit(0)
  }
}

function listen(guest: Guest): void {
  const reader = new FrameReader()
  const buffer = Buffer.alloc(64 * 1024)
  const take = (frame: Buffer) => {
    if (frame.length === 0) exit(1)
    const [text, body = EMPTY] = splitFrame(frame)
    guest.take(JSON.parse(text.toString()), body)
  }
  const next = () => {
    read(INPUT, buffer, 0, buffer.length, null, (error, bytes) => {
      if (error !== null || bytes === 0) exit(0)
      reader.add(Buffer.from(buffer.subarray(0, bytes)))
      let frame = reader.next(MAX_FRAME_BYTES)
      for (; frame !== undefined; frame = reader.next(MAX_FRAME_BYTES)) take(frame)
      next()
    })
  }
  next()
}

function start(node: NodeJS.Process): void {
  const epoch: Epoch = { current: {}, pending: new Set() }
  const guest = new Guest(epoch, createRealm(epoch, node.argv[2]))
  stripProcess(node)
  // These handlers are installed last, because an error during the start must end the process.
  node.on('uncaughtException', (error) => guest.failFromOutside(error))
  node.on('unhandledRejection', (error) => guest.failFromOutside(error))
  listen(guest)
  send({ kind: 'ready' })
}

start(process)
