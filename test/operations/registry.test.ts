/**
 * Checks of operation declarations that the TypeScript compiler cannot make. The tests also check the values that are
 * derived from the schemas.
 */
import t from 'tap'
import { type ApplicationType, PERMISSIONS, permissionsOf } from '../../src/domain/access/permissions.js'
import { isControl } from '../../src/framework/declaration.js'
import { mayRunOffline } from '../../src/framework/operation.js'
import { itemOutput } from '../../src/framework/page.js'
import type { RegisteredOperation } from '../../src/framework/registry.js'
import { findUnknownName, readText, type Schema } from '../../src/framework/schema.js'
import { ALL_SETTINGS } from '../../src/global-flags.js'
import { registry } from '../../src/operations/all.js'
import { loadNounOf, loadOperation } from '../../src/operations/load.js'

/** Operations that have no route, but that an application with permissions may perform. */
const COMMANDS_ALONE = [
  'reactor arguments',
  'token find',
  'token import',
  'token generate',
  'app regenerate-with-grace',
  'log tail',
  'log reveals',
  'proxy call',
  'document append',
  'document discard',
]
const GLOBAL_FLAGS = ALL_SETTINGS.map(({ word }) => word)
const NAME = /^[a-z0-9]+(-[a-z0-9]+)*( [a-z0-9]+(-[a-z0-9]+)*)?( [a-z]+(-[a-z]+)*)$/

/**
 * Returns whether the schema for the name of a record allows only one line of text. A name must be one line, because
 * tables, prompts, mails and logs show it.
 */
function isLine(name: Schema | undefined): boolean {
  return name?.type !== 'string' || name.pattern !== undefined
}

function findFaults(definition: RegisteredOperation): string[] {
  const { endpoint, columns, examples } = definition
  const { name, access, http, cli, positionals, output = { type: 'object' }, input } = definition
  const types = http?.body?.types
  const parameters = endpoint?.parameters ?? []
  const { properties = {}, required = [] } = input
  const free = Object.keys(properties).filter((property) => !parameters.includes(property))
  const flags = free.map((each) => `--${properties[each]?.flag ?? each.replaceAll('_', '-')}`)
  const checks: Readonly<Record<string, boolean>> = {
    'its name is not "noun verb" or "noun group verb"': NAME.test(name),
    'an offline operation is for the owner': !mayRunOffline(definition) || access.owner !== undefined,
    'it has no example': examples.length > 0 || cli?.isInternal === true,
    'a name that it stores may have control characters':
      endpoint?.takesBody !== true || isLine(properties.name),
    'only PATCH and forms have another usual content type':
      [undefined, 'application/json'].includes(types?.[0]) ||
      endpoint?.method === 'PATCH' ||
      http?.body?.form !== undefined,
    'content types need a body': types === undefined || endpoint?.takesBody === true,
    'it has no route, and is not listed in COMMANDS_ALONE':
      endpoint !== undefined || access.owner !== undefined || COMMANDS_ALONE.includes(name),
    'an operation of the owner has a route of the API':
      access.owner === undefined || endpoint === undefined || isControl(definition),
    'the control plane is for the owner': !isControl(definition) || access.owner !== undefined,
    'a status needs a route': http?.status === undefined || endpoint !== undefined,
    'a path parameter is not a string of its input that is required or has a default': parameters.every(
      (parameter) =>
        properties[parameter]?.type === 'string' &&
        required.includes(parameter) !== 'default' in properties[parameter],
    ),
    'a query parameter has no type': Object.values(endpoint?.query ?? {}).every(({ type }) => type),
    'a positional is not in its input': positionals.every((each) => Object.hasOwn(properties, each)),
    'a property has the flag of a global one': !flags.some((flag) => GLOBAL_FLAGS.includes(flag)),
    'a column is not in its output': columns.every(
      (column) => findUnknownName(itemOutput(output as Schema), column) === undefined,
    ),
  }
  return [...Object.keys(checks).filter((fault) => !checks[fault]), ...findSchemaFaults(input, 'input')]
}

/** Returns the limits that a schema lacks, and the required properties that it does not declare. */
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

t.test('all declarations of operations are correct, and each has a unique name and route', async (t) => {
  const taken = new Set<string>()
  for (const operation of registry.operations) {
    const { name, cli: { form } = {}, endpoint, noun, group } = operation
    t.same(findFaults(operation), [], name)
    if (form !== undefined) t.ok(taken.has(form.command), `${name} is a form of an earlier command`)
    const { groups = {} } = registry.nouns.find((each) => each.name === noun) ?? {}
    t.ok(group === undefined || Object.hasOwn(groups, group), `${name} is in a group`)
    // Two paths that differ only in the names of their parameters match the same requests.
    const route = endpoint && `${endpoint.method} ${endpoint.path.replaceAll(/\{[^}]*\}/g, '{}')}`
    for (const each of [name, ...(route === undefined ? [] : [route])]) {
      t.notOk(taken.has(each), each)
      taken.add(each)
    }
  }
})

t.test(
  'an argument for a number is converted if its text is a number, and other text is left for validation',
  async (t) => {
    const integer = { type: 'integer' } as const
    const cases: [Schema, string, unknown][] = [
      [integer, '-3', -3],
      [{ type: 'number' }, '1.5', 1.5],
      [integer, '1e3', '1e3'],
      [integer, '99999999999999999999', 1e20],
      [integer, '9'.repeat(400), Number.MAX_VALUE],
      [{ ...integer, maximum: 100 }, '99999999999999999999', '99999999999999999999'],
    ]
    for (const [schema, text, value] of cases) t.equal(readText(schema, text), value, text.slice(0, 30))
  },
)

t.test(
  'each operation is found by its name, and a name that is not an operation finds nothing',
  async (t) => {
    for (const { name, noun, input } of registry.operations) {
      const own = registry.operations.filter((other) => other.noun === noun)
      t.same((await loadNounOf(name))?.operations, own, name)
      t.equal((await loadOperation(name))?.input, input)
    }
    for (const name of ['', 'token', 'token nothing', '../token get', 'constructor name'])
      t.equal(await loadNounOf(name), undefined, name)
  },
)

t.test(
  'each permission is listed for a type of applications, and an operation requires each permission with an effect',
  async (t) => {
    const types: ApplicationType[] = ['public', 'private', 'management']
    const listed = new Set(types.flatMap((type) => permissionsOf(type)))
    t.strictSame([...listed].sort(), Object.keys(PERMISSIONS).sort())
    const needed: string[] = registry.operations.flatMap(({ access }) => [...access.permissions])
    const working = types.flatMap((type) => permissionsOf(type, { withEffect: true }))
    t.strictSame([...new Set(working.filter((each) => !needed.includes(each)))], [])
  },
)
