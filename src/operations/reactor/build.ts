/** Builds the code of a reactor or proxy: links its dependencies, and finds out why the code cannot run. */
import { isObject } from '../../domain/json/json.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import {
  type BuildError,
  describeFindings,
  findListed,
  type Versions,
} from '../../domain/reactor/dependencies.js'
import { DEFAULT_IMAGE, isConfigurable, type RuntimeOptions } from '../../domain/reactor/runtime.js'
import { type Build, type Requested, stateOf } from '../../domain/reactor/state.js'
import { CofferError } from '../../errors.js'
import type { Session } from '../../framework/context.js'
import type { CheckTools } from '../../framework/declaration.js'
import { text } from '../../framework/output.js'
import type { LinkedPackage } from '../../framework/ports/linker.js'

type Runtimes = readonly (RuntimeOptions | undefined)[]

/** Returns how a build of code with these runtimes ends. */
export type FindBuild = (...runtimes: Runtimes) => Build

/**
 * Links the dependencies of an input. This happens before the unit of work that stores the input, because linking
 * takes seconds. Contract: the input is valid.
 */
export async function prepareBuild(tools: CheckTools, ...runtimes: readonly unknown[]): Promise<FindBuild> {
  const linker = await tools.linker?.()
  for (const runtime of runtimes) await linker?.link(readVersions(runtime))
  return (...built) => {
    const { provision } = tools
    const findings = built.flatMap((runtime) => linker?.find(dependenciesOf(runtime)) ?? [])
    return omitUndefined({
      delayMs: provision?.delayMs,
      error: provision?.error ?? describeFindings(findings),
    })
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
  const wanted = isDeclaring ? dependenciesOf(runtime) : findListed(code)
  if (Object.keys(wanted).length === 0) return []
  const linker = await findLinker()
  const { packages, findings } = await linker.load(wanted)
  const error = isDeclaring ? describeFindings(findings) : undefined
  if (error === undefined) return packages
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
