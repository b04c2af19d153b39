/**
 * `require('crypto')` for reactor code: functions over Node's, objects of our own. Raw hash, cipher and key objects
 * would hand out prototypes that every invocation shares.
 */
import * as crypto from 'node:crypto'
import { type Epoch, guardCallback, shield } from './shield.js'
import { createSubtle } from './subtle-facade.js'

// biome-ignore lint/suspicious/noExplicitAny: what the code passes is checked by the functions it is passed to.
type Any = any

/** Our key objects, and Node's that each stands for. */
type Keys = WeakMap<object, crypto.KeyObject>

export function createCryptoFacade(epoch: Epoch): Record<string, unknown> {
  const keys: Keys = new WeakMap()
  const webcrypto = createWebCrypto(epoch)
  const functions = {
    ...createDigests(keys),
    ...createCiphers(keys),
    ...createSignatures(keys),
    ...createKeys(keys),
  }
  return {
    ...createRandomness(epoch),
    ...createDerivations(epoch),
    ...mapValues(functions, (work) => shield(work as (...args: never[]) => unknown)),
    constants: { ...crypto.constants },
    webcrypto,
    subtle: webcrypto.subtle,
  }
}

/** The global `crypto`. */
export function createWebCrypto(epoch: Epoch): Record<string, unknown> {
  return {
    randomUUID: () => crypto.randomUUID(),
    getRandomValues: shield((array: Any) => crypto.webcrypto.getRandomValues(array)),
    subtle: createSubtle(epoch),
  }
}

function createRandomness(epoch: Epoch): Record<string, unknown> {
  return {
    randomBytes: shield((size: Any, callback?: (...args: unknown[]) => void) =>
      callback === undefined ? crypto.randomBytes(size) : crypto.randomBytes(size, answer(epoch, callback)),
    ),
    randomFillSync: shield((...args: Any[]) => (crypto.randomFillSync as Any)(...args)),
    randomInt: shield((low: Any, high?: Any) =>
      high === undefined ? crypto.randomInt(low) : crypto.randomInt(low, high),
    ),
    randomUUID: () => crypto.randomUUID(),
    getRandomValues: shield((array: Any) => crypto.webcrypto.getRandomValues(array)),
    timingSafeEqual: shield((a: Any, b: Any) => crypto.timingSafeEqual(a, b)),
  }
}

function createDerivations(epoch: Epoch): Record<string, unknown> {
  const withCallback = (work: (...args: Any[]) => void) =>
    shield((...args: Any[]) => work(...args.slice(0, -1), answer(epoch, args.at(-1))))
  return {
    pbkdf2Sync: shield((...args: Any[]) => (crypto.pbkdf2Sync as Any)(...args)),
    pbkdf2: withCallback(crypto.pbkdf2 as Any),
    scryptSync: shield((...args: Any[]) => (crypto.scryptSync as Any)(...args)),
    scrypt: withCallback(crypto.scrypt as Any),
    hkdfSync: shield((...args: Any[]) => (crypto.hkdfSync as Any)(...args)),
    getHashes: () => crypto.getHashes(),
    getCiphers: () => crypto.getCiphers(),
    getCurves: () => crypto.getCurves(),
  }
}

/** A callback of Node's kind, given plain errors, and nothing once the invocation is over. */
function answer(epoch: Epoch, callback: (...args: unknown[]) => void) {
  if (typeof callback !== 'function') throw new TypeError('The callback must be a function')
  return guardCallback(epoch, callback)
}

function createDigests(keys: Keys) {
  const hash = (raw: crypto.Hash): object => {
    const facade: Record<string, unknown> = {
      update: shield((data: Any, encoding?: Any) => {
        raw.update(data, encoding)
        return facade
      }),
      digest: shield((encoding?: Any) => raw.digest(encoding)),
      copy: shield(() => hash(raw.copy())),
    }
    return facade
  }
  const hmac = (raw: crypto.Hmac): object => {
    const facade: Record<string, unknown> = {
      update: shield((data: Any, encoding?: Any) => {
        raw.update(data, encoding)
        return facade
      }),
      digest: shield((encoding?: Any) => raw.digest(encoding)),
    }
    return facade
  }
  return {
    createHash: (algorithm: Any) => hash(crypto.createHash(algorithm)),
    createHmac: (algorithm: Any, key: Any) => hmac(crypto.createHmac(algorithm, unwrapKey(keys, key))),
  }
}

