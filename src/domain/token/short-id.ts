/** The short id of a token is the beginning of its UUID. */

export const SHORT_LENGTH = 8
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** Whether `text` has at least 8 characters and may be the beginning of a UUID. */
export function isShortId(text: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f-]{0,26})?$/i.test(text)
}

/** An id that a caller has chosen has no short id, because many chosen ids begin with equal characters. */
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
