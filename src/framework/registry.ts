/** All operations, refused at load where one would be wrong later. It knows what an operation says, not what it does. */
import { PERMISSIONS } from '../domain/permissions.js'
import { type AnyOperation, locateProperty, parseRoute } from './operation.js'
import type { ObjectSchema, Schema } from './schema.js'

const NAME = /^[a-z]+( [a-z]+(-[a-z]+)*)$/
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

export interface Registry {
  readonly operations: readonly AnyOperation[]
  /** The operation called `noun verb`. */
  find(name: string): AnyOperation | undefined
  /** Nouns in the order of their first operation. */
  readonly nouns: readonly string[]
}

/** @throws Error naming the operation and what is wrong: a fault of ours, seen at the first start. */
export function createRegistry(operations: readonly AnyOperation[]): Registry {
  const byName = new Map<string, AnyOperation>()
  const routes = new Set<string>()
  for (const definition of operations) {
    const faults = findFaults(definition)
    // Two paths that differ only in what they call their parameters answer the same requests.
    const route = definition.route.replaceAll(/\{[^}]*\}/g, '{}')
    if (byName.has(definition.name)) faults.push('its name is taken')
    if (routes.has(route)) faults.push('its route is taken')
    if (faults.length > 0) throw new Error(`Operation "${definition.name}": ${faults.join('; ')}`)
    byName.set(definition.name, definition)
    routes.add(route)
  }
  return {
    operations,
    find: (name) => byName.get(name),
    nouns: [...new Set(operations.map(({ name }) => name.split(' ')[0]!))],
  }
}

function findFaults(definition: AnyOperation): string[] {
  const { method, path, parameters } = parseRoute(definition.route)
  const input: ObjectSchema = definition.input
  const properties = input.properties ?? {}
  const faults: string[] = []
  if (!NAME.test(definition.name)) faults.push('its name is not "noun verb"')
  if (!METHODS.includes(method)) faults.push(`its method ${method} is unknown`)
  if (!path.startsWith('/') || path.endsWith('/'))
    faults.push('its path must start, and not end, with a slash')
  for (const parameter of parameters) {
    if (properties[parameter]?.type !== 'string')
      faults.push(`path parameter ${parameter} is no string of its input`)
    if (!input.required?.includes(parameter)) faults.push(`path parameter ${parameter} is not required`)
  }
  for (const permission of definition.permissions) {
    if (!Object.hasOwn(PERMISSIONS, permission)) faults.push(`permission ${permission} is unknown`)
  }
  for (const property of Object.keys(properties)) {
    const { type } = properties[property]!
    const isQuery = locateProperty(definition, property) === 'query'
    if (isQuery && type === undefined) faults.push(`query parameter ${property} has no type`)
  }
  if ((definition.run === undefined) === (definition.runDetached === undefined)) {
    faults.push('it needs one of run and runDetached')
  }
  if (definition.examples.length === 0) faults.push('it has no example')
  if (definition.contentType !== undefined && method !== 'PATCH')
    faults.push('only PATCH has a content type of its own')
  return [...faults, ...findSchemaFaults(input, 'input')]
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
  if (additionalProperties === undefined)
    faults.push(`${where} does not say whether it is a map, closed, or ignores the rest`)
  if (typeof additionalProperties === 'object') {
    if (schema.maxProperties === undefined) faults.push(`${where} is a map without maxProperties`)
    faults.push(...findSchemaFaults(additionalProperties, `${where}.*`))
  }
  const inner = Object.entries(properties).flatMap(([name, value]) =>
    findSchemaFaults(value, `${where}.${name}`),
  )
  return [...faults, ...inner]
}
