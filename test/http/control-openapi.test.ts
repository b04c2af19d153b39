/** The OpenAPI document of the control plane: its form, and whether the server answers as the document says. */
import { spawnSync } from 'node:child_process'
import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import t from 'tap'
import { createControlDocument } from '../../src/http/openapi/control-openapi.js'
import { createDocument } from '../../src/http/openapi/openapi.js'
import { startServer } from '../../src/index.js'
import { registry } from '../../src/operations/all.js'
import { VERSION } from '../../src/version.js'

const OPTIONS = { version: '0.0.0', prefix: 'svc', bodyLimitBytes: 1024 * 1024 }
const document = createControlDocument(registry, OPTIONS)

t.test(
  'the OpenAPI document of the control plane has every operation with its body and the control key',
  async (t) => {
    const described = Object.values(document.paths).flatMap((methods) => Object.values(methods))
    t.same(
      described.map(({ operationId }) => operationId).sort(),
      registry.controls.map(({ name }) => name.replaceAll(' ', '-')).sort(),
    )
    for (const { security, parameters, operationId } of described) {
      t.same(security, [{ controlKey: [] }], operationId)
      t.notMatch(JSON.stringify(parameters), /NoReveal|IDEMPOTENCY/i, operationId)
    }
    t.equal(document.components.securitySchemes.controlKey.name, 'SVC-CONTROL-KEY')
    t.ok(document.paths['/clock/advance']?.post?.requestBody)
  },
)

t.test(
  'every reference in the OpenAPI document of the control plane points to something that exists',
  async (t) => {
    const text = JSON.stringify(document)
    for (const [reference, pointer] of text.matchAll(/"\$ref":"#\/([^"]+)"/g)) {
      const found = pointer!
        .split('/')
        .reduce<unknown>((at, part) => (at as Record<string, unknown>)?.[part], document)
      t.ok(found, reference)
    }
  },
)

/** The requests that the test below sends, in this order. A request can use values from answers to earlier requests. */
const CALLS: [line: string, body?: object][] = [
  ['GET /clock'],
  ['PUT /clock', { mode: 'frozen', at: '2030-01-01T00:00:00Z' }],
  ['POST /clock/advance', { by: '2h' }],
  ['POST /snapshots', { name: 'one' }],
  ['GET /snapshots'],
  ['POST /snapshots/{name}/restore'],
  ['DELETE /snapshots/{name}'],
  ['PUT /faults', { rules: [{ operation: 'token get', kind: 'status', status: 503 }] }],
  ['GET /faults'],
  ['DELETE /faults'],
  ['GET /requests'],
  ['DELETE /requests'],
  ['GET /not-emulated'],
  ['GET /outbox'],
  ['GET /reveals?token=none'],
  // No webhook subscribes to the event `token.created`, so the answer is a problem document.
  ['POST /webhooks/trigger', { event: 'token.created' }],
  ['GET /webhooks?timeout=1ms'],
  ['POST /page'],
  ['GET /forks'],
  ['POST /forks', { name: 'worker' }],
  ['POST /reset'],
]

t.test('the control plane answers as its OpenAPI document says, and serves this document', async (t) => {
  const server = await startServer()
  t.teardown(() => server.stop())
  const headers = { 'svc-control-key': server.control.key, 'content-type': 'application/json' }
  const base = `${server.url}/_coffer`
  const ajv = new Ajv2020({ strict: false })
  formats.default(ajv, ['uuid', 'date-time'])
  ajv.addSchema({ $id: 'control', ...document })
  for (const [line, body] of CALLS) {
    const [method = '', target = ''] = line.split(' ')
    const path = target.split('?')[0]!
    const init = { method, headers, ...(body && { body: JSON.stringify(body) }) }
    const answer = await fetch(base + target.replace('{name}', 'one'), init)
    const text = await answer.text()
    const responses: Record<string, object | undefined> | undefined =
      document.paths[path]?.[method.toLowerCase()]?.responses
    if (answer.status >= 400) {
      const problem = 'control#/components/schemas/Problem'
      t.ok(ajv.validate({ $ref: problem }, JSON.parse(text)), `${line}: ${text}`)
      continue
    }
    const response = responses?.[answer.status]
    t.ok(response, `${line}: ${answer.status} is in the document`)
    t.equal(text !== '', response !== undefined && 'content' in response, `${line} has the body it should`)
    if (text === '') continue
    const spelled = encodeURIComponent(path.replaceAll('/', '~1'))
    const pointer = `control#/paths/${spelled}/${method.toLowerCase()}/responses/${answer.status}/content/application~1json/schema`
    t.ok(ajv.validate({ $ref: pointer }, JSON.parse(text)), `${line}: ${ajv.errorsText()}`)
  }
  const served = await fetch(`${base}/openapi.json`, { headers })
  t.same(await served.json(), { ...document, info: { ...document.info, version: VERSION } })
  t.equal((await fetch(`${base}/openapi.json`)).status, 401, 'the document needs the control key')
  const fork = await server.control.fork()
  const ofFork = await fetch(`${base}/forks/${fork.tenant.id}/openapi.json`, { headers })
  t.equal(ofFork.status, 200)
})

const CHECK = `
import json, sys
from openapi_spec_validator import validate
for document in json.load(sys.stdin):
    validate(document)
`
const missing = spawnSync('python3', ['-c', 'import openapi_spec_validator']).status !== 0

t.test(
  'the OpenAPI documents of the API and of the control plane are valid OpenAPI 3.1',
  { skip: missing && 'python3 or its package openapi-spec-validator is missing' },
  async (t) => {
    // The validator compiles patterns with Python, and Python supports no Unicode classes. Therefore this function
    // replaces the Unicode classes.
    const withoutClasses = (key: string, value: unknown) =>
      key === 'pattern' && typeof value === 'string' ? value.replaceAll(/\\p\{\w+\}/g, 'x') : value
    const input = JSON.stringify([document, createDocument(registry, OPTIONS)], withoutClasses)
    const { status, stderr } = spawnSync('python3', ['-c', CHECK], { input, encoding: 'utf8' })
    t.equal(status, 0, stderr)
  },
)
