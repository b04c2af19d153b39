/** `coffer reactor dev`: runs a file as a reactor, once or on every save. */
import { watch } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { toProblem } from '../../../errors.js'
import type { OperationInput } from '../../../framework/operation.js'
import type { ReactorRun, Sandbox } from '../../../framework/ports/reactors.js'
import type { CommandContext } from '../../context.js'
import { readTexts } from '../../input/gather.js'
import { readMap } from '../../input/options.js'
import { printPlace } from '../../output/code-frame.js'
import { displayLines } from '../../output/display.js'
import { printNotice, printProblem } from '../../output/output.js'
import { write } from '../../output/terminal.js'
import { describeConfinement } from '../../target/reactor-options.js'
import type { Hooks, Task } from '../../task.js'

type Json = Record<string, unknown>

/** Editors write a file in several steps; the file is read this long after the last one. */
const SETTLE_MS = 50

export const develop: Hooks = {
  gather: async (context, [file = ''], { args, configuration }) => ({
    code: await context.input.readFile(file, 'the file'),
    args: await readObject(context, args, '--args'),
    configuration: await readObject(context, configuration, '--configuration'),
  }),
  run: async (task) => {
    if (task.options.watch !== true) return runOnce(task, task.input)
    task.context.handlesSignals()
    await runOnSave(task)
  },
}

async function runOnSave(task: Task): Promise<void> {
  const { context, args, input } = task
  const { terminal, signal } = context
  const path = resolve(context.cwd, args[0]!)
  const runAndReport = async (isFirst: boolean) => {
    try {
      const code = isFirst ? input.code : await context.input.readFile(args[0]!, 'the file')
      await runOnce(task, { ...input, code })
    } catch (error) {
      await printProblem(terminal, toProblem(error, '', 'owner'), task.format)
    }
    await printNotice(terminal, `Waiting for ${basename(path)} to be saved. Press Ctrl-C to stop.`)
  }
  await runAndReport(true)
  for await (const _ of saves(path, signal)) await runAndReport(false)
}

/** Yields once per save, until `signal`. Watches the directory, because editors replace the file. */
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

/** @throws CofferError the failure of the code, after printing its place */
async function runOnce({ context, options, ask, print }: Task, input: Readonly<OperationInput>) {
  const { terminal } = context
  const run = (await ask({ ...input })) as ReactorRun & { sandbox: Sandbox }
  if (options.verbose === true) await printNotice(terminal, describeConfinement(run.sandbox))
  for (const { level, text } of run.console) await write(terminal.stderr, `${level}: ${displayLines(text)}\n`)
  await printNotice(terminal, `${run.durationMs.toFixed(1)} ms, ${run.memoryMiB.toFixed(1)} MiB`)
  const { outcome } = run
  if (outcome.kind === 'failure') {
    const { stack } = run
    await printPlace(terminal, String(input.code), outcome.error.errors?.code?.[0] ?? stack ?? '')
    if (stack !== undefined) await write(terminal.stderr, `${displayLines(stack)}\n`)
    throw outcome.error
  }
  const { kind: _, ...result } = outcome
  await print(result)
}

/** Key=value entries or a JSON object. @throws CofferError `usage` */
async function readObject({ input }: CommandContext, given: unknown, name: string): Promise<Json> {
  const flag = { name, shape: 'map', schema: {}, isStored: true } as const
  return readMap(flag, await readTexts(input, flag, (given ?? []) as string[]))
}
