/** The short id of a token is the beginning of its UUID. An index finds a token by its short id. */

export const SHORT_LENGTH = 8
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** Whether `text` may be the beginning of a UUID that {@link shortIdOf} shortens. */
export function isShortId(text: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f-]{0,26})?$/i.test(text)
}

/**
 * Returns undefined for an id that a caller has chosen, because many chosen ids begin with equal characters.
 */
export function shortIdOf(id: string): string | undefined {
  return UUID.test(id) ? id.slice(0, SHORT_LENGTH) : undefined
}

export function shortenIds(ids: readonly string[]): string[] {
  return ids.map((id) => {
    if (shortIdOf(id) === undefined) return id
    const isUnique = (length: number) =>
      ids.every((other) => other === id || !other.startsWith(id.slice(0, length)))
    let length = SHORT_LENGTH
    while (!isUnique(length)) length++
    return id.slice(0, length)
  })
}