function createCiphers(keys: Keys) {
  const cipher = (raw: Any): object => {
    const facade: Record<string, unknown> = {
      update: shield((...args: Any[]) => raw.update(...args)),
      final: shield((encoding?: Any) => raw.final(encoding)),
      setAutoPadding: shield((isOn?: Any) => chain(facade, raw.setAutoPadding(isOn))),
      setAAD: shield((data: Any, options?: Any) => chain(facade, raw.setAAD(data, options))),
      getAuthTag: shield(() => raw.getAuthTag()),
      setAuthTag: shield((tag: Any) => chain(facade, raw.setAuthTag(tag))),
    }
    return facade
  }
  const createCipheriv = (algorithm: Any, key: Any, iv: Any, options?: Any) =>
    cipher(crypto.createCipheriv(algorithm, unwrapKey(keys, key), iv, pickTagLength(options) as Any))
  const createDecipheriv = (algorithm: Any, key: Any, iv: Any, options?: Any) =>
    cipher(crypto.createDecipheriv(algorithm, unwrapKey(keys, key), iv, pickTagLength(options) as Any))
  return {
    createCipheriv,
    createDecipheriv,
    publicEncrypt: (key: Any, data: Any) => crypto.publicEncrypt(unwrapKey(keys, key), data),
    privateDecrypt: (key: Any, data: Any) => crypto.privateDecrypt(unwrapKey(keys, key), data),
  }
}

/** The other options are those of a stream, which ours is not. */
function pickTagLength(options: Any): { authTagLength?: number } {
  return options?.authTagLength === undefined ? {} : { authTagLength: options.authTagLength }
}

function chain<T>(facade: T, _done: unknown): T {
  return facade
}

function createSignatures(keys: Keys) {
  const signer = (raw: crypto.Sign): object => {
    const facade: Record<string, unknown> = {
      update: shield((data: Any, encoding?: Any) => chain(facade, raw.update(data, encoding))),
      sign: shield((key: Any, encoding?: Any) => raw.sign(unwrapKey(keys, key), encoding)),
    }
    return facade
  }
  const verifier = (raw: crypto.Verify): object => {
    const facade: Record<string, unknown> = {
      update: shield((data: Any, encoding?: Any) => chain(facade, raw.update(data, encoding))),
      verify: shield((key: Any, signature: Any, encoding?: Any) =>
        raw.verify(unwrapKey(keys, key), signature, encoding),
      ),
    }
    return facade
  }
  return {
    createSign: (algorithm: Any) => signer(crypto.createSign(algorithm)),
    createVerify: (algorithm: Any) => verifier(crypto.createVerify(algorithm)),
    sign: (algorithm: Any, data: Any, key: Any) => crypto.sign(algorithm, data, unwrapKey(keys, key)),
    verify: (algorithm: Any, data: Any, key: Any, signature: Any) =>
      crypto.verify(algorithm, data, unwrapKey(keys, key), signature),
  }
}

function createKeys(keys: Keys) {
  const wrap = (raw: crypto.KeyObject): object => {
    const facade: Record<string, unknown> = {
      type: raw.type,
      asymmetricKeyType: raw.asymmetricKeyType,
      symmetricKeySize: raw.symmetricKeySize,
      export: shield((options?: Any) => raw.export(options)),
    }
    keys.set(facade, raw)
    return facade
  }
  return {
    createSecretKey: (key: Any, encoding?: Any) => wrap(crypto.createSecretKey(key, encoding)),
    createPublicKey: (key: Any) => wrap(crypto.createPublicKey(unwrapKey(keys, key))),
    createPrivateKey: (key: Any) => wrap(crypto.createPrivateKey(key)),
    generateKeyPairSync: (type: Any, options?: Any) => {
      const { publicKey, privateKey } = (crypto.generateKeyPairSync as Any)(type, options)
      const give = (key: Any) => (key instanceof crypto.KeyObject ? wrap(key) : key)
      return { publicKey: give(publicKey), privateKey: give(privateKey) }
    },
  }
}

/** The key that `given` stands for, or stands in (`{ key, padding }`); anything else as it is. */
function unwrapKey(keys: Keys, given: Any): Any {
  if (typeof given !== 'object' || given === null) return given
  const own = keys.get(given)
  if (own !== undefined) return own
  const inner = ArrayBuffer.isView(given) ? undefined : keys.get(given.key ?? given)
  return inner === undefined ? given : { ...given, key: inner }
}

function mapValues<T, U>(record: Readonly<Record<string, T>>, change: (value: T) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value)]))
}
