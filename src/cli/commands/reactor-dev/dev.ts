/** `coffer reactor dev` runs a file as a reactor or as a transform, once or each time the file is saved. */
import { type Stats, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { pause } from '../../../client/pause.js'
import { omitUndefined } from '../../../domain/omit-undefined.js'
import { type CodeFault, describeFault, invalidCode } from '../../../domain/reactor/code-fault.js'
import { MAX_CODE_BYTES } from '../../../domain/reactor/formula.js'
import { DEFAULT_IMAGE, IMAGES } from '../../../domain/reactor/runtime.js'
import { CofferError, toProblem, usage } from '../../../errors.js'
import type { ReactorRun, ReactorRuntime, TransformInput } from '../../../framework/ports/reactors.js'
import { openReactors } from '../../../vault/app.js'
import type { CommandContext } from '../../context.js'
import { dashError } from '../../input/dash.js'
import { readMap } from '../../input/flags.js'
import { readTexts } from '../../input/gather.js'
import { displayLines } from '../../output/display.js'
import { printForRun, printNotice, printProblem, printWarning } from '../../output/output.js'
import { write } from '../../output/terminal.js'
import { reactorOptions } from '../../target/vault.js'
import type { TerminalCommand } from '../../task.js'
import { resolveArguments } from './arguments.js'
import { excerptOf } from './excerpt.js'
import { type CodePlace, hintFor } from './hints.js'
import { openPackages, type Packages } from './packages.js'
import { findPlace, nameFile, readSource, type Source } from './source.js'

/** The interval is long enough for a text editor to finish writing a file between two checks. */
const WATCH_MS = 100
const SHOWN_FAULTS = 5
const REQUEST = { method: 'POST', path: '/', query: '' }

interface Setting {
  context: CommandContext
  file: string
  place: CodePlace
  args: Record<string, unknown>
  configuration: Record<string, unknown>
  runtime: ReactorRuntime
  packages: Packages
}

export const developReactor: TerminalCommand['run'] = async (context, [file = ''], options) => {
  const { args, configuration, seed, watch } = options
  const place = readPlace(options)
  if (watch === true) requireWatchable(context, file)
  const given = {
    args: await readObject(context, args, '--args'),
    configuration: await readObject(context, configuration, '--configuration'),
  }
  const resolved = await resolveArguments(context, given, seed as string | undefined)
  const reactors = await reactorOptions(context)
  const packages = await openPackages(resolve(context.cwd, file), reactors.modulesDirectory)
  const runtime = await openReactors(reactors)
  const setting = { ...given, context, file, place, args: resolved, runtime, packages }
  try {
    await (watch === true ? runOnSaves(setting) : runOnce(setting))
  } finally {
    packages.close()
    await runtime.close()
  }
}

/** @throws CofferError `usage` */
function readPlace({ image, transform }: Readonly<Record<string, unknown>>): CodePlace {
  if (image !== undefined && !IMAGES.includes(image as (typeof IMAGES)[number]))
    throw usage(`--image takes ${IMAGES.join(', ')}.`)
  if (transform !== undefined && transform !== 'request' && transform !== 'response')
    throw usage('--transform takes request or response.')
  return { image: (image ?? DEFAULT_IMAGE) as string, direction: transform }
}

/** @throws CofferError `usage` for a pipe, because its content can be read only once */
function requireWatchable({ cwd }: CommandContext, file: string): void {
  if (file === '-') throw dashError('The file of --watch')
  const stat = statSync(resolve(cwd, file), { throwIfNoEntry: false })
  if (stat !== undefined && !stat.isFile()) throw usage('--watch needs a file: a pipe can be read only once.')
}

async function readObject({ input }: CommandContext, given: unknown, name: string) {
  const flag = { name, shape: 'map', schema: {}, isStored: true } as const
  return readMap(flag, await readTexts(input, flag, (given ?? []) as string[]))
}

async function runOnSaves(setting: Setting): Promise<void> {
  const { context, file } = setting
  const { terminal, signal, config } = context
  context.handlesSignals()
  while (!signal.aborted) {
    const saved = waitForSave(resolve(context.cwd, file), signal)
    await runOnce(setting).catch((error) =>
      printProblem(terminal, toProblem(error, '', 'owner'), config.output),
    )
    await printNotice(terminal, 'Waiting for the file to be saved. Press Ctrl-C to stop.')
    await saved
  }
}

async function waitForSave(path: string, signal: AbortSignal): Promise<void> {
  const read = () => stampOf(statSync(path, { throwIfNoEntry: false }))
  const before = read()
  while (!signal.aborted && [before, undefined].includes(read())) await pause(WATCH_MS, signal)
}

function stampOf(stat: Stats | undefined): string | undefined {
  return stat && `${stat.mtimeMs}/${stat.size}/${stat.ino}`
}

/** @throws CofferError the error of the code, or `check_failed` if a package is missing */
async function runOnce(setting: Setting): Promise<void> {
  const { context, file } = setting
  const source = await readSource(context, file)
  if (source.faults.length > 0) throw await showFaults(context, source, source.faults)
  await warnOfSize(context, source)
  const { packages, missing, advice } = await setting.packages.link(source.code)
  if (missing.length > 0) throw new CofferError('check_failed', missing.join('\n'))
  if (advice !== undefined) await printNotice(context.terminal, advice)
  const run = await setting.runtime.run({
    tenant: 0,
    reactor: 'dev',
    code: source.code,
    packages,
    configuration: setting.configuration,
    client: null,
    image: setting.place.image,
    ...inputFor(setting),
  })
  await report(setting, source, run)
}

async function warnOfSize({ terminal }: CommandContext, { code }: Source): Promise<void> {
  const bytes = Buffer.byteLength(code)
  if (bytes > MAX_CODE_BYTES)
    await printWarning(
      terminal,
      `The code has ${bytes} bytes. A reactor may have at most ${MAX_CODE_BYTES} bytes of code, so the code cannot be stored.`,
    )
}

function inputFor({ place: { direction }, args }: Setting) {
  if (direction === undefined) return { args, rest: {} }
  const { body, headers = {}, ...others } = args
  const text = typeof body === 'string' ? body : body === undefined ? '' : JSON.stringify(body)
  const type = typeof body === 'string' ? 'text/plain' : 'application/json'
  const message = {
    ...(direction === 'request' ? REQUEST : { statusCode: 200 }),
    ...others,
    direction,
    headers: { 'content-type': type, ...(headers as Record<string, string>) },
    body: Buffer.from(text),
  } as TransformInput
  return { args: undefined, message }
}

async function report(setting: Setting, source: Source, run: ReactorRun): Promise<void> {
  const { context, place } = setting
  const { terminal } = context
  const { outcome, stack, faults } = run
  for (const { level, text } of run.console)
    await write(terminal.stderr, `${level}: ${displayLines(nameFile(text, source))}\n`)
  // Code that does not compile has not run.
  if (faults === undefined)
    await printNotice(terminal, `${run.durationMs.toFixed(1)} ms, ${run.memoryMiB.toFixed(1)} MiB`)
  const hint = hintFor(run, place)
  if (hint !== undefined) await printNotice(terminal, hint)
  if (outcome.kind === 'result') return printForRun(context, viewResult(outcome, place))
  if (faults !== undefined)
    throw await showFaults(
      context,
      source,
      faults.map((each) => atFile(each, source)),
    )
  if (stack !== undefined) await showStack(context, source, stack)
  throw outcome.error
}

function atFile(fault: CodeFault, { locate }: Source): CodeFault {
  return { ...fault, ...locate(fault) }
}

/** Prints the lines of the faults. Returns the error to throw. */
async function showFaults(
  { terminal }: CommandContext,
  source: Source,
  faults: readonly CodeFault[],
): Promise<CofferError> {
  for (const fault of faults.slice(0, SHOWN_FAULTS)) {
    const excerpt = excerptOf(source, fault)
    if (excerpt !== undefined) await write(terminal.stderr, `${excerpt}\n`)
  }
  const { code, errors } = invalidCode(faults)
  const [first] = faults
  if (faults.length === 1) {
    const message = `${source.path} does not compile: ${describeFault(first!).replace(/\.$/, '')}.`
    return new CofferError(code, message)
  }
  const message = `${source.path} does not compile. It has ${faults.length} errors.`
  return new CofferError(code, message, omitUndefined({ errors }))
}

async function showStack({ terminal }: CommandContext, source: Source, stack: string): Promise<void> {
  const place = findPlace(stack, source)
  const excerpt = place && excerptOf(source, place)
  if (excerpt !== undefined) await write(terminal.stderr, `${excerpt}\n`)
  await write(terminal.stderr, `${displayLines(nameFile(stack, source))}\n`)
}

/** Restores the form in which the code returned its result. */
function viewResult(outcome: Extract<ReactorRun['outcome'], { kind: 'result' }>, { direction }: CodePlace) {
  const { kind: _, body, raw, ...result } = outcome
  if (direction === undefined) return omitUndefined({ ...result, raw })
  const { answer, headers, statusCode } = (raw ?? {}) as {
    answer?: { statusCode: unknown }
    headers?: unknown
    statusCode?: unknown
  }
  const text = body && Buffer.from(body).toString()
  const message = omitUndefined({ statusCode: answer?.statusCode ?? statusCode, headers, body: text })
  if (Object.keys(message).length === 0) return {}
  return { [direction === 'response' || answer !== undefined ? 'res' : 'req']: message }
}
