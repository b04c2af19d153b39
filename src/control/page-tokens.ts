/** If the mask of a token hides too little, removes the data from the token before the page shows the token. */
import { canonicalJson, isObject } from '../domain/json/json.js'
import type { TokenRecord } from '../domain/records/records.js'
import type { Schema } from '../framework/schema.js'
import { createAttributes } from '../operations/token/token-attributes.js'
import type { Place } from './place.js'

/** A longer secret is also found inside of a longer text. A shorter secret could occur in another text by chance. */
const MIN_PART = 8
const MEMBERS: Readonly<Record<string, Readonly<Record<string, Schema>>>> =
  createAttributes.data.cli.membersWhere.values

/**
 * The page shows data as masks show it. If a mask shows all data or a whole secret, the page shows no data of
 * the token. A secret is, for example, a card number, a security code, an account number or a text.
 */
export async function hideRevealed<T extends { id: string; data?: unknown }>(
  { control: { app, lock }, tenant }: Place,
  tokens: readonly T[],
): Promise<T[]> {
  return lock.shared(async () => {
    const { number } = await app.tenant(tenant)
    return app.store.read((reader) =>
      Promise.all(
        tokens.map(async (token) => {
          if (token.data === undefined) return token
          const record = await reader.get('token', number, token.id)
          if (record !== undefined && !isRevealed(record)) return token
          const { data: _, ...shown } = token
          return shown as T
        }),
      ),
    )
  })
}

function isRevealed(record: TokenRecord): boolean {
  const { data, masked } = record
  if (masked === undefined) return false
  if (canonicalJson(masked) === canonicalJson(data)) return true
  const shown = listTexts(masked)
  return listSecrets(record).some((secret) =>
    shown.some((text) => (secret.length < MIN_PART ? text === secret : text.includes(secret))),
  )
}

/** The texts and numbers in a value, at any depth. */
export function listTexts(value: unknown): string[] {
  if (typeof value === 'object' && value !== null) return Object.values(value).flatMap(listTexts)
  return typeof value === 'string' || typeof value === 'number' ? [String(value)] : []
}

/** The data as a whole if it is text, and the members that are declared as sensitive. */
function listSecrets({ type, data }: TokenRecord): string[] {
  if (!isObject(data)) return typeof data === 'string' && data !== '' ? [data] : []
  const members = Object.hasOwn(MEMBERS, type) ? MEMBERS[type]! : {}
  const secrets = Object.entries(data).filter(([name]) => members[name]?.sensitive === true)
  return secrets.flatMap(([, value]) => listTexts(value))
}
