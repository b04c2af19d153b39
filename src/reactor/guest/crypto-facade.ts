/** `require('crypto')` for reactor code. Node's hash, cipher and key objects would expose prototypes that all runs share. */
import * as crypto from 'node:crypto'
import { type Epoch, fromNode, gate, gateCallback, type Unwrap } from './gate.js'
import { type Any, getterOf, guard, viewMemory, type Work } from './shield.js'
import { createSubtle } from './subtle-facade.js'

// Captured before reactor code could change them.
const { createCipheriv, createDecipheriv, createHash, createHmac, createSign, createVerify } = crypto
const { KeyObject, randomFillSync, randomUUID } = crypto
const kindOf = getterOf(Object.getPrototypeOf(Uint8Array.prototype) as object, Symbol.toStringTag)
/** The maximum size for `getRandomValues`, per W3C Web Cryptography. */
const MOST_RANDOM_BYTES = 65_536

export function createCryptoFacade(epoch: Epoch): Record<string, unknown> {
  const webcrypto = createWebCrypto(epoch)
  const { randomUUID, getRandomValues, subtle } = webcrypto
  // Maps our key objects to Node's.
  const keys = new WeakMap<object, crypto.KeyObject>()
  const unwrap: Unwrap = (value) => keys.get(value)
  return {
    ...createRandomness(epoch),
    ...createDerivations(epoch),
    ...createDigests(unwrap),
    ...createCiphers(unwrap),
    ...createSignatures(unwrap),
    ...createKeys(keys, unwrap),
    timingSafeEqual: gate(crypto.timingSafeEqual),
    constants: { ...crypto.constants },
    webcrypto,
    randomUUID,
    getRandomValues,
    subtle,
  }
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
      randomFillSync(memory)
      return array
    },
    subtle: createSubtle(epoch),
  }
}

function createRandomness(epoch: Epoch): Record<string, Work> {
  const now = gate(crypto.randomBytes)
  const later = gateCallback(epoch, crypto.randomBytes)
  return {
    randomBytes: (size, callback) => (callback === undefined ? now(size) : later(size, callback)),
    randomFillSync: (array, ...places) => {
      const memory = viewMemory(array)
      if (memory === undefined) throw new TypeError('The argument must be an ArrayBuffer or a view of one')
      const unit = Number(array.BYTES_PER_ELEMENT ?? 1)
      const [offset, size] = places.map((each) => (each === undefined ? each : Number(each) * unit))
      guard(() => randomFillSync(memory, offset, size))
      return array
    },
    randomInt: gate(crypto.randomInt),
  }
}

function createDerivations(epoch: Epoch): Record<string, Work> {
  return {
    pbkdf2Sync: gate(crypto.pbkdf2Sync),
    pbkdf2: gateCallback(epoch, crypto.pbkdf2),
    scryptSync: gate(crypto.scryptSync),
    scrypt: gateCallback(epoch, crypto.scrypt as Work),
    hkdfSync: gate(crypto.hkdfSync),
    getHashes: gate(crypto.getHashes),
    getCiphers: gate(crypto.getCiphers),
    getCurves: gate(crypto.getCurves),
  }
}

/** An object that hides `raw`: methods in `giving` return what Node's do, those in `doing` the object itself. */
function wrap(raw: Any, giving: readonly string[], doing: readonly string[], unwrap?: Unwrap) {
  const facade: Record<string, unknown> = {}
  for (const name of giving) facade[name] = gate((...args) => raw[name](...args), unwrap)
  for (const name of doing)
    facade[name] = gate(
      (...args) => raw[name](...args),
      unwrap,
      () => facade,
    )
  return facade
}

function createDigests(unwrap: Unwrap): Record<string, Work> {
  const wrapHash = (raw: Any): object =>
    Object.assign(wrap(raw, ['digest'], ['update']), { copy: gate(() => raw.copy(), undefined, wrapHash) })
  const wrapHmac = (raw: Any) => wrap(raw, ['digest'], ['update'])
  return {
    createHash: gate((algorithm) => createHash(algorithm), undefined, wrapHash),
    createHmac: gate((algorithm, key) => createHmac(algorithm, key), unwrap, wrapHmac),
  }
}

function createCiphers(unwrap: Unwrap): Record<string, Work> {
  const wrapCipher = (raw: Any) =>
    wrap(raw, ['update', 'final', 'getAuthTag'], ['setAutoPadding', 'setAAD', 'setAuthTag'])
  // The other options are for streams, which ours is not.
  const pick = (options: Any) =>
    options?.authTagLength === undefined ? {} : { authTagLength: options.authTagLength }
  const making = (make: Work) =>
    gate((algorithm, key, iv, options) => make(algorithm, key, iv, pick(options)), unwrap, wrapCipher)
  return {
    createCipheriv: making(createCipheriv),
    createDecipheriv: making(createDecipheriv),
    publicEncrypt: gate(crypto.publicEncrypt, unwrap),
    privateDecrypt: gate(crypto.privateDecrypt, unwrap),
  }
}

function createSignatures(unwrap: Unwrap): Record<string, Work> {
  const making = (make: (algorithm: string) => unknown, giving: string) => {
    const wrapSigner = (raw: Any) => wrap(raw, [giving], ['update'], unwrap)
    return gate((algorithm) => make(algorithm), undefined, wrapSigner)
  }
  return {
    createSign: making(createSign, 'sign'),
    createVerify: making(createVerify, 'verify'),
    sign: gate(crypto.sign, unwrap),
    verify: gate(crypto.verify, unwrap),
  }
}

function createKeys(keys: WeakMap<object, crypto.KeyObject>, unwrap: Unwrap): Record<string, Work> {
  const wrapKey = (raw: crypto.KeyObject): object => {
    const { type, asymmetricKeyType, symmetricKeySize } = raw
    const facade = { type, asymmetricKeyType, symmetricKeySize, ...wrap(raw, ['export'], []) }
    keys.set(facade, raw)
    return facade
  }
  const give = (key: Any) => (key instanceof KeyObject ? wrapKey(key) : fromNode(key))
  return {
    createSecretKey: gate(crypto.createSecretKey, undefined, wrapKey),
    createPublicKey: gate(crypto.createPublicKey, unwrap, wrapKey),
    createPrivateKey: gate(crypto.createPrivateKey, undefined, wrapKey),
    generateKeyPairSync: gate(crypto.generateKeyPairSync as Work, undefined, ({ publicKey, privateKey }) => ({
      publicKey: give(publicKey),
      privateKey: give(privateKey),
    })),
  }
}
