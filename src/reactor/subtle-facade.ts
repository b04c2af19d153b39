/**
 * `crypto.subtle` for reactor code, per W3C Web Cryptography. Keys are objects of our own that stand for Node's.
 */
import { webcrypto } from 'node:crypto'
import { type Epoch, shieldAsync } from './shield.js'

// biome-ignore lint/suspicious/noExplicitAny: what the code passes is checked by the functions it is passed to.
type Any = any

export function createSubtle(epoch: Epoch): Record<string, unknown> {
  const keys = new WeakMap<object, webcrypto.CryptoKey>()
  const { subtle } = webcrypto

  const wrap = (raw: webcrypto.CryptoKey): object => {
    const { type, extractable, algorithm, usages } = raw
    const facade = { type, extractable, algorithm: { ...algorithm }, usages: [...usages] }
    keys.set(facade, raw)
    return facade
  }
  const unwrap = (key: Any): Any => {
    const raw = typeof key === 'object' && key !== null ? keys.get(key) : undefined
    if (raw === undefined) throw new TypeError('The key is none that crypto.subtle made')
    return raw
  }
  /** ECDH names the other side's key in the algorithm. */
  const unwrapAlgorithm = (algorithm: Any): Any =>
    typeof algorithm === 'object' && algorithm !== null && 'public' in algorithm
      ? { ...algorithm, public: unwrap(algorithm.public) }
      : algorithm
  const wrapMade = (made: Any): object =>
    'privateKey' in made ? { publicKey: wrap(made.publicKey), privateKey: wrap(made.privateKey) } : wrap(made)

  const methods: Record<string, (...args: Any[]) => Promise<unknown>> = {
    digest: (algorithm, data) => subtle.digest(algorithm, data),
    sign: (algorithm, key, data) => subtle.sign(algorithm, unwrap(key), data),
    verify: (algorithm, key, signature, data) => subtle.verify(algorithm, unwrap(key), signature, data),
    encrypt: (algorithm, key, data) => subtle.encrypt(algorithm, unwrap(key), data),
    decrypt: (algorithm, key, data) => subtle.decrypt(algorithm, unwrap(key), data),
    deriveBits: (algorithm, key, length) =>
      subtle.deriveBits(unwrapAlgorithm(algorithm), unwrap(key), length),
    deriveKey: (algorithm, key, derived, extractable, usages) =>
      subtle.deriveKey(unwrapAlgorithm(algorithm), unwrap(key), derived, extractable, usages).then(wrap),
    generateKey: (algorithm, extractable, usages) =>
      (subtle.generateKey as Any)(algorithm, extractable, usages).then(wrapMade),
    importKey: (format, data, algorithm, extractable, usages) =>
      (subtle.importKey as Any)(format, data, algorithm, extractable, usages).then(wrap),
    exportKey: (format, key) => subtle.exportKey(format, unwrap(key)),
  }
  return Object.fromEntries(Object.entries(methods).map(([name, work]) => [name, shieldAsync(epoch, work)]))
}
