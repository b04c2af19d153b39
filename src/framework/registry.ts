/** The registry of operations, and what their declarations must fulfil. */
import { PERMISSIONS, type Permission } from '../domain/access/permissions.js'
import { type AnyOperation, CONTROL_PATH, successOf } from './operation.js'
import { itemOutput } from './page.js'
import { findUnknownName, type ObjectSchema, type Schema } from './schema.js'

const NAME = /^[a-z]+( [a-z]+)?( [a-z]+(-[a-z]+)*)$/
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

/** Operations on one kind of thing; the noun is the first word of their names. */
export interface Noun {
  readonly name: string
  readonly summary: string
  /** Summaries of the groups of its operations with a name of three words, by the second word. */
  readonly groups?: Readonly<Record<string, string>>
  readonly operations: readonly AnyOperation[]
}

export interface Endpoint {
  readonly method: string
  /** The template, such as `/tokens/{id}`; unlike a request's path it contains nothing secret. */
  readonly path: string
  readonly segments: readonly string[]
  /** The input properties in the path, in order. */
  readonly parameters: readonly string[]
  readonly success: number
  /** The input properties in the query. */
  readonly query: Readonly<Record<string, Schema>>
  /** The input properties in the body. */
  readonly body: Readonly<Record<string, Schema>>
  readonly takesBody: boolean
}

/** A declaration with what is derived from its name and route. */
export interface RegisteredOperation extends AnyOperation {
  readonly noun: string
  /** The second word of a name of three words. */
  readonly group?: string
  readonly verb: string
  readonly permissions: readonly Permission[]
  readonly columns: readonly string[]
  /** Properties that are positional arguments, in order: a route's parameters, then others that are flags too. */
  readonly positionals: readonly string[]
  /** Absent without a route. */
  readonly endpoint?: Endpoint
}

export interface RoutedOperation extends RegisteredOperation {
  readonly endpoint: Endpoint
}

export interface Registry {
  readonly nouns: readonly Noun[]
  readonly operations: readonly RegisteredOperation[]
  readonly routed: readonly RoutedOperation[]
  /** Those of the control plane, which are not in `routed`. */
  readonly controls: readonly RoutedOperation[]
  find(name: string): RegisteredOperation | undefined
}

/** `isChecked`: by the build. @throws Error naming the operation and the faults of its declaration */
export function createRegistry(nouns: readonly Noun[], { isChecked = false } = {}): Registry {
  const byName = new Map<string, RegisteredOperation>()
  const routes = new Set<string>()
  for (const { name: noun, groups = {}, operations } of nouns) {
    for (const definition of operations) {
      const registered = register(definition)
      const { name, endpoint } = registered
      const faults = isChecked ? [] : findFaults(definition, registered)
      // Two paths that differ only in the names of their parameters match the same requests.
      const route = endpoint && `${endpoint.method} ${endpoint.path.replaceAll(/\{[^}]*\}/g, '{}')}`
      const isForm = ({ command }: NonNullable<AnyOperation['form']>) => byName.get(command)?.noun === noun
      if (registered.form !== undefined && !isForm(registered.form))
        faults.push('there is no command before it that it could be a form of')
      if (registered.noun !== noun) faults.push(`it is listed under ${noun}`)
      if (registered.group !== undefined && !Object.hasOwn(groups, registered.group))
        faults.push(`its noun has no group ${registered.group}`)
      if (byName.has(name)) faults.push('its name is taken')
      if (route !== undefined && routes.has(route)) faults.push('its route is taken')
      if (faults.length > 0) throw new Error(`Operation "${name}": ${faults.join('; ')}`)
      byName.set(name, registered)
      if (route !== undefined) routes.add(route)
    }
  }
  const operations = [...byName.values()]
  const routed = operations.filter(isRouted)
  return {
    nouns,
    operations,
    routed: routed.filter(({ control }) => control === undefined),
    controls: routed.filter(({ control }) => control !== undefined),
    find: (name) => byName.get(name),
  }
}

function isRouted(operation: RegisteredOperation): operation is RoutedOperation {
  return operation.endpoint !== undefined
}

function register(definition: AnyOperation): RegisteredOperation {
  const { name, control, permissions = [], positionals = [], output } = definition
  const route = definition.route ?? control?.replace(' ', ` ${CONTROL_PATH}`)
  const [noun = '', ...rest] = name.split(' ')
  const verb = rest.pop() ?? ''
  const { columns = itemOutput(output ?? {}).columns ?? [] } = definition
  const group = rest.length === 0 ? {} : { group: rest.join(' ') }
  const registered = { ...definition, noun, ...group, verb, permissions, positionals, columns }
  if (route === undefined) return registered
  const [method = '', path = ''] = route.split(' ')
  const parameters = [...path.matchAll(/\{([a-z_]+)\}/g)].map((match) => match[1]!)
  const { properties = {} } = definition.input as ObjectSchema
  const others = Object.fromEntries(Object.entries(properties).filter(([key]) => !parameters.includes(key)))
  const isInQuery = method === 'GET' || method === 'DELETE'
  const endpoint = {
    method,
    path,
    segments: path.split('/').slice(1),
    parameters,
    success: successOf(definition),
    query: isInQuery ? others : {},
    body: isInQuery ? {} : others,
    takesBody: !isInQuery && Object.keys(others).length > 0,
  }
  return { ...registered, positionals: [...parameters, ...positionals], endpoint }
}

