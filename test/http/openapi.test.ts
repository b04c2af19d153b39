import { createHash } from 'node:crypto'
import t from 'tap'
import type { Schema } from '../../src/framework/schema.js'
import { createDocument } from '../../src/http/openapi/openapi.js'
import { registry } from '../../src/operations/all.js'
import { createContract } from './contract.js'
import { createToy } from './toy.js'

const OPTIONS = { version: '1.2.3', prefix: 'svc', bodyLimitBytes: 1_000 }
const document = createDocument(registry, OPTIONS)

/** Every `$ref` in `value`. */
function listReferences(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  const own = '$ref' in value && typeof value.$ref === 'string' ? [value.$ref] : []
  return [...own, ...Object.values(value).flatMap(listReferences)]
}

t.test(
  'every operation is in the document, with its permission, its faults and what it answers',
  async (t) => {
    for (const definition of registry.routed) {
      const { method, path, takesBody } = definition.endpoint
      const described = document.paths[path]?.[method.toLowerCase()]
      t.equal(described?.operationId, definition.name.replaceAll(' ', '-'))
      const alternatives = definition.needsOnePermission
        ? definition.permissions.map((permission) => [permission])
        : [[...definition.permissions]]
      t.same(
        described?.security,
        alternatives.map((apiKey) => ({ apiKey })),
      )
      t.equal(described?.requestBody !== undefined, takesBody, `${definition.name} takes a body`)
      t.match(
        Object.keys(described?.responses ?? {}),
        new Set([String(definition.endpoint.success), '400', '401', 'default']),
      )
    }
  },
)

t.test('what the document refers to is in it', async (t) => {
  const references = [...new Set(listReferences(document))]
  t.ok(references.length > 10)
  for (const reference of references) {
    const parts = reference.slice(2).split('/')
    const found = parts.reduce<unknown>(
      (at, part) => (at as Record<string, unknown> | undefined)?.[part],
      document,
    )
    t.ok(found, reference)
  }
})

t.test('a component is one schema, wherever it is named', async (t) => {
  const seen = new Map<string, Schema>()
  const visit = (schema: Schema): void => {
    const { component } = schema
    if (component !== undefined) t.strictSame(seen.get(component) ?? schema, schema, component)
    if (component !== undefined) seen.set(component, schema)
    if (schema.type === 'array') visit(schema.items)
    if (schema.type === 'object') Object.values(schema.properties ?? {}).forEach(visit)
  }
  for (const { output } of registry.operations) if (output !== undefined) visit(output)
  t.ok(seen.size > 10)
})

t.test('the document says where each part of an input travels', async (t) => {
  const toy = createDocument(createToy().options.registry, { ...OPTIONS, prefix: 'bt' })
  const list = toy.paths['/things']?.get
  t.same(
    list?.parameters.map(({ name, in: place, style }) => [name, place, style]),
    [
      ['id', 'query', undefined],
      ['metadata', 'query', 'deepObject'],
      ['deep', 'query', undefined],
      ['page', 'query', undefined],
      ['size', 'query', undefined],
      [undefined, undefined, undefined],
    ],
  )
  t.match(toy.components.parameters.NoReveal, { name: 'BT-NO-REVEAL', in: 'header' })
  t.same(list?.parameters.at(-2)?.schema, { type: 'integer', minimum: 1, maximum: 50, default: 20 })
  const update = toy.paths['/things/{id}']?.patch
  const [inPath, inHeader, ...rest] = update?.parameters ?? []
  t.same(inPath, { name: 'id', in: 'path', required: true, schema: { type: 'string' } })
  t.match(inHeader, { name: 'BT-IDEMPOTENCY-KEY', in: 'header', required: false, schema: { maxLength: 255 } })
  t.same(rest, [{ $ref: '#/components/parameters/NoReveal' }])
  t.same(update?.requestBody, {
    required: true,
    content: {
      'application/merge-patch+json': {
        schema: {
          type: 'object',
          properties: { name: { type: 'string' } },
          required: [],
          additionalProperties: true,
        },
      },
    },
  })
  const create = toy.paths['/things']?.post
  t.same(Object.keys(create?.responses ?? {}), [
    '200',
    '201',
    '400',
    '401',
    '403',
    '409',
    '413',
    '415',
    '429',
    '500',
    'default',
  ])
  t.equal(toy.paths['/things/{id}/links/{other_id}']?.post?.requestBody, undefined)
  t.match(toy.components.securitySchemes, { apiKey: { name: 'BT-API-KEY' } })
  t.match(toy.info, { version: '1.2.3' })
})

t.test('an answer is held against the document', async (t) => {
  const contract = createContract(document)
  const schemas = document.components.schemas as Record<string, { examples?: { instance: string }[] }>
  const problem = schemas.Problem!.examples![0]!
  const headers = { 'content-type': 'application/problem+json', 'svc-trace-id': problem.instance }
  const answer = { status: 400, headers, body: JSON.stringify(problem) }
  t.equal(contract.findBreach('GET', '/tokens/{id}', answer), undefined, 'the example of the document')
  t.match(contract.findBreach('GET', '/tokens/{id}', { ...answer, status: 404 }), /status 404/)
  t.match(contract.findBreach('GET', '/tokens/{id}', { ...answer, status: 202 }), /status 202/)
  t.match(contract.findBreach('GET', '/tokens/{id}', { ...answer, status: 200 }), /required property 'id'/)
  t.match(contract.findBreach('GET', '/nothing', answer), /not in the document/)
  t.match(contract.findBreach('DELETE', '/tokens/{id}', { ...answer, status: 204 }), /a body/)
})

t.test('the page is closed to everything but its own script', async (t) => {
  const toy = createToy()
  const page = await toy.ask({ target: '/', headers: {} })
  t.equal(page.headers['content-type'], 'text/html; charset=utf-8')
  const [whole = '', script = ''] = /<script type="module">([\s\S]*?)<\/script>/.exec(page.body) ?? []
  const rest = page.body.replace(whole, '').replaceAll('http://localhost:4010', '')
  t.notMatch(rest, /<script|javascript:|\son[a-z]+=|https?:/i)
  const digestOf = (text: string) => createHash('sha256').update(text).digest('base64')
  const style = /<style>([\s\S]*)<\/style>/.exec(page.body)?.[1] ?? ''
  t.equal(
    page.headers['content-security-policy'],
    `default-src 'none'; style-src 'sha256-${digestOf(style)}'; script-src 'sha256-${digestOf(script)}'; connect-src 'self'; require-trusted-types-for 'script'; trusted-types 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  )
  t.match(page.body, /<meta name="viewport"/)
})
