/** Clients, such as browsers and phones, encrypt the data of tokens with these keys. */

import { formatDate } from '../../domain/dates.js'
import { formatPublicKey, MAX_KEYS, readKeyExpiry } from '../../domain/encryption/client-key.js'
import { about } from '../../domain/property-errors.js'
import { CofferError } from '../../errors.js'
import { change, query } from '../../framework/operation.js'
import { arrayOf, component, date, text, uuid } from '../../framework/output.js'
import { inputSchema } from '../../framework/schema.js'
import { manage } from '../manage.js'

const KEY_BYTES = 32

const shown = { id: uuid, key_id: { ...uuid, description: 'Equal to id.' }, expires_at: date } as const
const keyOutput = component('ClientKey', ['id', 'expires_at'], shown)
const newKeyOutput = component('NewClientKey', ['id', 'public_key_pem', 'expires_at'], {
  ...shown,
  public_key_pem: {
    ...text,
    description: 'Only in this answer. The PEM contains only the 32 bytes of an X25519 key, as base64.',
  },
})

const view = ({ id, expires_at }: { id: string; expires_at: string }) => ({ id, key_id: id, expires_at })

const keys = manage({
  name: 'key',
  kind: 'client_key',
  entity: 'key',
  path: '/keys',
  permission: 'keys',
  id: { type: 'string', description: 'The id of the key.' },
  output: keyOutput,
  view: (_, record) => view(record),
})

const CREATED = '"$(coffer key create -o id)"'

const createKey = change({
  ...keys.createDeclaration,
  summary: 'Create a key with which clients encrypt data, and print its public half.',
  details:
    'The vault keeps the private half and never shows it. The public half is shown once. A client encrypts data as a\n' +
    'compact JWE with ECDH-ES (X25519) and A256GCM, and writes the id of the key into the JWE header kid. Then store the JWE\n' +
    'in the attribute `encrypted`, instead of `data`:\n' +
    `coffer token create --type card --encrypted JWE. A tenant has at most ${MAX_KEYS} keys.`,
  http: {
    status: 201,
    body: { types: ['application/json', 'application/json-patch+json'], isOptional: true },
  },
  input: inputSchema([], {
    expires_at: {
      type: 'string',
      duration: 'ahead',
      description: 'When the key expires, at most one year ahead (the default): M/D/YYYY, or ISO 8601.',
    },
  }),
  output: newKeyOutput,
  examples: ['coffer key create', 'coffer key create --expires-at 30d'],
  check: async ({ expires_at }, tools) => {
    if (expires_at === undefined) return undefined
    const now = await tools.now()
    return about('expires_at', () => readKeyExpiry(expires_at, now))
  },
  async run(context, _, chosen) {
    const { store, caller, random, now } = context
    const { total } = await store.locate('client_key', caller.tenant, { page: 1, size: 1 })
    if (total >= MAX_KEYS)
      throw new CofferError('unprocessable', `A tenant has at most ${MAX_KEYS} keys. Delete one first.`)
    const pair = (await context.clientEncryption()).pairOf(random.bytes(KEY_BYTES))
    const expires = chosen ?? readKeyExpiry(undefined, now)
    const record = await keys.add(context, { ...pair, expires_at: formatDate(expires) }, { expires })
    return { ...view(record), public_key_pem: formatPublicKey(Buffer.from(pair.public_key, 'base64url')) }
  },
})

const listKeys = query({
  ...keys.listDeclaration,
  summary: 'List the keys that have not expired, newest first.',
  output: arrayOf(keyOutput),
  examples: ['coffer key list'],
  async run({ store, caller }) {
    const { records } = await store.find('client_key', caller.tenant, { page: 1, size: MAX_KEYS })
    return records.map(view)
  },
})

const deleteKey = keys.delete({
  summary: 'Delete a key. After that, the vault cannot decrypt data that clients encrypted with this key.',
  examples: [`coffer key delete ${CREATED} --yes`],
  confirmation:
    'Data that is encrypted with this key and not stored yet can then no longer be decrypted. This deletes the key',
})

export const noun = {
  name: 'key',
  summary: 'Let clients encrypt data before they send it',
  operations: [createKey, listKeys, keys.get(`coffer key get ${CREATED}`), deleteKey],
}
