/** For tests of 3-D Secure: a Coffer server with test cards, and the backend of a shop that calls this server. */
import type { Test } from 'tap'
import { startServer } from '../../src/index.js'
import { AUTHENTICATE, BROWSER } from '../operations/documented.js'

/** A test may read any property of an answer. */
export type Json = ReturnType<typeof JSON.parse>

export interface Answer {
  status: number
  headers: Headers
  text: string
  json: Json
}

export async function call(url: string, init: RequestInit = {}): Promise<Answer> {
  const answer = await fetch(url, { redirect: 'manual', ...init })
  const text = await answer.text()
  const isJson = answer.headers.get('content-type')?.includes('json') === true
  return { status: answer.status, headers: answer.headers, text, json: isJson ? JSON.parse(text) : {} }
}

export const NUMBERS = {
  FY: '5204247750001471',
  FN: '4264281511112228',
  CY: '4000020000000000',
  CYX: '4005562231212123',
  CYO: '4000000000000341',
  CA: '4005571701111111',
  CN: '4055011111111111',
  CU: '6011361000008888',
  CR: '6011361000001115',
  ED: '4264281500003339',
  EI: '4264281500001119',
  X: '4100000000000003',
} as const
export type Scenario = keyof typeof NUMBERS

/** `keys` are the API keys with which the shop calls the server. A shop that uses a fork has other keys. */
export function createBackend(url: string, keys: { public: string; private: string }, prefix = 'bt') {
  const ask = (key: string) => (line: string, body?: object) => {
    const [method = '', path = ''] = line.split(' ')
    const headers = { [`${prefix}-api-key`]: key, 'content-type': 'application/json' }
    return call(url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) })
  }
  const send = ask(keys.private)
  const backend = {
    url,
    keys,
    send,
    sendPublic: ask(keys.public),
    async token(scenario: Scenario): Promise<string> {
      const card = { type: 'card', data: { number: NUMBERS[scenario] } }
      return (await send('POST /tokens', card)).json.id
    },
    async session(scenario: Scenario, more: object = {}): Promise<Json> {
      const token_id = await backend.token(scenario)
      const body = { token_id, device: 'browser', device_info: BROWSER, ...more }
      const answer = await ask(keys.public)('POST /3ds/sessions', body)
      if (answer.status !== 201) throw new Error(answer.text)
      return answer.json
    },
    authenticate: async (id: string, request: object = AUTHENTICATE) =>
      (await send(`POST /3ds/sessions/${id}/authenticate`, request)).json,
    get: async (id: string) => (await send(`GET /3ds/sessions/${id}`)).json,
    result: (id: string) => send(`GET /3ds/sessions/${id}/challenge-result`),
    /** Creates a session whose challenge is pending. */
    async challenged(scenario: Scenario = 'CY', request: object = AUTHENTICATE) {
      const { id } = await backend.session(scenario)
      const { acs_transaction_id } = await backend.authenticate(id, request)
      return { id: id as string, acs: acs_transaction_id as string }
    },
    redirect: (scenario: Scenario, callback_urls: object, more: object = {}) =>
      backend.session(scenario, {
        device_info: undefined,
        authentication_request: AUTHENTICATE,
        callback_urls,
        ...more,
      }),
  }
  return backend
}

export type Backend = ReturnType<typeof createBackend>

export async function openShop(t: Test) {
  const server = await startServer({ prefix: 'bt' })
  t.teardown(() => server.stop())
  return { server, backend: createBackend(server.url, server.keys as Backend['keys']) }
}

export const encode = (message: object) => Buffer.from(JSON.stringify(message)).toString('base64url')

export function post(url: string, fields: Record<string, string>): Promise<Answer> {
  return call(url, { method: 'POST', body: new URLSearchParams(fields) })
}

export const creqOf = ({ id, acs }: { id: string; acs: string }, more: object = {}) =>
  encode({
    messageType: 'CReq',
    messageVersion: '2.2.0',
    threeDSServerTransID: id,
    acsTransID: acs,
    challengeWindowSize: '03',
    ...more,
  })
