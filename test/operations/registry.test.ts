/** The declarations of operations: what the compiler cannot see of them, and what is made of their schemas. */
import t from 'tap'
import { itemOutput } from '../../src/framework/page.js'
import type { RegisteredOperation } from '../../src/framework/registry.js'
import { findUnknownName, readText, type Schema } from '../../src/framework/schema.js'
import { ALL_SETTINGS } from '../../src/global-flags.js'
import { registry } from '../../src/operations/all.js'
import { loadNounOf, loadOperation } from '../../src/operations/load.js'

const GLOBAL_FLAGS = ALL_SETTINGS.map(({ word }) => word)
const NAME = /^[a-z]+( [a-z]+)?( [a-z]+(-[a-z]+)*)$/

function findFaults({ endpoint, columns, examples, ...definition }: RegisteredOperation): string[] {
  const { name, audience, control, isInternal, relay, run, runDetached, runOffline } = definition
  const {
    positionals,
    success,
    contentType,
    alsoContentType,
    output = { type: 'object' },
    input,
  } = definition
  const parameters = endpoint?.parameters ?? []
  const { properties = {}, required = [] } = input
  const free = Object.keys(properties).filter((property) => !parameters.includes(property))
  const flags = free.map((each) => `--${properties[each]?.flag ?? each.replaceAll('_', '-')}`)
  const checks: Readonly<Record<string, boolean>> = {
    'its name is not "noun verb" or "noun group verb"': NAME.test(name),
    'it has no handler, or both run and runDetached':
      (run ?? runDetached ?? runOffline) !== undefined && (run === undefined || runDetached === undefined),
    'runOffline needs the audience owner': runOffline === undefined || audience === 'owner',
    'it has no example': examples.length > 0 || isInternal === true,
    'only PATCH has a content type of its own': contentType === undefined || endpoint?.method === 'PATCH',
    'a second content type needs a body': alsoContentType === undefined || endpoint?.takesBody === true,
    'it has neither route nor audience, or both':
      (endpoint === undefined) === (audience !== undefined) || control !== undefined,
    'the control plane is for the owner': control === undefined || audience === 'owner',
    'success needs a route': success === undefined || endpoint !== undefined,
    'relay needs the audience command': relay === undefined || audience === 'command',
    'a path parameter is no required string of its input': parameters.every(
      (parameter) => properties[parameter]?.type === 'string' && required.includes(parameter),
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

t.test('the declarations have no fault, and each has a name and a route of its own', async (t) => {
  const taken = new Set<string>()
  const declared = registry.nouns.flatMap(({ operations }) => operations)
  const ofOwner = declared.filter(({ route, audience }) => route === undefined && audience !== 'command')
  t.same(
    declared.filter(({ permissions }) => permissions === undefined),
    ofOwner,
    'all others say which permissions they take',
  )
  for (const operation of registry.operations) {
    const { name, form, endpoint, noun, group } = operation
    t.same(findFaults(operation), [], name)
    if (form !== undefined) t.ok(taken.has(form.command), `${name} is a form of a command before it`)
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

t.test('a number is read from text that spells one, else left for validation to refuse', async (t) => {
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
})

t.test('each operation is found by its noun alone, and no other word names a noun', async (t) => {
  for (const { name, noun, input } of registry.operations) {
    const own = registry.operations.filter((other) => other.noun === noun)
    t.same((await loadNounOf(name))?.operations, own, name)
    t.equal((await loadOperation(name))?.input, input)
  }
  for (const name of ['', 'token', 'token nothing', '../token get', 'constructor name'])
    t.equal(await loadNounOf(name), undefined, name)
})
