/** The requests of the HTTP benchmarks in the form in which they are sent. */
import { randomUUID } from 'node:crypto'
import type { Ready } from './http-server.js'
import { makeToken } from './token-body.js'

/** Returns the server, but with the key that gets masked data. */
export function asMasking(ready: Ready): Ready {
  return { ...ready, key: ready.maskingKey ?? '' }
}

export function createGets({ key, ids }: Pick<Ready, 'key' | 'ids'>): () => string {
  let serial = 0
  return () => {
    serial = (serial + 7919) % ids.length
    return `GET /tokens/${ids[serial]} HTTP/1.1\r\nHost: localhost\r\nSVC-API-KEY: ${key}\r\n\r\n`
  }
}

/**
 * Each call of the returned function returns a request that creates a token. If `isKeyed` is true, each request has a
 * new idempotency key.
 */
export function createPosts({ key }: Pick<Ready, 'key'>, isKeyed: boolean): () => string {
  let serial = 1_000_000
  return () => {
    const body = JSON.stringify(makeToken(serial++))
    const idempotency = isKeyed ? `SVC-IDEMPOTENCY-KEY: ${randomUUID()}\r\n` : ''
    return `POST /tokens HTTP/1.1\r\nHost: localhost\r\nSVC-API-KEY: ${key}\r\n${idempotency}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  }
}

/**
 * Each call of the returned function returns a request that patches a token. A token is patched again only after all
 * other tokens. If several loads run, each load starts at a random token.
 */
export function createPatches({ key, ids }: Ready): () => string {
  let serial = Math.floor(Math.random() * ids.length)
  return () => {
    const id = ids[(serial++ * 7919) % ids.length]
    const body = JSON.stringify({ metadata: { turn: String(serial) } })
    return `PATCH /tokens/${id} HTTP/1.1\r\nHost: localhost\r\nSVC-API-KEY: ${key}\r\nContent-Type: application/merge-patch+json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  }
}

/**
 * Each call of the returned function removes an id from `ids` and returns a request that deletes this token. The
 * order of the deletions is random, but the same in every run. A sorted order would distort the result: neighbouring
 * tokens share pages of the store, and deleting the newest token of a type costs more.
 */
export function createDeletes({ key, ids }: Ready): () => string {
  let seed = 1
  return () => {
    const last = ids.pop()
    if (last === undefined) throw new Error('No token is left to delete. Start with more tokens.')
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0
    const at = Math.floor((seed / 2 ** 32) * (ids.length + 1))
    const id = ids[at] ?? last
    if (at < ids.length) ids[at] = last
    return `DELETE /tokens/${id} HTTP/1.1\r\nHost: localhost\r\nSVC-API-KEY: ${key}\r\n\r\n`
  }
}
