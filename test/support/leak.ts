/**
 * Finds secrets in printed, logged or stored bytes, in many encodings. The search uses no code of the program that
 * wrote the bytes.
 */
import { lstat, readdir, readFile, readlink } from 'node:fs/promises'
import { join, relative } from 'node:path'

export interface Haystack {
  name: string
  bytes: Uint8Array
}

/** `offset` is the position in the searched bytes at which the encoded secret starts. */
export interface Leak {
  secret: string
  name: string
  encoding: string
  offset: number
}

/**
 * Secrets must have at least this many characters, because shorter secrets would be found by chance. For example, the
 * base64 of three bytes has only four characters.
 */
const MIN_LENGTH = 6

/**
 * Finds every haystack that contains a secret in plain text (UTF-8), reversed, in UTF-16 of either order, in
 * hexadecimal (either case, also with spaces or colons between the bytes), base64 and base64url at any alignment, JSON
 * or percent escapes, or as a list of decimal bytes. The function returns the first place of each encoding in each
 * haystack.
 */
export function findLeaks(secrets: readonly string[], haystacks: readonly Haystack[]): Leak[] {
  const needles = secrets.flatMap((secret) => encodeAll(secret).map((spelling) => ({ secret, ...spelling })))
  return haystacks.flatMap(({ name, bytes }) => {
    const hay = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    return needles
      .map(({ secret, encoding, needle }) => ({ secret, name, encoding, offset: hay.indexOf(needle) }))
      .filter(({ offset }) => offset >= 0)
  })
}

interface Spelling {
  encoding: string
  needle: Buffer
}

function encodeAll(secret: string): Spelling[] {
  if (secret.length < MIN_LENGTH) throw new Error(`a secret to look for has ${MIN_LENGTH} characters or more`)
  const bytes = Buffer.from(secret)
  const all: [string, Buffer | string][] = [
    ['plain', bytes],
    ['reversed', [...secret].reverse().join('')],
    ['reversed bytes', Buffer.from(bytes).reverse()],
    ['UTF-16LE', Buffer.from(secret, 'utf16le')],
    ['UTF-16BE', Buffer.from(secret, 'utf16le').swap16()],
    ['JSON', JSON.stringify(secret).slice(1, -1)],
    ...inBothCases('JSON escapes', escapeUnits(secret)),
    ...inBothCases('JSON escapes of non-ASCII characters', escapeUnits(secret, /[^\x20-\x7e]/g)),
    ...inBothCases('hexadecimal', bytes.toString('hex')),
    ...inBothCases('hexadecimal with spaces', pairs(bytes).join(' ')),
    ...inBothCases('hexadecimal with colons', pairs(bytes).join(':')),
    ['percent encoding', encodeURIComponent(secret)],
    ['form encoding', encodeURIComponent(secret).replaceAll('%20', '+')],
    ...inBothCases('percent encoding of every byte', `%${pairs(bytes).join('%')}`),
    ['decimal bytes', bytes.join(',')],
    ['decimal bytes with spaces', bytes.join(', ')],
    ...[0, 1, 2].map((shift): [string, string] => [`base64 at ${shift}`, encodeBase64(bytes, shift)]),
    ...[0, 1, 2].map((shift): [string, string] => [
      `base64url at ${shift}`,
      toUrlSafe(encodeBase64(bytes, shift)),
    ]),
  ]
  const seen = new Set<string>()
  return all
    .map(([encoding, needle]) => ({ encoding, needle: Buffer.from(needle) }))
    .filter(({ needle }) => !seen.has(needle.toString('latin1')) && seen.add(needle.toString('latin1')))
}

function inBothCases(encoding: string, text: string): [string, string][] {
  // In an escape such as `\u00e4`, only the hexadecimal digits can be upper or lower case. The `\u` and the text
  // between escapes must not change.
  const capitals = text.includes('\\u')
    ? text.replace(/(?<=\\u)[0-9a-f]{4}/g, (digits) => digits.toUpperCase())
    : text.toUpperCase()
  return [
    [encoding, text],
    [`${encoding}, capitals`, capitals],
  ]
}

function pairs(bytes: Buffer): string[] {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0'))
}

function escapeUnits(text: string, which = /./gs): string {
  return text.replace(which, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/**
 * Returns the part of the base64 text of a secret that does not depend on the bytes around the secret. `shift` is the
 * number of bytes before the secret.
 */
function encodeBase64(bytes: Buffer, shift: number): string {
  const text = Buffer.concat([Buffer.alloc(shift), bytes]).toString('base64')
  const first = Math.ceil((shift * 8) / 6)
  const end = Math.floor(((shift + bytes.length) * 8) / 6)
  return text.slice(first, end)
}

function toUrlSafe(text: string): string {
  return text.replaceAll('+', '-').replaceAll('/', '_')
}

/**
 * Reads every file below a directory, and the targets of links. The first haystack is the list of the names. For a
 * socket, only the name is searched.
 */
export async function readTree(directory: string): Promise<Haystack[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true })
  const paths = entries.map((entry) => join(entry.parentPath, entry.name)).sort()
  const names = paths.map((path) => relative(directory, path))
  const contents = await Promise.all(paths.map(async (path) => ({ path, bytes: await readContent(path) })))
  return [
    { name: '(names)', bytes: Buffer.from(names.join('\n')) },
    ...contents.flatMap(({ path, bytes }) => (bytes ? [{ name: relative(directory, path), bytes }] : [])),
  ]
}

async function readContent(path: string): Promise<Uint8Array | undefined> {
  const facts = await lstat(path)
  if (facts.isSymbolicLink()) return Buffer.from(await readlink(path))
  return facts.isFile() ? readFile(path) : undefined
}
