import t from 'tap'
import type { Schema } from '../../src/framework/schema.js'
import { createDocument } from '../../src/http/openapi/openapi.js'
import { registry } from '../../src/operations/all.js'
import { createContract, documentOf } from './contract.js'

const document = documentOf(registry)

/** Returns every `$ref` in `value`. */
function listReferences(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  const own = '$ref' in value && typeof value.$ref === 'string' ? [value.$ref] : []
  return [...own, ...Object.values(value).flatMap(listReferences)]
}

t.test(
  'the OpenAPI document has every operation with its permissions, its errors and all of its responses',
  async (t) => {
    for (const definition of registry.routed) {
      const { method, path, takesBody } = definition.endpoint
      const described = document.paths[path]?.[method.toLowerCase()]
      t.equal(described?.operationId, definition.name.replaceAll(' ', '-'))
      const alternatives = definition.access.isAnyEnough
        ? definition.access.permissions.map((permission) => [permission])
        : [[...definition.access.permissions]]
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

t.test('every reference in the OpenAPI document points to something that exists', async (t) => {
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

t.test('two schemas with the same component name in the OpenAPI document are always equal', async (t) => {
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

t.test(
  'the OpenAPI document says whether each input is sent in the path, the query or the body',
  async (t) => {
    const { paths, components } = createDocument(registry, {
      version: '1.2.3',
      prefix: 'bt',
      bodyLimitBytes: 1,
    })
    const { parameters = [] } = paths['/tokens']?.get ?? {}
    t.match(components.parameters.NoReveal, { name: 'BT-NO-REVEAL', in: 'header' })
    t.same(parameters.at(-1), { $ref: '#/components/parameters/NoReveal' })
    const places = parameters.map(({ name, in: place, style = '' }) => `${name} ${place} ${style}`.trim())
    for (const place of ['id query', 'metadata query deepObject', 'page query', 'size query'])
      t.ok(places.includes(place), place)
    const { schema } = parameters.find(({ name }) => name === 'page')!
    t.same(schema, { type: 'integer', minimum: 1, default: 1 })
    const update = paths['/tokens/{id}']?.patch
    t.match(update?.parameters, [
      { name: 'id', in: 'path', required: true, schema: { type: 'string' } },
      { name: 'BT-IDEMPOTENCY-KEY', in: 'header', required: false, schema: { maxLength: 255 } },
      { $ref: '#/components/parameters/NoReveal' },
    ])
    t.match(update?.requestBody, { content: { 'application/merge-patch+json': { schema: {} } } })
    const statuses = '200 201 400 401 403 409 413 415 429 500 default'.split(' ')
    t.same(Object.keys(paths['/tokens']?.post?.responses ?? {}), statuses)
    t.equal(paths['/tokens/{parent_id}/children/{child_id}']?.post?.requestBody, undefined)
    t.match(components.securitySchemes, { apiKey: { name: 'BT-API-KEY' } })
  },
)

t.test('the contract detects a response that differs from the OpenAPI document', async (t) => {
  const contract = createContract(document)
  const schemas = document.components.schemas as Record<string, { examples?: { instance: string }[] }>
  const problem = schemas.Problem!.examples![0]!
  const headers = { 'content-type': 'application/problem+json', 'svc-trace-id': problem.instance }
  const answer = { status: 400, headers, body: JSON.stringify(problem) }
  t.equal(
    contract.findBreach('GET', '/tokens/{id}', answer),
    undefined,
    'the example in the document is valid',
  )
  t.match(contract.findBreach('GET', '/tokens/{id}', { ...answer, status: 404 }), /status 404/)
  t.match(contract.findBreach('GET', '/tokens/{id}', { ...answer, status: 202 }), /status 202/)
  t.match(contract.findBreach('GET', '/tokens/{id}', { ...answer, status: 200 }), /required property 'id'/)
  t.match(contract.findBreach('GET', '/nothing', answer), /not in the document/)
  t.match(contract.findBreach('DELETE', '/tokens/{id}', { ...answer, status: 204 }), /a body/)
})
