import t from 'tap'
import { type AnyOperation, operation } from '../../src/framework/operation.js'
import { count, object, text } from '../../src/framework/output.js'
import { createRegistry } from '../../src/framework/registry.js'
import { readText, type Schema, toJsonSchema } from '../../src/framework/schema.js'
import { describeFailures, validateInput } from '../../src/framework/validate.js'
import { registry } from '../../src/operations/all.js'
import { loadNounOf, loadOperation } from '../../src/operations/load.js'
import { findAllFaults } from './declarations.js'

const good = operation({
  name: 'thing get',
  summary: 'Get a thing.',
  permissions: ['token:read'],
  route: 'GET /things/{id}',
  input: {
    type: 'object',
    properties: { id: { type: 'string' }, size: { type: 'integer' } },
    required: ['id'],
    additionalProperties: true,
  },
  output: object({ id: text, 'size?': count }),
  columns: ['id'],
  examples: ['coffer thing get a'],
  run: async (_, input) => input,
})

const createThings = (...operations: AnyOperation[]) =>
  createRegistry([{ name: 'thing', summary: 'Things', operations }])
const broken = (change: object): AnyOperation => ({ ...good, ...change }) as AnyOperation

t.test('a registry finds operations by name and lists their nouns', async (t) => {
  const things = createThings(good)
  t.match(things.find('thing get'), {
    noun: 'thing',
    verb: 'get',
    positionals: ['id'],
    endpoint: { method: 'GET', path: '/things/{id}', query: { size: { type: 'integer' } }, body: {} },
  })
  t.equal(things.find('thing put'), undefined)
  t.same(
    things.nouns.map(({ name }) => name),
    ['thing'],
  )
})

t.test('the declarations of the product have no fault', async (t) => {
  t.same(findAllFaults(registry), [])
})

const owner = { audience: 'owner', route: undefined, permissions: undefined, success: undefined }

t.test('an operation of the owner has no place in HTTP', async (t) => {
  const things = createThings(good, broken({ ...owner, name: 'thing check', positionals: ['id'] }))
  t.match(things.find('thing check'), { positionals: ['id'], permissions: [], endpoint: undefined })
  t.same(
    things.routed.map(({ name }) => name),
    ['thing get'],
  )
})

t.test('faults of a declaration are found', async (t) => {
  const id = { type: 'string' }
  const object = (properties: object, rest: object = {}) => ({
    input: { ...good.input, properties: { id, ...properties }, required: ['id'], ...rest },
  })
  const map = { type: 'object', additionalProperties: { type: 'string' } }
  const array = { type: 'array', items: { type: 'string' } }
  const nested = { type: 'array', maxItems: 1, items: { type: 'object' } }
  const withKey = { ...good.input, properties: { key: id }, required: ['key'] }
  const faults: [string, object, RegExp][] = [
    ['a name of one word', { name: 'thing' }, /not "noun verb"/],
    ['an upper-case name', { name: 'Thing get' }, /not "noun verb"/],
    ['a name of four words', { name: 'thing part piece get' }, /not "noun verb"/],
    ['a group that is not declared', { name: 'thing part get' }, /no such group/],
    ['a form of no command', { form: { command: 'thing put', flag: 'x' } }, /form of/],
    ['an unknown method', { route: 'FETCH /things/{id}' }, /method is unknown/],
    ['a trailing slash', { route: 'GET /things/{id}/' }, /slash/],
    ['a parameter that is not in the input', { route: 'GET /things/{other}' }, /parameter is no required/],
    ['a path parameter that is optional', object({}, { required: [] }), /path parameter is no required/],
    ['a query parameter of any type', object({ what: {} }), /query parameter has no type/],
    ['an object neither open nor closed', object({ o: { type: 'object' } }), /o has no additionalProperties/],
    ['a map without bound', object({ o: map }), /maxProperties/],
    ['an array without bound', object({ a: array }), /input.a has no maxItems/],
    ['a required property that is not there', object({}, { required: ['id', 'ghost'] }), /requires ghost/],
    ['one of what is not there', object({}, { needsOneOf: ['ghost'] }), /requires ghost/],
    ['a nested fault', object({ a: nested }), /input.a\[\] has no additionalProperties/],
    ['a column that the output does not have', { columns: ['id.name'] }, /column is not/],
    ['no example', { examples: [] }, /no example/],
    ['a noun that is not declared', { name: 'other get' }, /its noun has another name/],
    ['no route, for everybody', { route: undefined }, /needs a route or an audience/],
    ['permissions for the owner', { ...owner, permissions: [] }, /permissions are needed/],
    ['no permissions for others', { ...owner, audience: 'command' }, /permissions are needed/],
    ['a status without a route', { ...owner, success: 200 }, /success needs a route/],
    ['no handler', { run: undefined }, /no handler/],
    ['two handlers', { runDetached: async () => undefined }, /both run and runDetached/],
    ['an open command without a vault', { runOffline: async () => undefined }, /needs the audience owner/],
    ['a word that is not in the input', { ...owner, positionals: ['ghost'] }, /positional is not/],
    ['a route for the owner alone', { audience: 'owner' }, /an audience has no route/],
    ['a route without permissions', { permissions: undefined }, /permissions are needed/],
    ['a word that is in the path', { positionals: ['id'] }, /positional is not in its query or body/],
    ['a flag that is global', object({ color: id }), /flag of a global one/],
    ['a global flag by its own name', object({ c: { ...id, flag: 'vault' } }), /flag of a global one/],
    ['a second content type on GET', { alsoContentType: 'application/x' }, /needs a body/],
    ['a content type on GET', { contentType: 'application/x' }, /only PATCH/],
  ]
  for (const [name, change, message] of faults)
    t.match(findAllFaults(createThings(broken(change))).join(), message, name)
  t.same(findAllFaults(createThings(good)), [])
  t.same(findAllFaults(createThings(good, broken({ route: 'GET /others/{id}' }))), [
    'thing get: its name or route is taken',
  ])
  const sameRoute = broken({ name: 'thing find', route: 'GET /things/{key}', input: withKey })
  t.match(findAllFaults(createThings(good, sameRoute)).join(), /name or route is taken/)
})

