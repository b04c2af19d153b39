/** `coffer reactor dev`: a file run as a reactor runs it, once or on every save. */
import { watch } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { parseJson } from '../../domain/json/json.js'
import { type CofferError, toProblem } from '../../errors.js'
import type { ReactorRun, ReactorRuntime } from '../../framework/reactor-runtime.js'
import { openReactors } from '../../vault/app.js'
import type { Desk } from '../context.js'
import { readMap } from '../input/options.js'
import { readTexts } from '../input/request.js'
import { findPlace, formatFrame } from '../output/code-frame.js'
import { displayLines } from '../output/display.js'
import { chooseFormat, printNotice, printProblem, printResult } from '../output/output.js'
import { write } from '../output/terminal.js'
import { tellSandbox } from '../sandbox.js'

type Flags = Readonly<Record<string, unknown>>
type Json = Record<string, unknown>

/** Editors write a file in several steps; this long after the last one it is whole. */
const SETTLE_MS = 50

/** @throws CofferError `usage`; without `--watch` also whatever the code ended in. */
export async function develop(desk: Desk, file: string, flags: Flags): Promise<void> {
  const args = await readObject(desk, flags.args, '--args')
  const configuration = await readObject(desk, flags.configuration, '--configuration')
  const { allowNet, modules } = desk.config
  const reactors = await openReactors({
    ...(allowNet === undefined ? {} : { allowNet }),
    ...(modules === undefined ? {} : { modulesDirectory: resolve(desk.cwd, modules) }),
  })
  const runOnce = async () =>
    runFile(desk, reactors, await desk.input.readFile(file, 'the file'), { args, configuration })
  if (flags.verbose === true) await printNotice(desk.terminal, tellSandbox(reactors.sandbox))
  try {
    if (flags.watch !== true) return await runOnce()
    desk.stopsItself()
    await runOnSave(desk, resolve(desk.cwd, file), runOnce)
  } finally {
    await reactors.close()
  }
}

async function runOnSave(desk: Desk, path: string, runOnce: () => Promise<void>): Promise<void> {
  const { terminal, signal } = desk
  const runAndReport = async () => {
    try {
      await runOnce()
    } catch (error) {
      await printProblem(terminal, toProblem(error, ''), {
        format: chooseFormat(terminal, desk.config.output),
      })
    }
    await printNotice(terminal, `Waiting for ${basename(path)} to be saved. Ctrl-C ends it.`)
  }
  await runAndReport()
  for await (const _ of saves(path, signal)) await runAndReport()
}

/** Once for every save, until `signal`. The folder is watched, because editors put a new file in the place of the old. */
async function* saves(path: string, signal: AbortSignal): AsyncGenerator<void> {
  let wake: () => void = () => undefined
  let isSaved = false
  let settling: NodeJS.Timeout | undefined
  const watcher = watch(dirname(path), (_, name) => {
    if (name !== basename(path)) return
    clearTimeout(settling)
    settling = setTimeout(() => {
      isSaved = true
      wake()
    }, SETTLE_MS)
  })
  signal.addEventListener('abort', () => wake(), { once: true })
  try {
    while (!signal.aborted) {
      if (!isSaved) await new Promise<void>((resolve) => (wake = resolve))
      if (signal.aborted) return
      isSaved = false
      yield
    }
  } finally {
    clearTimeout(settling)
    watcher.close()
  }
}

/** @throws CofferError what the code ended in, once its place was shown. */
async function runFile(
  desk: Desk,
  reactors: ReactorRuntime,
  code: string,
  given: { args: Json; configuration: Json },
): Promise<void> {
  const { terminal, config } = desk
  const run = await reactors.run({
    tenant: 0,
    reactor: 'dev',
    code,
    ...given,
    client: null,
  })
  for (const { level, text } of run.console) await write(terminal.stderr, `${level}: ${displayLines(text)}\n`)
  await printNotice(terminal, `${run.durationMs.toFixed(1)} ms, ${run.memoryMiB.toFixed(1)} MiB`)
  const { outcome } = run
  if (outcome.kind === 'failure') {
    await printPlace(desk, code, run, outcome.error)
    throw outcome.error
  }
  const { kind: _, ...result } = outcome
  await printResult(terminal, result, {
    format: chooseFormat(terminal, config.output),
    fields: config.fields,
  })
}

async function printPlace(
  { terminal }: Desk,
  code: string,
  { stack }: ReactorRun,
  error: CofferError,
): Promise<void> {
  const place = findPlace(error.errors?.code?.[0] ?? stack ?? '')
  if (place !== undefined) await write(terminal.stderr, `${displayLines(formatFrame(code, place))}\n`)
  if (stack !== undefined) await write(terminal.stderr, `${displayLines(stack)}\n`)
}

/** @throws CofferError `usage` for what is neither key=value nor a JSON object. */
async function readObject({ input }: Desk, given: unknown, name: string): Promise<Json> {
  const flag = { name, shape: 'map', schema: {}, isStored: true } as const
  const texts = await readTexts(input, flag, (given ?? []) as string[])
  return readMap(flag, texts, parseJson)
}
