import { CofferError, validationError } from '../errors.js'
import { CONTROL_PATH } from '../framework/declaration.js'
import type { RegisteredRelay, Registry, RoutedOperation } from '../framework/registry.js'
import { type Area, readAreas } from './openapi/emulation.js'

export interface Match {
  operation: RoutedOperation
  /** @throws CofferError `validation` for a parameter that is not percent-encoded UTF-8 */
  parameters(): Record<string, string>
}

export interface RelayMatch {
  operation: RegisteredRelay
  /** The part of the request's path after the path of the operation, not decoded. */
  rest: string
}

/** Decoded. A segment that cannot be decoded is undefined, and matches only a parameter of a route. */
type Segments = readonly (string | undefined)[]

/** An area that is not emulated. `path`: the entry of `not_emulated` that matches the request. */
export interface LeftOut {
  area: string
  path: string
}

export type Router = ReturnType<typeof createRouter>

export function createRouter(registry: Registry) {
  const buckets = new Map<string, RoutedOperation[]>()
  const older = registry.routed.flatMap((operation) => {
    const path = operation.http?.olderPath
    if (path === undefined) return []
    return { ...operation, endpoint: { ...operation.endpoint, path, segments: path.split('/').slice(1) } }
  })
  for (const operation of [...registry.routed, ...older]) {
    const bucket = bucketOf(operation.endpoint.segments)
    buckets.set(bucket, [...(buckets.get(bucket) ?? []), operation].sort(compareFixedness))
  }
  const relays = registry.operations.flatMap((operation) =>
    operation.kind === 'relay' ? { operation, start: `${operation.relay.path}/` } : [],
  )
  let areas: Area[] | undefined
  const findAll = (segments: Segments) => {
    const bucket = buckets.get(bucketOf(segments)) ?? []
    return bucket.filter(({ endpoint }) => fits(endpoint.segments, segments))
  }
  const choose = (found: readonly RoutedOperation[], method: string) =>
    found.find(({ endpoint }) => endpoint.method === (method === 'HEAD' ? 'GET' : method))
  return {
    find: (method: string, path: string) => choose(findAll(splitPath(path)), method),

    findRelay(path: string): RelayMatch | undefined {
      const found = relays.find(
        ({ operation, start }) => path.startsWith(start) || path === operation.relay.path,
      )
      return found && { operation: found.operation, rest: path.slice(found.operation.relay.path.length) }
    },

    /** Returns undefined if the path has an operation or belongs to no area. */
    findLeftOut(path: string): LeftOut | undefined {
      const segments = splitPath(path)
      if (findAll(segments).length > 0) return undefined
      areas ??= readAreas()
      return findLeftOut(segments, areas)
    },

    /**
     * If the path is known but not the method, `allow` is a comma-separated list of methods.
     * @throws CofferError `not_found`, `not_emulated`
     */
    match(method: string, path: string): Match | { allow: string } {
      const segments = splitPath(path)
      const found = findAll(segments)
      if (found.length === 0) {
        areas ??= readAreas()
        throw describeUnknown(segments, areas)
      }
      const operation = choose(found, method)
      if (operation !== undefined)
        return { operation, parameters: () => readParameters(operation.endpoint.segments, segments) }
      const methods = found.flatMap(({ endpoint }) =>
        endpoint.method === 'GET' ? ['GET', 'HEAD'] : endpoint.method,
      )
      return { allow: [...new Set(methods)].sort().join(', ') }
    },
  }
}

/** Also used if the caller must not learn whether there is a control plane. */
export function noControl(): CofferError {
  const advice = 'Start one for tests: coffer serve --ephemeral, or --test-controls for a vault on disk.'
  return new CofferError('not_found', `The control plane is not enabled. ${advice}`)
}

function describeUnknown(segments: Segments, areas: readonly Area[]): CofferError {
  if (`/${segments[0]}` === CONTROL_PATH) return noControl()
  const leftOut = findLeftOut(segments, areas)
  return leftOut === undefined
    ? new CofferError('not_found', 'There is nothing at this path.')
    : new CofferError('not_emulated', `${leftOut.area}: this server does not emulate this area.`)
}

function findLeftOut(segments: Segments, areas: readonly Area[]): LeftOut | undefined {
  const isIn = (path: string) =>
    path.split('/').every((part, at) => at === 0 || part === '{}' || part === segments[at - 1])
  for (const { area, not_emulated = [] } of areas) {
    const path = not_emulated.find(isIn)
    if (path !== undefined) return { area, path }
  }
  return undefined
}

function bucketOf(segments: Segments): string {
  return `${segments.length}/${segments[0]}`
}

/** Sorts fixed segments before parameters, so that a word such as `search` is not matched as an id. */
function compareFixedness(a: RoutedOperation, b: RoutedOperation): number {
  const rank = ({ endpoint }: RoutedOperation) =>
    endpoint.segments.map((each) => (isParameter(each) ? '1' : '0')).join('')
  return rank(a) < rank(b) ? -1 : 1
}

function isParameter(segment: string): boolean {
  return segment.startsWith('{')
}

/** An empty segment matches nothing, so that a double slash never counts as an empty id. */
function fits(pattern: readonly string[], segments: Segments): boolean {
  return pattern.every((each, at) => (isParameter(each) ? segments[at] !== '' : each === segments[at]))
}

function readParameters(pattern: readonly string[], segments: Segments): Record<string, string> {
  const parameters: Record<string, string> = {}
  for (const [at, each] of pattern.entries()) {
    const segment = segments[at]
    if (segment === undefined)
      throw validationError('The path is not percent-encoded UTF-8. Encode ids with % and two hex digits.')
    if (isParameter(each)) parameters[each.slice(1, -1)] = segment
  }
  return parameters
}

/** Splits the path before decoding, so that an encoded slash stays inside its segment. Ignores one slash at the end. */
function splitPath(path: string): Segments {
  const end = path.length > 1 && path.endsWith('/') ? path.length - 1 : path.length
  const segments = path.slice(1, end).split('/')
  return /[^\x21-\x24\x26-\x7e]/.test(path) ? segments.map(decodeSegment) : segments
}

function decodeSegment(segment: string): string | undefined {
  try {
    return /^[\x21-\x7e]*$/.test(segment) ? decodeURIComponent(segment) : undefined
  } catch {
    return undefined
  }
}
