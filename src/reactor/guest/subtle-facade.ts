/**
 * `crypto.subtle` for reactor code, per W3C Web Cryptography. Keys are objects of our own that stand for Node's.
 */
import { webcrypto } from 'node:crypto'
import { type Epoch, fromNode, gateAsync, type Unwrap } from './gate.js'
import type { Any, Work } from './shield.js'

/** What each takes a key as, by place, and whether it answers with one. */
const METHODS: Record<string, { key?: number; makes?: boolean }> = {
  digest: {},
  sign: { key: 1 },
  verify: { key: 1 },
  encrypt: { key: 1 },
  decrypt: { key: 1 },
  deriveBits: { key: 1 },
  deriveKey: { key: 1, makes: true },
  generateKey: { makes: true },
  importKey: { makes: true },
  exportKey: { key: 1 },
}

export function createSubtle(epoch: Epoch): Record<string, unknown> {
  const keys = new WeakMap<object, webcrypto.CryptoKey>()
  // ECDH names the other side's key in the algorithm.
  const unwrap: Unwrap = (value) => keys.get(value)

  const wrap = (raw: webcrypto.CryptoKey): object => {
    const { type, extractable, algorithm, usages } = raw
    const facade = { type, extractable, algorithm: fromNode(algorithm), usages: [...usages] }
    // Packages know a key by this.
    Object.defineProperty(facade, Symbol.toStringTag, { value: 'CryptoKey' })
    keys.set(facade, raw)
    return facade
  }
  const wrapMade = (made: Any): object =>
    'privateKey' in made ? { publicKey: wrap(made.publicKey), privateKey: wrap(made.privateKey) } : wrap(made)

  const { subtle } = webcrypto as Any
  const methods = Object.entries(METHODS).map(([name, { key, makes }]) => {
    const work = gateAsync(epoch, (subtle[name] as Work).bind(subtle), unwrap, makes ? wrapMade : undefined)
    const checked: Work = async (...args) => {
      if (key !== undefined && !keys.has(args[key]))
        throw new TypeError('The key is none that crypto.subtle made')
      return work(...args)
    }
    return [name, checked]
  })
  return Object.fromEntries(methods)
}
