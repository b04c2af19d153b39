/** `crypto.subtle` for reactor code, per W3C Web Cryptography. Keys are our own objects that represent Node's. */
import { webcrypto } from 'node:crypto'
import { type Epoch, fromNode, gateAsync, type Unwrap } from './gate.js'
import type { Any, Work } from './shield.js'

/** `key`: the index of the argument that is a key. `makes`: the result is a key or a pair of keys. */
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
  // For ECDH the algorithm contains the other side's key.
  const unwrap: Unwrap = (value) => keys.get(value)

  const wrap = (raw: webcrypto.CryptoKey): object => {
    const { type, extractable, algorithm, usages } = raw
    const facade = { type, extractable, algorithm: fromNode(algorithm), usages: [...usages] }
    // Packages use this to recognize keys.
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
        throw new TypeError('The key was not created by crypto.subtle')
      return work(...args)
    }
    return [name, checked]
  })
  return Object.fromEntries(methods)
}
