/** The program of a child process: one file that exchanges messages on standard input and output. */
import { Buffer } from 'node:buffer'
import { read, writeSync } from 'node:fs'
import { setImmediate } from 'node:timers'
import { omitUndefined } from '../../domain/omit-undefined.js'
import { encodeFrame, encodePrefix, FrameReader } from '../../ipc/frames.js'
import {
  FETCH_CALL,
  type FetchResponse,
  type GuestFailure,
  type GuestMessage,
  type HostMessage,
} from '../messages.js'
import { createCalls, createClient } from './calls.js'
import type { Epoch } from './gate.js'
import { createConsole } from './globals/console-facade.js'
import { createTimers } from './globals/timers.js'
import { createFetch } from './globals/web-facade.js'
import { describeFailure } from './guest-failures.js'
import type { DescribeError } from './inspect.js'
import { createRealm, type Realm, type RunGlobals } from './realm.js'
import { prepareSource, type Source, SourceError } from './source.js'
import { stripProcess } from './strip.js'
import { describeMessage, readTransformed } from './transform.js'
import { findExports, findUsage, type Usage } from './usage.js'

const INPUT = 0
const OUTPUT = 1
const EMPTY = Buffer.alloc(0)
const MOST_FRAME_BYTES = 256 * 1024 * 1024
/** Captured before `stripProcess` removes it. */
const { reallyExit: exit } = process as unknown as { reallyExit(code: number): never }

type Work = Extract<HostMessage, { kind: 'run' }>
type Check = Extract<HostMessage, { kind: 'check' }>
type Handler = (request: object) => unknown

/** The state of one run: its calls to the host, timers and globals. */
function createRun(describeError: DescribeError) {
  let isOver = false
  const sendFrom = (message: GuestMessage) => {
    if (!isOver) send(message)
  }
  const calls = createCalls((call, name, args) => sendFrom({ kind: 'call', call, name, args }))
  const timers = createTimers()
  const globals: RunGlobals = {
    timers: timers.globals,
    console: createConsole((level, text) => sendFrom({ kind: 'log', level, text }), describeError),
    fetch: createFetch(async (request) => (await calls.ask(FETCH_CALL, [request])) as FetchResponse),
  }
  return {
    calls,
    globals,
    /** Sends the final message of the run; later messages of the code are dropped. */
    end(message: GuestMessage): void {
      if (isOver) return
      const { body, ...rest } = { body: undefined, ...message }
      send(rest, body)
      isOver = true
      timers.end()
      calls.end()
    },
  }
}

type Run = ReturnType<typeof createRun>

type Guest = ReturnType<typeof createGuest>

function createGuest(epoch: Epoch, realm: Realm) {
  let source: { code: string; prepared?: Source } | undefined
  let running: Run | undefined

  return { take, failFromOutside }

  function take(message: HostMessage, body: Buffer): void {
    if (message.kind === 'reply') running?.calls.answer(message.call, message.value)
    else if (message.kind === 'refusal') running?.calls.refuse(message)
    else void begin(message, body)
  }

  async function begin(message: Work | Check, body: Buffer): Promise<void> {
    const run = createRun(realm.describeError)
    running = run
    epoch.current = run
    epoch.time = message.kind === 'run' ? message.time : undefined
    const work = message.kind === 'check' ? check(message.code, run) : invoke(message, body, run)
    const last = await work.catch((error): GuestMessage => ({ kind: 'failed', failure: describe(error) }))
    finish(run, last)
  }

  /** Handles an error that the code did not catch. */
  function failFromOutside(error: unknown): void {
    if (running !== undefined) finish(running, { kind: 'failed', failure: describe(error) })
  }

  function finish(run: Run, last: GuestMessage): void {
    if (running !== run) return
    run.end(last)
    running = undefined
    epoch.current = {}
    // Sent by the event loop, because an endless chain of microtasks could block it.
    setImmediate(() => send({ kind: 'idle' }))
  }

  async function invoke(
    { code, message, rest, configuration, prefix, hasClient, resultBytes, ...work }: Work,
    body: Buffer,
    run: Run,
  ): Promise<GuestMessage> {
    const source = prepare(code)
    const handler = load(source.code, source.prepared, run)
    const args = message === undefined ? work.args : describeMessage(message, body)
    const client = hasClient ? createClient((name, list) => run.calls.ask(name, list)) : null
    const req = rest === undefined ? args : args === undefined ? rest : { ...rest, args }
    const { debug, info, warn, error } = run.globals.console
    const logger = { debug, info, warn, error }
    const res = message?.direction === 'response' ? { res: args } : {}
    const result = await handler({ args: args ?? {}, configuration, [prefix]: client, req, ...res, logger })
    if (message === undefined) return describeResult(result, resultBytes)
    const { raw, body: made } = readTransformed(result, message.direction)
    const described = describeResult({ raw }, resultBytes)
    return made === undefined ? described : { ...described, hasBody: made.length > 0, body: made }
  }

  async function check(code: string, run: Run): Promise<GuestMessage> {
    const usage: Usage = { args: [], configuration: [], unknown: [] }
    try {
      const { prepared } = prepare(code)
      Object.assign(usage, findUsage(prepared.program, code))
      load(code, prepared, run)
      return { kind: 'report', ...usage }
    } catch (error) {
      return { kind: 'report', failure: describe(error), ...usage }
    }
  }

  function prepare(code: string | undefined) {
    if (code !== undefined) source = { code }
    if (source === undefined) throw new Error('The host sent no code')
    // Stored even if it does not compile, because the host does not send the same code twice.
    source.prepared ??= prepareSource(source.code)
    return { code: source.code, prepared: source.prepared }
  }

  /** The exported function: `module.exports`, or its `default` as in compiled ES modules. */
  function load(code: string, { text, program }: Source, run: Run): Handler {
    const exported = realm.load(text, run.globals)
    if (typeof exported === 'function') return exported as Handler
    const { default: other } = (exported ?? {}) as { default?: unknown }
    if (typeof other === 'function') return other as Handler
    throw new SourceError(
      'The code exports no function; set module.exports to one',
      findExports(program, code),
    )
  }

  function describe(error: unknown): GuestFailure {
    return describeFailure(error, (thrown) => realm.findStack(thrown))
  }
}

