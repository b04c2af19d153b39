/** The faults of the declarations of operations. */

import type { AnyOperation } from '../../src/framework/operation.js'
import { itemOutput } from '../../src/framework/page.js'
import type { RegisteredOperation, Registry } from '../../src/framework/registry.js'
import { findUnknownName, type ObjectSchema, type Schema } from '../../src/framework/schema.js'
import { ALL_SETTINGS } from '../../src/global-flags.js'

const GLOBAL_FLAGS = ALL_SETTINGS.map(({ word }) => word)
const NAME = /^[a-z]+( [a-z]+)?( [a-z]+(-[a-z]+)*)$/
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

/** One line for each fault, which begins with the name of the operation. */
export function findAllFaults({ nouns, operations }: Registry): string[] {
  const names = new Set<string>()
  const routes = new Set<string>()
  const definitions = nouns.flatMap((noun) => noun.operations.map((definition) => ({ noun, definition })))
  return definitions.flatMap(({ noun: { name: noun, groups = {} }, definition }, at) => {
    const registered = operations[at]!
    const { name, group, form, endpoint } = registered
    const faults = findFaults(definition, registered)
    // Two paths that differ only in the names of their parameters match the same requests.
    const route = endpoint ? `${endpoint.method} ${endpoint.path.replaceAll(/\{[^}]*\}/g, '{}')}` : name
    if (form !== undefined && !(names.has(form.command) && form.command.startsWith(`${noun} `)))
      faults.push('there is no command before it that it could be a form of')
    if (registered.noun !== noun || (group !== undefined && !Object.hasOwn(groups, group)))
      faults.push('its noun has another name, or no such group')
    if (names.has(name) || routes.has(route)) faults.push('its name or route is taken')
    names.add(name)
    routes.add(route)
    return faults.map((fault) => `${name}: ${fault}`)
  })
}

function findFaults(
  definition: AnyOperation,
  { endpoint, columns, examples }: RegisteredOperation,
): string[] {
  const { name, audience, permissions, control, isInternal, relay, run, runDetached, runOffline } = definition
  const { positionals = [], success, contentType, alsoContentType, output = { type: 'object' } } = definition
  const input: ObjectSchema = definition.input
  const parameters = endpoint?.parameters ?? []
  const isOwners = endpoint === undefined ? audience === 'owner' : control !== undefined
  const { properties = {}, required = [] } = input
  const free = Object.keys(properties).filter((property) => !parameters.includes(property))
  const checks: Readonly<Record<string, boolean>> = {
    'its name is not "noun verb" or "noun group verb"': NAME.test(name),
    'it has both run and runDetached': run === undefined || runDetached === undefined,
    'it has no handler': (run ?? runDetached ?? runOffline) !== undefined,
    'runOffline needs the audience owner': runOffline === undefined || audience === 'owner',
    'it has no example': examples.length > 0 || isInternal === true,
    'only PATCH has a content type of its own': contentType === undefined || endpoint?.method === 'PATCH',
    'a second content type needs a body': alsoContentType === undefined || endpoint?.takesBody === true,
    'it needs a route or an audience': endpoint !== undefined || audience !== undefined,
    'an operation with an audience has no route':
      endpoint === undefined || control !== undefined || (audience === undefined && !isInternal),
    'the control plane is for the owner': control === undefined || audience === 'owner',
    'permissions are needed, but not by operations of the owner': (permissions === undefined) === isOwners,
    'success needs a route': success === undefined || endpoint !== undefined,
    'relay needs the audience command': relay === undefined || audience === 'command',
    'its method is unknown': endpoint === undefined || METHODS.includes(endpoint.method),
    'its path must start, and not end, with a slash':
      endpoint === undefined || /^\/.*[^/]$/.test(endpoint.path),
    'a path parameter is no required string of its input': parameters.every(
      (parameter) => properties[parameter]?.type === 'string' && required.includes(parameter),
    ),
    'a query parameter has no type': Object.values(endpoint?.query ?? {}).every(
      ({ type }) => type !== undefined,
    ),
    'a positional is not in its query or body': positionals.every((each) => free.includes(each)),
    'a property has the flag of a global one': free.every(
      (each) => !GLOBAL_FLAGS.includes(`--${properties[each]?.flag ?? each.replaceAll('_', '-')}`),
    ),
    'a column is not in its output': columns.every(
      (column) => findUnknownName(itemOutput(output as Schema), column) === undefined,
    ),
  }
  const faults = Object.keys(checks).filter((fault) => !checks[fault])
  return [...faults, ...findSchemaFaults(input, 'input')]
}

/** Limits that a schema lacks, and required properties that it does not have. */
function findSchemaFaults(schema: Schema, where: string): string[] {
  if (schema.type === 'array') {
    const bound = Number.isInteger(schema.maxItems) ? [] : [`${where} has no maxItems`]
    return [...bound, ...findSchemaFaults(schema.items, `${where}[]`)]
  }
  if (schema.type !== 'object') return []
  const { properties = {}, required = [], needsOneOf = [], additionalProperties, maxProperties } = schema
  const missing = [...required, ...needsOneOf].filter((name) => !Object.hasOwn(properties, name))
  const isMap = typeof additionalProperties === 'object'
  return [
    ...missing.map((name) => `${where} requires ${name}, which it does not have`),
    ...(additionalProperties === undefined ? [`${where} has no additionalProperties`] : []),
    ...(isMap && maxProperties === undefined ? [`${where} is a map without maxProperties`] : []),
    ...(isMap ? findSchemaFaults(additionalProperties, `${where}.*`) : []),
    ...Object.entries(properties).flatMap(([name, value]) => findSchemaFaults(value, `${where}.${name}`)),
  ]
}
