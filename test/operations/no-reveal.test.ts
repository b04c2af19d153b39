import t from 'tap'
import { absent, concealValues, showTo } from '../../src/framework/no-reveal.js'
import { arrayOf, object, text, textMap } from '../../src/framework/output.js'
import { registry } from '../../src/operations/all.js'
import { tokenOutput } from '../../src/operations/token/token-attributes.js'

interface Parts {
  properties?: Readonly<Record<string, Parts & { type?: string; inNoReveal?: unknown }>>
  items?: Parts
}

const entry = object({
  id: text,
  'guess?': { ...text, inNoReveal: absent },
  values: { ...textMap, inNoReveal: concealValues },
})
const schema = object({ data: arrayOf(entry), 'key?': { ...text, isShownOnce: true } })
const answer = { data: [{ id: '1', guess: 'abc', values: { API: 'secret' } }] }

t.test('no-reveal mode changes an answer at any depth as the schema of the answer says', async (t) => {
  const shown = { data: [{ id: '1', values: { API: 'REDACTED' } }] }
  t.strictSame(showTo({ isNoReveal: true }, schema, answer), shown)
  t.equal(showTo({}, schema, answer), answer, 'other callers get the answer itself')
})

t.test('no-reveal mode refuses an operation whose answer has a secret that is shown only once', async (t) => {
  const give = () => showTo({ isNoReveal: true }, schema, { ...answer, key: 'k' })
  t.throws(give, { code: 'forbidden' })
  t.equal(showTo({}, schema, { ...answer, key: 'k' }).key, 'k')
})

t.test(
  'in no-reveal mode, each output with a fingerprint or a configuration hides this property',
  async (t) => {
    const names = ['fingerprint', 'configuration']
    const found = new Set<string>()
    const visit = (schema: Parts, operation: string): void => {
      if (schema.items !== undefined) visit(schema.items, operation)
      for (const [name, property] of Object.entries(schema.properties ?? {})) {
        visit(property, operation)
        // The configuration of a formula is a list of names and types, without values.
        if (!names.includes(name) || property.type === 'array') continue
        found.add(name)
        t.type(property.inNoReveal, 'function', `${name} of ${operation}`)
      }
    }
    for (const { name, output } of registry.operations) if (output !== undefined) visit(output as Parts, name)
    t.strictSame([...found].sort(), names.sort())
    t.ok(tokenOutput.properties.fingerprint.inNoReveal)
  },
)
