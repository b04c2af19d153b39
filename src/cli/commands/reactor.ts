import { statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { findFixture } from '../../assets.js'
import { pause } from '../../client/pause.js'
import { isObject, parseJson } from '../../domain/json/json.js'
import { toProblem, usage } from '../../errors.js'
import type { OperationInput } from '../../framework/context.js'
import type { ReactorRun } from '../../framework/ports/reactors.js'
import { loadOperation } from '../../operations/load.js'
import type { CommandContext } from '../context.js'
import { dashError } from '../input/dash.js'
import { readMap } from '../input/flags.js'
import { readTexts } from '../input/gather.js'
import { displayLines } from '../output/display.js'
import { printNotice, printProblem, printWarning } from '../output/output.js'
import { write } from '../output/terminal.js'
import type { Hooks, Task } from '../task.js'

const INCLUDED = ['card-alias', 'matching-hmac', 'json-webhook']
/** How often a watched file is looked at. An editor has written all of it by the next look. */
const WATCH_MS = 100

export const checkFormula: Hooks = {
  gather: async (context, [file = '']) =>
    file.endsWith('.json')
      ? { code: (await readFormula(context, file)).code }
      : { code: await context.input.readFile(file, 'the file') },
  run: async ({ ask, print, args }) => print({ file: args[0], ...((await ask()) as object) }),
}

/** Code is stored as it is given. The warning comes before that, so that a person can interrupt the command. */
export const storeCode: Hooks = {
  run: async (task, usual) => {
    const { context, input } = task
    if (typeof input.code === 'string') await warnOfCode(context, input.code)
    await usual?.(task)
  },
}

async function warnOfCode(context: CommandContext, code: string): Promise<void> {
  const { askOffline } = await import('../target/offline.js')
  const check = await loadOperation('formula check')
  await askOffline(context, check!, { code }).catch((error) =>
    printWarning(context.terminal, `This code cannot run: ${toProblem(error, '', 'owner').detail}`),
  )
}

export const installFormulas: Hooks = {
  gather: async (context, [name]) => {
    const formulas: object[] = []
    for (const each of name === undefined ? INCLUDED : [name]) {
      if (!INCLUDED.includes(each) && !each.endsWith('.json'))
        throw usage(`There is no formula "${each}". Give ${INCLUDED.join(', ')}, or a file: my-formula.json.`)
      const file = INCLUDED.includes(each) ? findFixture(`formulas/${each}.json`) : resolve(context.cwd, each)
      formulas.push(await readFormula(context, file))
    }
    return { formulas }
  },
}

/** `code` in the file may be the name of a file beside it. @throws CofferError `usage` */
async function readFormula({ input, cwd }: CommandContext, path: string) {
  const formula = parseJson(await input.readFile(path, 'the file'), { source: path, code: 'usage' })
  if (!isObject(formula) || typeof formula.code !== 'string')
    throw usage(`${path} is not a formula: a JSON object with code.`)
  const { code } = formula
  if (!/^[\w./-]+\.c?js$/.test(code)) return formula
  return { ...formula, code: await input.readFile(resolve(cwd, dirname(path), code), 'the file of the code') }
}

export const develop: Hooks = {
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

/** @throws CofferError the failure of the code, after printing its place */
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

/** Key=value entries or a JSON object. @throws CofferError `usage` */
async function readObject({ input }: CommandContext, given: unknown, name: string) {
  const flag = { name, shape: 'map', schema: {}, isStored: true } as const
  return readMap(flag, await readTexts(input, flag, (given ?? []) as string[]))
}
