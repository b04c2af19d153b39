/** Builds the code of a reactor or proxy: links its dependencies, and finds out why the code cannot run. */
import { isObject } from '../../domain/json/json.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import { type CodeFault, invalidCode } from '../../domain/reactor/code-fault.js'
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
import type { LinkedPackage } from '../../framework/ports/linker.js'

/** `code` is undefined if the code comes from a formula, or if a transform has no code. */
export interface BuiltCode {
  code?: string | undefined
  runtime?: RuntimeOptions | undefined
}

export type FindBuild = (...codes: readonly BuiltCode[]) => Build

/**
 * Compiles code and links its dependencies. Because both take time, this function is called before the unit of work
 * that stores the code. Requires: the input is valid.
 */
export async function prepareBuild(
  tools: CheckTools,
  ...codes: readonly Readonly<Record<keyof BuiltCode, unknown>>[]
): Promise<FindBuild> {
  const linker = await tools.linker?.()
  const faults = new Map<string | undefined, readonly CodeFault[]>()
  for (const { code, runtime } of codes) {
    const text = typeof code === 'string' ? code : ''
    await linker?.link(withSubpaths(readVersions(runtime), text))
    if (text !== '' && mayBeBuilt(runtime)) faults.set(text, (await tools.compile?.(text)) ?? [])
  }
  return (...built) => {
    const { provision } = tools
    const errors = built.flatMap((each) => describeFaults(each, faults.get(each.code)) ?? [])
    const findings = built.flatMap(({ runtime }) => linker?.find(dependenciesOf(runtime)) ?? [])
    return omitUndefined({
      delayMs: provision?.delayMs,
      error: provision?.error ?? errors[0] ?? describeFindings(findings),
    })
  }
}

/** Code with the image `node-bt` is not built. Its faults are reported when the code runs. */
function describeFaults(
  { runtime }: BuiltCode,
  faults: readonly CodeFault[] | undefined = [],
): BuildError | undefined {
  if (faults.length === 0 || !isConfigurable(runtime?.image)) return undefined
  return { code: 'code_invalid', message: invalidCode(faults).message, details: { code: faults } }
}

/** Reads code and runtime from an input that is not a patch. Without an image, the runtime gets the default image. */
export function wholeVersion({ code, runtime }: Readonly<Record<string, unknown>>) {
  const given = isObject(runtime) ? runtime : {}
  return { code, runtime: { ...given, image: given.image || DEFAULT_IMAGE } }
}

/** Returns true for a patch without an image, because the record may have an image that needs a build. */
function mayBeBuilt(runtime: unknown): boolean {
  return !isObject(runtime) || runtime.image !== DEFAULT_IMAGE
}

function readVersions(runtime: unknown): Versions {
  const { image = DEFAULT_IMAGE, dependencies } = isObject(runtime) ? runtime : {}
  // A patch without an image may concern a record with any image. Therefore the result is empty only if the input
  // names the default image.
  if (image === DEFAULT_IMAGE && isObject(runtime) && 'image' in runtime) return {}
  const entries = Object.entries(isObject(dependencies) ? dependencies : {})
  return Object.fromEntries(
    entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  )
}

/** Dependencies have no effect with the image `node-bt`. */
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
  // A missing subpath is no error here. The call of `require` fails later, like in Node.
  const findings = loaded.findings.filter(({ name }) => Object.hasOwn(packages, name))
  const error = isDeclaring ? describeFindings(findings) : undefined
  if (error === undefined) return loaded.packages
  throw new CofferError('unprocessable', `The code cannot run here. ${error.message}`)
}

/** @throws CofferError `unprocessable` if no version of the code was built successfully yet */
export function requireReady(noun: string, record: { requested?: Requested<unknown> }, now: number): void {
  const state = stateOf(record, now)
  if (state === 'creating' || state === 'failed')
    throw new CofferError('unprocessable', `The ${noun} is not ready: ${state}.`)
}

/** The attributes of `requested` that describe why the build failed. */
export const buildErrorOutput = {
  'error_code?': text,
  'error_message?': text,
  'error_details?': { type: 'object', additionalProperties: true },
} as const

/** The error of a build is omitted until the build has ended. */
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
