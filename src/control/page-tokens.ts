import { canonicalJson, isObject } from '../domain/json/json.js'
import type { TokenRecord } from '../domain/records/records.js'
import type { Schema } from '../framework/schema.js'
import { createAttributes } from '../operations/token/token-attributes.js'
import type { Place } from './place.js'

/**
 * In characters. A shorter secret counts as shown only if a text of the masked data equals the secret, because a longer
 * text can contain a short secret by chance.
 */
const MIN_PART = 8
const MEMBERS: Readonly<Record<string, Readonly<Record<string, Schema>>>> =
  createAttributes.data.cli.membersWhere.values

/** Removes the data of each token whose mask shows all data or a whole secret, such as a card number. */
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

export function listTexts(value: unknown): string[] {
  if (typeof value === 'object' && value !== null) return Object.values(value).flatMap(listTexts)
  return typeof value === 'string' || typeof value === 'number' ? [String(value)] : []
}

function listSecrets({ type, data }: TokenRecord): string[] {
  if (!isObject(data)) return typeof data === 'string' && data !== '' ? [data] : []
  const members = Object.hasOwn(MEMBERS, type) ? MEMBERS[type]! : {}
  const secrets = Object.entries(data).filter(([name]) => members[name]?.sensitive === true)
  return secrets.flatMap(([, value]) => listTexts(value))
}