function findFaults(definition: AnyOperation, operation: RegisteredOperation): string[] {
  const { endpoint } = operation
  const faults =
    endpoint === undefined ? findCommandFaults(definition) : findRouteFaults(definition, endpoint)
  if (!NAME.test(operation.name)) faults.push('its name is not "noun verb" or "noun group verb"')
  const { run, runDetached, runOffline, audience } = operation
  if (run !== undefined && runDetached !== undefined) faults.push('it has both run and runDetached')
  if ((run ?? runDetached ?? runOffline) === undefined) faults.push('it has no handler')
  if (runOffline !== undefined && audience !== 'owner') faults.push('runOffline needs the audience owner')
  if (operation.examples.length === 0 && operation.isInternal !== true) faults.push('it has no example')
  if (operation.contentType !== undefined && endpoint?.method !== 'PATCH')
    faults.push('only PATCH has a content type of its own')
  if (operation.alsoContentType !== undefined && endpoint?.takesBody !== true)
    faults.push('a second content type needs a body')
  const { columns, output = { type: 'object', additionalProperties: false } } = operation
  for (const column of columns) {
    if (findUnknownName(itemOutput(output), column) !== undefined)
      faults.push(`column ${column} is not in its output`)
  }
  return [...faults, ...findSchemaFaults(operation.input, 'input')]
}

function findCommandFaults(definition: AnyOperation): string[] {
  const { audience, permissions, success, relay, positionals = [], input } = definition
  const faults: string[] = []
  if (audience === undefined) faults.push('it needs a route or an audience')
  if ((permissions === undefined) === (audience === 'command'))
    faults.push('permissions are needed with every audience but owner, and with no other')
  if (success !== undefined) faults.push('success needs a route')
  if (relay !== undefined && audience !== 'command') faults.push('relay needs the audience command')
  for (const positional of positionals) {
    if (!Object.hasOwn(input.properties ?? {}, positional))
      faults.push(`positional ${positional} is not in its input`)
  }
  return faults
}

function findRouteFaults(definition: AnyOperation, { method, path, parameters, query }: Endpoint): string[] {
  const { audience, isInternal, permissions, positionals } = definition
  const input: ObjectSchema = definition.input
  const faults: string[] = []
  const isControl = definition.control !== undefined
  if ((audience !== undefined || isInternal) && !isControl)
    faults.push('an operation with an audience has no route')
  if (isControl && audience !== 'owner') faults.push('the control plane is for the owner')
  if (permissions === undefined && !isControl) faults.push('a route needs permissions')
  for (const positional of positionals ?? []) {
    if (parameters.includes(positional) || !Object.hasOwn(input.properties ?? {}, positional))
      faults.push(`positional ${positional} is not in its query or body`)
  }
  if (!METHODS.includes(method)) faults.push(`its method ${method} is unknown`)
  if (!path.startsWith('/') || path.endsWith('/'))
    faults.push('its path must start, and not end, with a slash')
  for (const parameter of parameters) {
    if (input.properties?.[parameter]?.type !== 'string')
      faults.push(`path parameter ${parameter} is no string of its input`)
    if (!input.required?.includes(parameter)) faults.push(`path parameter ${parameter} is not required`)
  }
  for (const permission of permissions ?? []) {
    if (!Object.hasOwn(PERMISSIONS, permission)) faults.push(`permission ${permission} is unknown`)
  }
  for (const [property, { type }] of Object.entries(query)) {
    if (type === undefined) faults.push(`query parameter ${property} has no type`)
  }
  return faults
}

function findSchemaFaults(schema: Schema, where: string): string[] {
  if (schema.type === 'array') {
    const bound = Number.isInteger(schema.maxItems) ? [] : [`${where} has no maxItems`]
    return [...bound, ...findSchemaFaults(schema.items, `${where}[]`)]
  }
  if (schema.type !== 'object') return []
  const { properties = {}, required = [], needsOneOf = [], additionalProperties } = schema
  const faults = [...required, ...needsOneOf]
    .filter((name) => !Object.hasOwn(properties, name))
    .map((name) => `${where} requires ${name}, which it does not have`)
  if (additionalProperties === undefined) faults.push(`${where} has no additionalProperties`)
  if (typeof additionalProperties === 'object') {
    if (schema.maxProperties === undefined) faults.push(`${where} is a map without maxProperties`)
    faults.push(...findSchemaFaults(additionalProperties, `${where}.*`))
  }
  const inner = Object.entries(properties).flatMap(([name, value]) =>
    findSchemaFaults(value, `${where}.${name}`),
  )
  return [...faults, ...inner]
}
