/** The short form of access rules: parsing, errors, and printing. A printed rule is parsed to the same rule. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import * as fc from 'fast-check'
import t from 'tap'
import { display } from '../../src/cli/output/display.js'
import { CONDITION_ATTRIBUTES, CONDITION_OPERATORS, type Rule } from '../../src/domain/access/access.js'
import { PERMISSIONS, type Permission, TRANSFORMS } from '../../src/domain/access/permissions.js'
import { formatRule, parseRules } from '../../src/domain/access/rule-text.js'

const MASKED = { transform: 'mask', permissions: ['token:read'] } as const

const condition = (attribute: string, operator: string, value: string) => ({ attribute, operator, value })

t.test('a rule consists of a container, a transform and permissions', (t) => {
  for (const [text, rules] of [
    ['/pci/ mask token:read', [{ priority: 1, container: '/pci/', ...MASKED }]],
    ['  /   mask\ttoken:read  ', [{ priority: 1, container: '/', ...MASKED }]],
    ['5: / mask token:read', [{ priority: 5, container: '/', ...MASKED }]],
    ['5:/ mask token:read', [{ priority: 5, container: '/', ...MASKED }]],
    [
      '/a/ reveal token:read, token:search token:use',
      [
        {
          ...{ priority: 1, container: '/a/', transform: 'reveal' },
          permissions: ['token:read', 'token:search', 'token:use'],
        },
      ],
    ],
    [
      '7: /a/, /b/c/ mask token:read # both',
      [
        { priority: 7, container: '/a/', ...MASKED, description: 'both' },
        { priority: 8, container: '/b/c/', ...MASKED, description: 'both' },
      ],
    ],
    ['/ mask token:read # a # b', [{ priority: 1, container: '/', ...MASKED, description: 'a # b' }]],
    ['/ mask token:read #', [{ priority: 1, container: '/', ...MASKED, description: '' }]],
    [
      '/a/ mask token:read\n\n/b/ mask token:read\n',
      [
        { priority: 1, container: '/a/', ...MASKED },
        { priority: 2, container: '/b/', ...MASKED },
      ],
    ],
    [
      'id=card-1 mask token:read',
      [{ priority: 1, conditions: [condition('id', 'equals', 'card-1')], ...MASKED }],
    ],
    [
      'id=card-* and container=/pci/* mask token:read',
      [
        {
          priority: 1,
          conditions: [
            condition('id', 'starts_with', 'card-'),
            condition('container', 'starts_with', '/pci/'),
          ],
          ...MASKED,
        },
      ],
    ],
    [
      'id="a b, \\"*"* and id="*" mask token:read',
      [
        {
          priority: 1,
          conditions: [condition('id', 'starts_with', 'a b, "*'), condition('id', 'equals', '*')],
          ...MASKED,
        },
      ],
    ],
    [
      'id=a=b#c mask token:read',
      [{ priority: 1, conditions: [condition('id', 'equals', 'a=b#c')], ...MASKED }],
    ],
  ] as const)
    t.same(parseRules(text), rules, text)
  t.end()
})

t.test('rules without a number are numbered in their order', (t) => {
  const priorities = (text: string, before: unknown[] = []) =>
    parseRules(text, before).map(({ priority }) => priority)
  t.same(priorities('/a/ mask token:read\n9: /b/ mask token:read\n/c/,/d/ mask token:read'), [1, 9, 10, 11])
  t.same(priorities('/a/ mask token:read', [{ priority: 3 }, { priority: 2 }]), [3])
  t.same(priorities('/a/ mask token:read', [{ priority: 'x' }]), [1])
  t.same(priorities('/a/ mask token:read', [undefined]), [1])
  t.end()
})

const literally = (text: string) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')

t.test(
  'the error for an invalid rule names the wrong part of the rule and says what to write instead',
  (t) => {
    for (const [text, message] of [
      ['', 'is empty. Write a rule such as: /pci/ mask token:read'],
      ['/pci mask token:read', '"/pci" is not a container; did you mean /pci/?'],
      ['/pci/high mask token:read', '"/pci/high" is not a container; did you mean /pci/high/?'],
      ['/a/,b mask token:read', '"b" is not a container; did you mean /b/?'],
      ['/a b/ mask token:read', '"/a" is not a container; did you mean /a/?'],
      ['/ä/ mask token:read', /^.*"\/ä\/" is not a container\. It begins and ends with "\/"/],
      ['pci mask token:read', '"pci" is neither a container nor a condition; did you mean /pci/?'],
      ['token:read', /neither a container nor a condition, such as \/pci\/ or id=card-1$/],
      ['mask token:read', /the container is missing\. Begin with one, or with \/ for all/],
      ['3:', /the container is missing/],
      ['/pci/', /the transform is missing\. One of redact, mask, reveal follows the container/],
      ['/pci/ # mask', /the transform is missing\. One/],
      ['/pci/ token:read', /the transform is missing before "token:read"/],
      ['/pci/ maks token:read', '"maks" is not a transform; did you mean mask?'],
      ['/pci/ zzz token:read', /"zzz" is not a transform\. One of redact, mask, reveal follows/],
      [
        '/pci/ mask',
        'permissions are missing after "mask". Write permissions such as token:read,token:search',
      ],
      ['/pci/ mask # none', /permissions are missing after "mask"/],
      ['/pci/ mask token:raed', '"token:raed" is not a permission; did you mean token:read?'],
      ['/pci/ mask token:read,zzz', '"zzz" is not a permission. List them: coffer app permissions'],
      ['idd=x mask token:read', '"idd" is not an attribute of conditions; did you mean id?'],
      ['type=card mask token:read', /"type" is not an attribute .* Conditions are on id or container$/],
      ['id= mask token:read', '"id=" has no value. Write a value such as id=card-1'],
      ['id=* mask token:read', '"id=*" has no value. Write a value such as id=card-1'],
      ['id=a*b mask token:read', 'the value of "id=a*b" needs quotes: id="a*b"'],
      ['id=a,b* mask token:read', 'the value of "id=a,b*" needs quotes: id="a,b"*'],
      ['id=a container=/x/ mask token:read', 'write "and" between two conditions: and container=…'],
      ['id=a and mask token:read', /the container is missing/],
      ['id="\\x" mask token:read', '"\\x" is not a JSON string.'],
    ] as const)
      t.throws(
        () => parseRules(text),
        {
          code: 'usage',
          message:
            typeof message === 'string' && text !== '' ? new RegExp(`^.*: ${literally(message)}$`) : message,
        },
        text,
      )
    t.throws(() => parseRules('/a/ mask token:read\n/b/ maks token:read'), /^'\/b\/ maks token:read': /)
    t.end()
  },
)

const anyText = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom('and', '*', '"', '#', '/'),
)
const path = fc
  .array(fc.stringMatching(/^[A-Za-z0-9_-]{1,8}$/), { maxLength: 3 })
  .map((segments) => `/${segments.map((segment) => `${segment}/`).join('')}`)
const scope = fc.oneof(
  path.map((container) => ({ container })),
  fc
    .array(
      fc.record(
        {
          attribute: fc.constantFrom(...CONDITION_ATTRIBUTES),
          operator: fc.constantFrom(...CONDITION_OPERATORS),
          value: anyText,
        },
        { noNullPrototype: true },
      ),
      { minLength: 1, maxLength: 4 },
    )
    .map((conditions) => ({ conditions })),
)
const rule = fc
  .tuple(
    scope,
    fc.record(
      {
        priority: fc.integer({ min: 1, max: 1_000_000 }),
        transform: fc.constantFrom(...TRANSFORMS),
        permissions: fc.uniqueArray(fc.constantFrom(...(Object.keys(PERMISSIONS) as Permission[])), {
          minLength: 1,
          maxLength: 5,
        }),
        description: anyText,
      },
      { requiredKeys: ['priority', 'transform', 'permissions'] },
    ),
  )
  .map(([where, rest]): Rule => ({ ...where, ...rest }))

t.test('a printed rule is parsed to the same rule', async (t) => {
  await fc.assert(
    fc.property(rule, (rule) => {
      const text = formatRule(rule)
      assert.deepEqual(parseRules(text), [rule], text)
      assert.equal(display(text), text, 'no character of the rule is escaped')
    }),
    { numRuns: 500 },
  )
  t.same(
    formatRule({ priority: 1, transform: 'mask', permissions: ['token:read'] }),
    '{"priority":1,"transform":"mask","permissions":["token:read"]}',
    'a rule that has no short form is printed as JSON',
  )
})

t.test(
  'the help about rules describes every transform, attribute and operator, and its examples are parsed correctly',
  (t) => {
    const help = readFileSync(new URL('../../../fixtures/help/access-rules.txt', import.meta.url), 'utf8')
    for (const transform of TRANSFORMS) t.match(help, new RegExp(`^  ${transform} {2,}\\S`, 'm'))
    const rows = [...help.matchAll(/^ {2}(\S+) {2,}(\w+) (\w+): /gm)].map(
      ([, example, attribute, operator]) => {
        const [{ conditions } = {}] = parseRules(`${example} mask token:read`)
        t.match(conditions, [{ attribute, operator }], `${example} is ${attribute} ${operator}`)
        return `${attribute} ${operator}`
      },
    )
    const declared = CONDITION_ATTRIBUTES.flatMap((attribute) =>
      CONDITION_OPERATORS.map((operator) => `${attribute} ${operator}`),
    )
    t.same(rows, declared)
    for (const [line] of help.matchAll(/^ {2}[^$\s].* token:read.*$/gm))
      t.ok(parseRules(line).length > 0, line)
    const json = [...help.matchAll(/^ {2}(\{.*\})$/gm)].map(([, text]) => JSON.parse(text!))
    for (const each of json) t.same(parseRules(formatRule(each)), [each])
    t.equal(json.length, 2)
    t.end()
  },
)
