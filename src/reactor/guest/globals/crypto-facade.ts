/** `crypto` for reactor code: tables of calls of Node's, whose hash, cipher and key objects would expose shared prototypes. */
import * as crypto from 'node:crypto'
import { type Epoch, fromNode, gate, gateAsync, gateCallback } from '../gate.js'
import { type Any, getterOf, guard, viewMemory, type Work } from '../shield.js'

// Captured before reactor code could change them.
const { KeyObject, randomBytes, randomFillSync, randomUUID } = crypto
const kindOf = getterOf(Object.getPrototypeOf(Uint8Array.prototype) as object, Symbol.toStringTag)
/** The maximum size for `getRandomValues`, per W3C Web Cryptography. */
const MOST_RANDOM_BYTES = 65_536

/** Functions of data and keys that return data or keys. */
const FUNCTIONS =
  `timingSafeEqual randomInt pbkdf2Sync scryptSync hkdfSync getHashes getCiphers getCurves sign verify
  publicEncrypt privateDecrypt createSecretKey createPublicKey createPrivateKey generateKeyPairSync`.split(
    /\s+/,
  )
/** Functions whose last argument is a callback. */
const LATER = ['pbkdf2', 'scrypt']

const CIPHER = { takes: 4, gives: 'update final getAuthTag', does: 'setAutoPadding setAAD setAuthTag' }
/** Functions that return an object. `gives`: its methods that return data; `does`: those that return the object. */
const MAKERS: Readonly<Record<string, { takes: number; gives: string; does: string; copies?: boolean }>> = {
  createHash: { takes: 1, gives: 'digest', does: 'update', copies: true },
  createHmac: { takes: 2, gives: 'digest', does: 'update' },
  createSign: { takes: 1, gives: 'sign', does: 'update' },
  createVerify: { takes: 1, gives: 'verify', does: 'update' },
  createCipheriv: CIPHER,
  createDecipheriv: CIPHER,
}

/** Methods of `subtle`. `key`: the index of the argument that is a key. `makes`: the result is a key or a pair of keys. */
const SUBTLE: Readonly<Record<string, { key?: number; makes?: boolean }>> = {
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

/** `require('crypto')` */
export function createCryptoFacade(epoch: Epoch): Record<string, unknown> {
  const webcrypto = createWebCrypto(epoch)
  /** Node's key objects by ours. */
  const keys = new WeakMap<object, crypto.KeyObject>()
  const unwrap = (value: object) => keys.get(value)
  const give = (value: Any): unknown => {
    if (value instanceof KeyObject) return wrapKey(value)
    const isPair = value?.publicKey !== undefined
    return isPair ? { publicKey: give(value.publicKey), privateKey: give(value.privateKey) } : fromNode(value)
  }
  /** An object that hides `raw`. */
  const wrap = (raw: Any, gives: string, does: string, copies = false): Record<string, unknown> => {
    const facade: Record<string, unknown> = {}
    const add = (name: string, finish?: Work) => {
      facade[name] = gate((...args) => raw[name](...args), unwrap, finish)
    }
    for (const name of gives.split(' ')) add(name)
    for (const name of does.split(' ')) if (name !== '') add(name, () => facade)
    if (copies) add('copy', (copy) => wrap(copy, gives, does, copies))
    return facade
  }
  const wrapKey = (raw: crypto.KeyObject): object => {
    const { type, asymmetricKeyType, symmetricKeySize } = raw
    const facade = { type, asymmetricKeyType, symmetricKeySize, ...wrap(raw, 'export', '') }
    keys.set(facade, raw)
    return facade
  }
  const functionOf = (name: string) => (crypto as Any)[name] as Work
  const facade: Record<string, unknown> = {
    ...webcrypto,
    webcrypto,
    constants: { ...crypto.constants },
    randomBytes: createRandomBytes(epoch),
    randomFillSync: fillRandomly,
  }
  for (const name of FUNCTIONS) facade[name] = gate(functionOf(name), unwrap, give)
  for (const name of LATER) facade[name] = gateCallback(epoch, functionOf(name))
  for (const [name, { takes, gives, does, copies }] of Object.entries(MAKERS)) {
    const make = functionOf(name)
    const work: Work = (...args) =>
      make(...args.slice(0, takes).map((each, at) => (at === 3 ? pickLength(each) : each)))
    facade[name] = gate(work, unwrap, (raw) => wrap(raw, gives, does, copies))
  }
  return facade
}

/** The other options of ciphers are for streams, which ours are not. */
function pickLength(options: { authTagLength?: number } | undefined) {
  return options?.authTagLength === undefined ? {} : { authTagLength: options.authTagLength }
}

function createRandomBytes(epoch: Epoch): Work {
  const now = gate(randomBytes)
  const later = gateCallback(epoch, randomBytes)
  return (size, callback) => (callback === undefined ? now(size) : later(size, callback))
}

function fillRandomly(array: Any, ...places: unknown[]): unknown {
  const memory = viewMemory(array)
  if (memory === undefined) throw new TypeError('The argument must be an ArrayBuffer or a view of one')
  const unit = Number(array.BYTES_PER_ELEMENT ?? 1)
  const [offset, size] = places.map((each) => (each === undefined ? each : Number(each) * unit))
  guard(() => randomFillSync(memory, offset, size))
  return array
}

/** The global `crypto`. */
export function createWebCrypto(epoch: Epoch): Record<string, unknown> {
  return {
    randomUUID: () => randomUUID(),
    getRandomValues: (array: Any) => {
      const memory = viewMemory(array)
      if (memory === undefined || !/^(?:Big)?(?:Ui|I)nt/.test(Reflect.apply(kindOf, array, []) ?? ''))
        throw new TypeError('The argument must be an array of integers of a fixed size')
      if (memory.length > MOST_RANDOM_BYTES)
        throw new RangeError(`At most ${MOST_RANDOM_BYTES} bytes can be asked for at once`)
      return fillRandomly(array)
    },
    subtle: createSubtle(epoch),
  }
}

/** `crypto.subtle`, per W3C Web Cryptography. Keys are our own objects that represent Node's. */
function createSubtle(epoch: Epoch): Record<string, unknown> {
  const keys = new WeakMap<object, crypto.webcrypto.CryptoKey>()
  const wrap = (raw: crypto.webcrypto.CryptoKey): object => {
    const { type, extractable, algorithm, usages } = raw
    const facade = { type, extractable, algorithm: fromNode(algorithm), usages: [...usages] }
    // Packages use this to recognize keys.
    Object.defineProperty(facade, Symbol.toStringTag, { value: 'CryptoKey' })
    keys.set(facade, raw)
    return facade
  }
  const wrapMade = (made: Any): object =>
    'privateKey' in made ? { publicKey: wrap(made.publicKey), privateKey: wrap(made.privateKey) } : wrap(made)
  const { subtle } = crypto.webcrypto as Any
  const methods = Object.entries(SUBTLE).map(([name, { key, makes }]) => {
    const finish = makes ? wrapMade : undefined
    // For ECDH the algorithm contains the other side's key.
    const work = gateAsync(epoch, (subtle[name] as Work).bind(subtle), (value) => keys.get(value), finish)
    const checked: Work = async (...args) => {
      if (key !== undefined && !keys.has(args[key]))
        throw new TypeError('The key was not created by crypto.subtle')
      return work(...args)
    }
    return [name, checked]
  })
  return Object.fromEntries(methods)
}
