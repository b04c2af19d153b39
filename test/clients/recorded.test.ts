/**
 * The requests of the clients for Python, Go, Java and .NET, as their source code sends them.
 * `fixtures/clients/README.md` describes the files.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { startServer } from '../../src/index.js'
import { call, type Json } from '../http/threeds-shop.js'

interface Habits {
  headers: Record<string, string>
  json: string
  get?: string
  delete?: string
  empty?: string
  indented?: true
  parts: boolean
}

type Fields = Record<string, string>

interface Part {
  name: string
  filename?: string
  type?: string
  json?: Json
  text?: string
}

interface Recorded {
  call: string
  about?: string
  only?: string[]
  method: string
  path: string
  key?: string
  headers?: Fields
  body?: Json
  form?: Part[]
  text?: string
  status: number | 'success'
  json?: true
  answers?: string
  requires?: Fields
  accepts?: Fields
  save?: Fields
  until?: Record<string, Json>
}

interface Area {
  area: string
  key: string
  before: Recorded[]
  requests: Recorded[]
}

const directory = new URL('../../../fixtures/clients/', import.meta.url)
const read = (name: string) => JSON.parse(readFileSync(new URL(name, directory), 'utf8'))
const CLIENTS: Record<string, Habits> = read('headers.json')
const FILES = readdirSync(directory).filter((name) => name.endsWith('.json') && name !== 'headers.json')
const BOUNDARY = 'b0a1c2d3-e4f5-4a6b-8c7d-9e0f1a2b3c4d'
const MAX_TRIES = 500
const PAUSE_MS = 20

/** A date that every client can parse: with seconds, and with an offset. */
const DATE = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/
const isObject = (value: Json) => typeof value === 'object' && value !== null && !Array.isArray(value)
const TYPES: Record<string, (value: Json) => boolean> = {
  text: (value) => typeof value === 'string',
  date: (value) => typeof value === 'string' && DATE.test(value),
  integer: Number.isInteger,
  boolean: (value) => typeof value === 'boolean',
  object: isObject,
  list: Array.isArray,
  counts: (value) => isObject(value) && Object.values(value).every(Number.isInteger),
}

const valueAt = (json: Json, path: string): Json =>
  path.split('.').reduce((value: Json, name) => value?.[name], json)

function fill<T>(template: T, saved: Fields): T {
  const text = JSON.stringify(template).replaceAll(/\$([a-z]+)/g, (whole, name) => {
    return name in saved ? JSON.stringify(saved[name]).slice(1, -1) : whole
  })
  return JSON.parse(text)
}

function writeForm(form: readonly Part[], { parts }: Habits): string {
  const written = form.map(({ name, filename, type, json, text = JSON.stringify(json) }) => {
    const file = filename === undefined ? '' : `; filename="${filename}"`
    const typed = json !== undefined && parts ? 'application/json' : type
    const typeLine = typed === undefined ? '' : `\r\nContent-Type: ${typed}`
    return `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"${file}${typeLine}\r\n\r\n${text}\r\n`
  })
  return `${written.join('')}--${BOUNDARY}--\r\n`
}

/** Returns the body and the content type that the client sends. */
function writeBody({ method, body, form, text }: Recorded, habits: Habits) {
  if (form !== undefined)
    return { body: writeForm(form, habits), type: `multipart/form-data; boundary=${BOUNDARY}` }
  if (text !== undefined) return { body: text, type: 'text/csv' }
  if (body !== undefined)
    return { body: JSON.stringify(body, undefined, habits.indented ? 2 : undefined), type: habits.json }
  const { get, delete: removing, empty } = habits
  return { type: method === 'GET' ? get : method === 'DELETE' ? removing : empty }
}

async function send(url: string, recorded: Recorded, habits: Habits, key = '') {
  const { method, path, headers, until = {} } = recorded
  const { body, type } = writeBody(recorded, habits)
  const sent = {
    ...habits.headers,
    ...(type !== undefined && { 'content-type': type }),
    'bt-api-key': key,
    ...headers,
  }
  const target = path.startsWith('http') ? path : url + path
  for (let tries = 0; ; tries++) {
    const answer = await call(target, { method, headers: sent, ...(body !== undefined && { body }) })
    const isOver = Object.entries(until).every(([at, value]) => valueAt(answer.json, at) === value)
    if (isOver || tries === MAX_TRIES) return answer
    await pause(PAUSE_MS)
  }
}

function checkTypes(t: Test, json: Json, fields: Fields, isRequired: boolean): void {
  for (const [path, type] of Object.entries(fields)) {
    const value = valueAt(json, path)
    if (value === undefined && !isRequired) continue
    t.ok(TYPES[type]?.(value), `${path} is ${type}: ${JSON.stringify(value)}`)
  }
}

async function replay(t: Test, { key, before, requests }: Area, client: string): Promise<void> {
  const server = await startServer({ prefix: 'bt' })
  t.teardown(() => server.stop())
  const keys = server.keys as Fields
  const saved: Fields = {}
  for (const recorded of [...before, ...requests]) {
    const { only, status, answers, requires = {}, accepts = {}, save = {} } = recorded
    if (only?.includes(client) === false) continue
    const filled = fill(recorded, saved)
    const answer = await send(server.url, filled, CLIENTS[client]!, keys[recorded.key ?? key])
    await t.test(recorded.call, async (t) => {
      // A client accepts each status from 200 to 299.
      const isSuccess = answer.status >= 200 && answer.status < 300
      if (status === 'success') t.ok(isSuccess, `${answer.status} ${answer.text}`)
      else t.equal(answer.status, status, answer.text)
      if (answers !== undefined) t.equal(answer.text, answers)
      if (recorded.json) t.doesNotThrow(() => JSON.parse(answer.text), 'the client can parse the body')
      checkTypes(t, answer.json, requires, true)
      checkTypes(t, answer.json, accepts, false)
    })
    for (const [name, path] of Object.entries(save)) {
      const value = valueAt(answer.json, path)
      t.type(value, 'string', `${recorded.call}: ${path}`)
      // If the area is not emulated, the answer has no id. Later requests of the area then use this name as the id.
      saved[name] = value ?? name
    }
  }
}

t.test('every recorded request names known clients and types', async (t) => {
  t.same(Object.keys(CLIENTS), ['Python', 'Go', 'Java', '.NET'])
  for (const name of FILES) {
    const { before, requests }: Area = read(name)
    for (const { call, only = [], requires = {}, accepts = {} } of [...before, ...requests]) {
      t.same(
        only.filter((each) => !(each in CLIENTS)),
        [],
        `${name}: ${call}`,
      )
      t.same(
        Object.values({ ...requires, ...accepts }).filter((type) => !(type in TYPES)),
        [],
        `${name}: ${call}`,
      )
    }
  }
})

for (const name of FILES)
  for (const client of Object.keys(CLIENTS))
    t.test(`${name}: ${client}`, async (t) => replay(t, read(name), client))
