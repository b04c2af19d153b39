/**
 * `crypto` for reactor code. Node's hash, cipher and key objects would expose shared prototypes, so facades wrap them.
 */
import * as crypto from 'node:crypto'
import { types } from 'node:util'
import { omitUndefined } from '../../domain/omit-undefined.js'
import { type Epoch, fromNode, gate, gateAsync, gateCallback } from './gate.js'
import { type Any, guard, kindOf, requireMemory, split, type Work } from './shield.js'

// Read when the guest starts, before reactor code can change them.
const { randomBytes, randomFillSync, randomUUID } = crypto
const { isCryptoKey, isKeyObject } = types
const MAX_RANDOM_BYTES = 65_536

const FUNCTIONS =
  split(`timingSafeEqual randomInt pbkdf2Sync scryptSync hkdfSync getHashes getCiphers getCurves
  sign verify publicEncrypt privateDecrypt privateEncrypt publicDecrypt diffieHellman createSecretKey createPublicKey
  createPrivateKey generateKeySync generateKeyPairSync`)
const SUBTLE = split(
  'digest sign verify encrypt decrypt deriveBits deriveKey generateKey importKey exportKey',
)

const CIPHER = { takes: 4, gives: 'update final getAuthTag', does: 'setAutoPadding setAAD setAuthTag' }
/**
 * These functions return an object. `gives`: methods of the object that return data. `does`: methods of the object that
 * return the object itself. `takes`: the number of arguments of the function.
 */
const MAKERS: Readonly<Record<string, { takes: number; gives: string; does: string; copies?: boolean }>> = {
  createHash: { takes: 1, gives: 'digest', does: 'update', copies: true },
  createHmac: { takes: 2, gives: 'digest', does: 'update' },
  createSign: { takes: 1, gives: 'sign', does: 'update' },
  createVerify: { takes: 1, gives: 'verify', does: 'update' },
  createCipheriv: CIPHER,
  createDecipheriv: CIPHER,
  createECDH: {
    takes: 1,
    gives: 'computeSecret generateKeys getPrivateKey getPublicKey',
    does: 'setPrivateKey',
  },
}

/** `facade` is the module `crypto`. Its `webcrypto` is also the global `crypto` (W3C Web Cryptography). */
export function createCrypto(epoch: Epoch) {
  const keys = new WeakMap<object, object>()
  /** Packages use `instanceof KeyObject` to recognize keys. */
  class KeyObject {
    constructor() {
      throw new TypeError('Use createSecretKey, createPublicKey or createPrivateKey')
    }
    static [Symbol.hasInstance](value: object): boolean {
      return isKeyObject(keys.get(value))
    }
  }
  const unwrap = (value: object) => keys.get(value)
  const keyOf = (raw: object, facade: object): object => {
    keys.set(facade, raw)
    return facade
  }
  const finish = (value: Any): unknown => {
    if (isKeyObject(value)) {
      const { type, asymmetricKeyType, symmetricKeySize } = value
      return keyOf(value, { type, asymmetricKeyType, symmetricKeySize, ...wrap(value, 'export', '') })
    }
    if (isCryptoKey(value)) {
      const { type, extractable, algorithm, usages } = value
      const facade = { type, extractable, algorithm: fromNode(algorithm), usages: [...usages] }
      // Packages recognize a key by this tag.
      return keyOf(value, Object.defineProperty(facade, Symbol.toStringTag, { value: 'CryptoKey' }))
    }
    if (value?.privateKey === undefined) return fromNode(value)
    return { publicKey: finish(value.publicKey), privateKey: finish(value.privateKey) }
  }
  const wrap = (raw: Any, gives: string, does: string, copies = false): Record<string, unknown> => {
    const facade: Record<string, unknown> = {}
    const add = (name: string, convert: Work) => {
      facade[name] = gate((...args) => raw[name](...args), { unwrap, finish: convert })
    }
    for (const name of split(gives)) add(name, fromNode)
    for (const name of split(does)) add(name, () => facade)
    if (copies) add('copy', (copy) => wrap(copy, gives, does, copies))
    return facade
  }
  const functionOf = (name: string) => (crypto as Any)[name] as Work
  const { subtle } = crypto.webcrypto as Any
  const onSubtle = (name: string) => gateAsync(epoch, (...args) => subtle[name](...args), { unwrap, finish })
  const webcrypto = {
    randomUUID: () => randomUUID(),
    getRandomValues,
    subtle: Object.fromEntries(SUBTLE.map((name) => [name, onSubtle(name)])),
  }
  const [bytesNow, bytesLater] = [gate(randomBytes), gateCallback(epoch, randomBytes)]
  const facade: Record<string, unknown> = {
    ...webcrypto,
    webcrypto,
    constants: { ...crypto.constants },
    KeyObject,
    randomBytes: (size: unknown, callback?: unknown) =>
      callback === undefined ? bytesNow(size) : bytesLater(size, callback),
    randomFillSync: fillRandomly,
    pbkdf2: gateCallback(epoch, crypto.pbkdf2),
    scrypt: gateCallback(epoch, crypto.scrypt as Work),
  }
  for (const name of FUNCTIONS) facade[name] = gate(functionOf(name), { unwrap, finish })
  for (const [name, { takes, gives, does, copies }] of Object.entries(MAKERS)) {
    const make = functionOf(name)
    const work: Work = (...args) =>
      make(...args.slice(0, takes).map((each, at) => (at === 3 ? pickLength(each) : each)))
    const gated = gate(work, { unwrap, finish: (raw) => wrap(raw, gives, does, copies) })
    // Not an arrow function, because some packages call this function with `new`.
    facade[name] = function create(...args: unknown[]): unknown {
      return gated(...args)
    }
  }
  return { facade, webcrypto }
}

/** All other options are for streams, and these ciphers are not streams. */
const pickLength = (options?: { authTagLength?: number } | null) =>
  omitUndefined({ authTagLength: options?.authTagLength })

function fillRandomly(array: Any, ...places: unknown[]): unknown {
  const memory = requireMemory(array)
  const unit = Number(array.BYTES_PER_ELEMENT ?? 1)
  const [offset, size] = places.map((each) => (each === undefined ? each : Number(each) * unit))
  guard(() => randomFillSync(memory, offset, size))
  return array
}

function getRandomValues(array: unknown): unknown {
  const memory = requireMemory(array)
  if (!/^(?:Big)?(?:Ui|I)nt/.test(Reflect.apply(kindOf, array, []) ?? ''))
    throw new TypeError('The argument must be an array of integers of a fixed size')
  if (memory.length > MAX_RANDOM_BYTES)
    throw new RangeError(`At most ${MAX_RANDOM_BYTES} bytes can be asked for at once`)
  return fillRandomly(array)
}
