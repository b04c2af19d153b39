import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { pause } from '../../client/pause.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import { toProblem } from '../../errors.js'
import type { OperationInput } from '../../framework/context.js'
import type { ReactorRun } from '../../framework/ports/reactors.js'
import type { ResultOf } from '../../operations/all.js'
import type { CommandContext } from '../context.js'
import { dashError } from '../input/dash.js'
import { readMap } from '../input/flags.js'
import { readTexts } from '../input/gather.js'
import { displayLines } from '../output/display.js'
import { FOLLOW, follow, printRows } from '../output/follow.js'
import { printNotice, printProblem } from '../output/output.js'
import { write } from '../output/terminal.js'
import type { Hooks, Presentations, Task } from '../task.js'

/** How often a watched file is checked for changes. At the next check, an editor has finished writing. */
const WATCH_MS = 100

const USUAL_PAGE = 20
const STORED_RUNS = 100

type Run = ResultOf<'reactor logs'>[number]

const develop: Hooks = {
  gather: async (context, [file = ''], { args, configuration }) => ({
    code: await context.input.readFile(file, 'the file'),
    args: await readObject(context, args, '--args'),
    configuration: await readObject(context, configuration, '--configuration'),
  }),
  run: async (task) => {
    const { context, options, args, input } = task
    if (options.watch !== true) return runOnce(task, input)
    if (args[0] === '-') throw dashError('The file of --watch')
    const { terminal, signal, config } = context
    context.handlesSignals()
    let code = async () => input.code
    while (!signal.aborted) {
      const saved = waitForSave(resolve(context.cwd, args[0]!), signal)
      const runs = async () => runOnce(task, { ...input, code: await code() })
      await runs().catch((error) => printProblem(terminal, toProblem(error, '', 'owner'), config.output))
      await printNotice(terminal, 'Waiting for the file to be saved. Press Ctrl-C to stop.')
      await saved
      code = () => context.input.readFile(args[0]!, 'the file')
    }
  },
}

async function waitForSave(path: string, signal: AbortSignal): Promise<void> {
  const savedAt = () => statSync(path, { throwIfNoEntry: false })?.mtimeMs
  const before = savedAt()
  while (!signal.aborted && [before, undefined].includes(savedAt())) await pause(WATCH_MS, signal)
}

/** Runs the code once, and prints its console. @throws CofferError the error of the code, after its stack is printed */
async function runOnce({ context: { terminal }, ask, print }: Task, input: Readonly<OperationInput>) {
  const run = (await ask({ ...input })) as ReactorRun
  for (const { level, text } of run.console) await write(terminal.stderr, `${level}: ${displayLines(text)}\n`)
  await printNotice(terminal, `${run.durationMs.toFixed(1)} ms, ${run.memoryMiB.toFixed(1)} MiB`)
  const { outcome, stack } = run
  if (outcome.kind === 'failure') {
    if (stack !== undefined) await write(terminal.stderr, `${displayLines(stack)}\n`)
    throw outcome.error
  }
  const { kind: _, ...result } = outcome
  await print(result)
}

async function readObject({ input }: CommandContext, given: unknown, name: string) {
  const flag = { name, shape: 'map', schema: {}, isStored: true } as const
  return readMap(flag, await readTexts(input, flag, (given ?? []) as string[]))
}

const runs: Hooks = {
  run: async (task) => {
    const { ask, input, options, format, print } = task
    const read = async (number?: number) => (await ask({ ...input, ...omitUndefined({ number }) })) as Run[]
    const isFollowing = options.follow === true
    const first = await read(isFollowing ? STORED_RUNS : undefined)
    if (!isFollowing) {
      if (format !== 'table' || first.length === 0) return print(first)
      return void (await printRows(task, first, formatRun))
    }
    let seen = new Set(first.map(({ id }) => id))
    const readNew = async () => {
      const stored = await read(STORED_RUNS)
      const added = stored.filter(({ id }) => !seen.has(id))
      seen = new Set(stored.map(({ id }) => id))
      return added
    }
    const shown = first.length - Number(input.number ?? USUAL_PAGE)
    await follow(task, first.slice(Math.max(0, shown)), formatRun, readNew)
  },
}

function formatRun({ console, detail, errors = {}, stack, ...run }: Run): string {
  const head = `${run.created_at}  ${run.outcome} ${run.status}  ${run.duration_ms} ms  ${run.memory_mib} MiB`
  const lines = [
    ...console.map(({ level, text }) => `${level}: ${text}`),
    detail,
    ...Object.entries(errors).flatMap(([path, texts]) => texts.map((text) => `${path}: ${text}`)),
    stack,
  ].filter((line) => line !== undefined)
  return [head, ...lines.map((line) => displayLines(line).replaceAll(/^/gm, '    ')), ''].join('\n')
}

export const presentations: Presentations = {
  'reactor dev': {
    arguments: [['<file>', 'formula.js']],
    options: [
      ['--args <json>', 'the arguments, as JSON or key=value: @args.json (repeatable)', true],
      ['--configuration <json>', 'the configuration, as JSON or key=value (repeatable)', true],
      ['--watch', 'run again when the file is saved, until Ctrl-C'],
    ],
    hooks: develop,
  },
  'reactor logs': {
    options: [FOLLOW],
    empty: 'The reactor has not run yet.',
    hooks: runs,
  },
}