function describeResult(result: unknown, resultBytes: number): Extract<GuestMessage, { kind: 'done' }> {
  const { raw, tokenize, res } = (result ?? {}) as Record<'raw' | 'tokenize' | 'res', unknown>
  const texts = omitUndefined({ raw: toJson(raw), tokenize: toJson(tokenize), res: toJson(res) })
  const bytes = Object.values(texts).reduce((sum, text) => sum + Buffer.byteLength(text), 0)
  if (bytes > resultBytes)
    throw new RangeError(`The result has ${bytes} bytes; at most ${resultBytes} are allowed`)
  return { kind: 'done', ...texts }
}

/** undefined for null and for values that JSON cannot represent. */
function toJson(value: unknown): string | undefined {
  return value === undefined || value === null ? undefined : JSON.stringify(value)
}

/** Blocks until the host reads, so that output does not accumulate in the guest. */
function send(message: object, body: Uint8Array = EMPTY): void {
  const frames = [encodeFrame(message), ...(body.length === 0 ? [] : [encodePrefix(body.length), body])]
  try {
    for (const frame of frames) for (let at = 0; at < frame.length; ) at += writeSync(OUTPUT, frame, at)
  } catch {
    // The host has closed the pipe.
    exit(0)
  }
}

function listen(guest: Guest): void {
  const reader = new FrameReader()
  const buffer = Buffer.alloc(64 * 1024)
  /** A message whose body comes next. */
  let unfinished: HostMessage | undefined
  const take = (frame: Buffer) => {
    if (frame.length === 0) exit(1)
    if (unfinished !== undefined) {
      guest.take(unfinished, frame)
      unfinished = undefined
      return
    }
    const message = JSON.parse(frame.toString()) as HostMessage
    if (message.kind === 'run' && message.message?.hasBody) unfinished = message
    else guest.take(message, EMPTY)
  }
  const next = () => {
    read(INPUT, buffer, 0, buffer.length, null, (error, bytes) => {
      if (error !== null || bytes === 0) exit(0)
      reader.add(Buffer.from(buffer.subarray(0, bytes)))
      let frame = reader.next(MOST_FRAME_BYTES)
      for (; frame !== undefined; frame = reader.next(MOST_FRAME_BYTES)) take(frame)
      next()
    })
  }
  next()
}

function start(node: NodeJS.Process): void {
  const epoch: Epoch = { current: {} }
  const guest = createGuest(epoch, createRealm(epoch, node.argv[2]))
  stripProcess(node)
  // Not earlier: an error during the start must end the process.
  node.on('uncaughtException', (error) => guest.failFromOutside(error))
  node.on('unhandledRejection', (error) => guest.failFromOutside(error))
  listen(guest)
  send({ kind: 'ready' })
}

start(process)
