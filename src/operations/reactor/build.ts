/** Builds the code of a reactor or proxy: links its dependencies, and finds out why the code cannot run. */
import { isObject } from '../../domain/json/json.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import {
  type BuildError,
  describeFindings,
  findListed,
  type Versions,
  withSubpaths,
} from '../../domain/reactor/dependencies.js'
import { DEFAULT_IMAGE, isConfigurable, type RuntimeOptions } from '../../domain/reactor/runtime.js'
import { type Build, type Requested, stateOf } from '../../domain/reactor/state.js'
import { CofferError } from '../../errors.js'
import type { Session } from '../../framework/context.js'
import type { CheckTools } from '../../framework/declaration.js'
import { text } from '../../framework/output.js'
import type { Builder, LinkedPackage } from '../../framework/ports/linker.js'

/** Code with its runtime. The code of a formula is absent. */
export interface BuiltCode {
  code?: string | undefined
  runtime?: RuntimeOptions | undefined
}

/** Returns how a build of these codes ends. */
export type FindBuild = (...codes: readonly BuiltCode[]) => Build

/**
 * Links the dependencies of an input. This happens before the unit of work that stores the input, because linking
 * takes seconds. Contract: the input is valid.
 */
export async function prepareBuild(
  tools: CheckTools,
  ...codes: readonly Readonly<Record<keyof BuiltCode, unknown>>[]
): Promise<FindBuild> {
  const builder = await tools.linker?.()
  for (const { code, runtime } of codes)
    await builder?.link(withSubpaths(readVersions(runtime), typeof code === 'string' ? code : ''))
  return (...built) => {
    const { provision } = tools
    const faults = built.flatMap((each) => findFault(each, builder) ?? [])
    const findings = built.flatMap(({ runtime }) => builder?.find(dependenciesOf(runtime)) ?? [])
    return omitUndefined({
      delayMs: provision?.delayMs,
      error: provision?.error ?? faults[0] ?? describeFindings(findings),
    })
  }
}

/** Code can only export something by one of these names. */
const EXPORTING = /\b(?:exports|module|arguments)\b/

/** With the image `node-bt`, code is not built. Its faults are known when it runs. */
function findFault({ code, runtime }: BuiltCode, builder: Builder | undefined): BuildError | undefined {
  if (code === undefined || builder === undefined || !isConfigurable(runtime?.image)) return undefined
  const fault = builder.findSyntaxFault(code)
  if (fault === undefined && EXPORTING.test(code)) return undefined
  const { message = 'it exports no function; set module.exports to one', line } = fault ?? {}
  const place = line === undefined ? '' : ` (line ${line})`
  return {
    code: 'code_invalid',
    message:
      fault === undefined
        ? `The code cannot run: ${message}.`
        : `The code does not compile: ${message}${place}.`,
    details: omitUndefined({ line }),
  }
}

/** The dependencies of an input, which can be a patch. */
function readVersions(runtime: unknown): Versions {
  const { image = DEFAULT_IMAGE, dependencies } = isObject(runtime) ? runtime : {}
  // If a patch has no image, the image of the record is not known here.
  if (image === DEFAULT_IMAGE && isObject(runtime) && 'image' in runtime) return {}
  const entries = Object.entries(isObject(dependencies) ? dependencies : {})
  return Object.fromEntries(
    entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  )
}

/** Returns no dependencies for the image `node-bt`, because they have no effect there. */
function dependenciesOf(runtime: RuntimeOptions | undefined): Versions {
  return isConfigurable(runtime?.image) ? (runtime?.dependencies ?? {}) : {}
}

/**
 * Returns the packages of a run. Links the packages that this server has not linked yet.
 * @throws CofferError `unprocessable` if a declared package cannot be used
 */
export async function loadPackages(
  { linker: findLinker }: Pick<Session, 'linker'>,
  runtime: RuntimeOptions | undefined,
  code: string,
): Promise<readonly LinkedPackage[]> {
  const isDeclaring = isConfigurable(runtime?.image)
  const packages = isDeclaring ? dependenciesOf(runtime) : findListed(code)
  if (Object.keys(packages).length === 0) return []
  const linker = await findLinker()
  const loaded = await linker.load(withSubpaths(packages, code))
  // A subpath that does not exist fails when the code requires it, as with Node.
  const findings = loaded.findings.filter(({ name }) => Object.hasOwn(packages, name))
  const error = isDeclaring ? describeFindings(findings) : undefined
  if (error === undefined) return loaded.packages
  throw new CofferError('unprocessable', `The code cannot run here. ${error.message}`)
}

/** @throws CofferError `unprocessable` if no version of the code can run yet */
export function requireReady(noun: string, record: { requested?: Requested<unknown> }, now: number): void {
  const state = stateOf(record, now)
  if (state === 'creating' || state === 'failed')
    throw new CofferError('unprocessable', `The ${noun} is not ready: ${state}.`)
}

/** The members of `requested`, except for the attributes. */
export const buildErrorOutput = {
  'error_code?': text,
  'error_message?': text,
  'error_details?': { type: 'object', additionalProperties: true },
} as const

/**
 * Returns the state, and the reason why the requested version is not built. While the version is being built, the
 * reason is hidden.
 */
export function viewState<A>(record: { requested?: Requested<A> }, now: number) {
  const state = stateOf(record, now)
  const { requested } = record
  if (requested === undefined || state === 'active') return { state }
  const isBuilding = state === 'creating' || state === 'updating'
  const { attributes, error } = requested
  return { state, attributes, error: describeError(isBuilding ? undefined : error) }
}

function describeError(error: BuildError | undefined) {
  return omitUndefined({
    error_code: error?.code,
    error_message: error?.message,
    error_details: error?.details,
  })
}