t.test('every operation has a compiled validator', async (t) => {
  for (const { name } of registry.operations) {
    try {
      validateInput({ name }, {})
    } catch (error) {
      t.match(error, { code: 'validation' }, name)
    }
  }
  t.throws(() => validateInput({ name: 'no such' }, {}), { code: 'internal' })
})

t.test('a schema becomes JSON Schema without our notes', async (t) => {
  const schema = {
    type: 'object',
    properties: {
      a: { type: 'string', nullable: true, sensitive: true, flag: 'x' },
      b: { type: 'array', items: { nullable: true }, maxItems: 3 },
      c: { type: 'object', additionalProperties: { type: 'number', nullable: true }, maxProperties: 2 },
    },
    required: ['a'],
    needsOneOf: ['b', 'c'],
    additionalProperties: false,
  } as const
  t.same(toJsonSchema(schema), {
    type: 'object',
    properties: {
      a: { type: ['string', 'null'] },
      b: { type: 'array', items: {}, maxItems: 3 },
      c: { type: 'object', additionalProperties: { type: ['number', 'null'] }, maxProperties: 2 },
    },
    required: ['a'],
    additionalProperties: false,
  })
})

t.test(
  'text becomes the value that the schema asks for, or stays text for validation to refuse',
  async (t) => {
    const integer = { type: 'integer' } as const
    const boolean = { type: 'boolean' } as const
    const cases: [Schema, string, unknown][] = [
      [integer, '12', 12],
      [integer, '-3', -3],
      [{ type: 'number' }, '1.5', 1.5],
      [integer, '12x', '12x'],
      [integer, '1e3', '1e3'],
      [integer, '99999999999999999999', 1e20],
      [integer, '9'.repeat(400), Number.MAX_VALUE],
      [{ ...integer, maximum: 100 }, '99999999999999999999', '99999999999999999999'],
      [boolean, 'true', true],
      [boolean, 'false', false],
      [boolean, 'yes', 'yes'],
      [{ type: 'string' }, '12', '12'],
    ]
    for (const [schema, text, value] of cases) t.equal(readText(schema, text), value, text.slice(0, 30))
  },
)

t.test('failures become messages per property, at the path the caller wrote', async (t) => {
  const failure = (keyword: string, instancePath: string, params: object) =>
    ({ keyword, instancePath, params, schemaPath: '' }) as Parameters<typeof describeFailures>[0][number]
  const input = { containers: [1], rules: [{}, { priority: 0 }], metadata: { 7: 1 } }
  const failures = [
    failure('required', '', { missingProperty: 'type' }),
    failure('type', '/containers/0', { type: 'string' }),
    failure('type', '/containers/0', { type: ['array', 'null'] }),
    failure('minimum', '/rules/1/priority', { limit: 1 }),
    failure('additionalProperties', '/settings', { additionalProperty: 'a/b' }),
    failure('maxLength', '/a~1b', { limit: 200 }),
    failure('minLength', '/name', { limit: 1 }),
    failure('enum', '/type', { allowedValues: ['a', 'b'] }),
    failure('format', '/uuid', { format: 'uuid' }),
    failure('maxProperties', '/metadata', { limit: 50 }),
    failure('type', '/metadata/7', { type: 'string' }),
    failure('novel', '/x', {}),
  ]
  t.same(describeFailures(failures, input), {
    type: ['is required', 'must be one of a, b'],
    'containers[0]': ['must be a string', 'must be an array or null'],
    'rules[1].priority': ['must be at least 1'],
    'settings.a/b': ['is not known here'],
    'a/b': ['must have at most 200 characters'],
    name: ['must have at least 1 character'],
    uuid: ['must be a UUID'],
    metadata: ['must have at most 50 entries'],
    'metadata.7': ['must be a string'],
    x: ['is not valid'],
  })
})

t.test('each operation is found by its noun alone, and no other word names a noun', async (t) => {
  for (const { name, noun } of registry.operations) {
    const own = registry.operations.filter((other) => other.noun === noun)
    t.same((await loadNounOf(name))?.operations, own, name)
    t.equal((await loadOperation(name))?.input, registry.find(name)?.input)
  }
  for (const name of [
    '',
    'token',
    'token nothing',
    'nothing get',
    '../token get',
    'constructor name',
    'toString',
  ])
    t.equal(await loadNounOf(name), undefined, name)
})
