/** Filters of lists refuse values that no record can have. */
import t from 'tap'
import type { RegisteredOperation } from '../../src/framework/registry.js'
import type { Schema } from '../../src/framework/schema.js'
import { registry } from '../../src/operations/all.js'
import { testVault } from './home.js'

interface Filter {
  readonly command: string
  readonly flag: string
  readonly values: readonly string[]
}

const memberOf = (schema: Schema): Schema => (schema.type === 'array' ? schema.items : schema)

function knownValuesOf(schema: Schema): readonly string[] {
  const { suggestions = [], ...member } = memberOf(schema)
  return 'enum' in member && member.enum !== undefined ? member.enum : suggestions
}

/** Returns the filters that accept only known values. An operation that is not a list has no filters. */
function filtersOf({ name, input, positionals }: RegisteredOperation): Filter[] {
  const { properties = {} } = input
  const isList = 'page' in properties || 'start' in properties
  return Object.entries<Schema>(isList ? properties : {})
    .filter(([property]) => !positionals.includes(property))
    .map(([property, schema]) => ({
      command: name,
      flag: `--${(schema.flag ?? property).replaceAll('_', '-')}`,
      values: knownValuesOf(schema),
    }))
    .filter(({ values }) => values.length > 0)
}

testVault(
  'every filter with known values refuses another value and lists the known values',
  async (t, home) => {
    await home.createToken({ id: 'parent' })
    // Some operations are a second form of a command, and a flag of the command selects this form. The test skips these
    // operations.
    const isCommand = ({ cli }: RegisteredOperation) => cli?.form === undefined && !cli?.isInternal
    const filters = registry.operations.filter(isCommand).flatMap(filtersOf)
    t.ok(filters.length >= 8, `${filters.length} filters`)
    for (const { command, flag, values } of filters) {
      const args = command === 'token children' ? ['parent'] : []
      const [nearest = ''] = values
      const run = (value: string) => home.run([...command.split(' '), ...args, flag, value])
      const wrong = `${nearest}x`
      const { code, stdout, stderr } = await run(wrong)
      const about = `${command} ${flag} ${wrong}: ${stderr}`
      t.equal(code, 2, about)
      t.equal(stdout, '', about)
      t.ok(stderr.includes(values.join(', ')), about)
      t.ok(stderr.endsWith(`did you mean ${nearest}?\n`), about)
      for (const value of values.slice(0, 2))
        t.equal((await run(value)).code, 0, `${command} ${flag} ${value}`)
    }
  },
)

testVault('--types takes several types and checks each, and --type takes one type', async (t, home) => {
  const { stderr } = await home.run('token list --types card,tokn')
  t.match(stderr, /^error: --types must be one of token, card, .*, not "tokn"; did you mean token\?\n$/)
  t.equal((await home.run('token list --types card,token')).code, 0)
  t.match(await home.run('token list --type card,token'), { code: 2, stderr: 'not "card,token"' })
  t.match(await home.run('token list --type crad'), { code: 2, stderr: 'did you mean card?' })
  t.match(await home.run('token export --type crad'), { code: 2, stderr: 'did you mean card?' })
  t.match(await home.run('invite list --status pending'), { code: 2, stderr: 'did you mean PENDING?' })
})

t.test('a list that suggests values for a filter says whether other values are possible', async (t) => {
  for (const definition of registry.operations) {
    const { properties = {} } = definition.input
    if (!('page' in properties || 'start' in properties)) continue
    for (const [property, schema] of Object.entries<Schema>(properties)) {
      const { suggestions = [], closed } = memberOf(schema)
      t.equal(closed !== undefined, suggestions.length > 0, `${definition.name} ${property}`)
    }
  }
})
