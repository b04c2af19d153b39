/** HTML forms: parsing, and tokens against cross-site request forgery. */
import { createHash } from 'node:crypto'
import { BoundedMap } from '../../bounded-map.js'
import { CofferError } from '../../errors.js'
import type { HttpRequest } from '../exchange.js'
import { readHeader } from '../headers.js'

const FORM_TYPE = 'application/x-www-form-urlencoded'
/** Large enough that two names of 5,000 characters of twelve bytes get the error for long names, not for large forms. */
const FORM_LIMIT_BYTES = 128 * 1024
const TOKEN_BYTES = 32
/** A form that was open for longer gets a new token with the next answer. */
const TOKEN_LIFE_MS = 30 * 60 * 1000
const MOST_TOKENS = 10_000

/** Refuses a form of another site (Fetch Metadata). @throws CofferError `forbidden`, `unsupported_media_type`, `too_large` */
export async function readForm(request: HttpRequest): Promise<URLSearchParams> {
  const site = readHeader(request.headers, 'sec-fetch-site')
  if (site !== undefined && site !== 'same-origin' && site !== 'none')
    throw new CofferError('forbidden', 'This form was sent from another site.')
  const type = readHeader(request.headers, 'content-type')?.split(';')[0]?.trim().toLowerCase()
  if (type !== FORM_TYPE) throw new CofferError('unsupported_media_type', `A form is sent as ${FORM_TYPE}.`)
  const bytes = await request.readBody(FORM_LIMIT_BYTES)
  if (bytes === undefined)
    throw new CofferError('too_large', `The form is larger than ${FORM_LIMIT_BYTES} bytes.`)
  return new URLSearchParams(Buffer.from(bytes).toString('utf8'))
}

/** Tokens for hidden fields and links; each works once, for one subject. They are in memory only. `clock` is in ms. */
export function createFormTokens(
  drawBytes: (count: number) => Uint8Array,
  clock: () => number,
  lifeMs = TOKEN_LIFE_MS,
) {
  const tokens = new BoundedMap<string, { subject: string; until: number }>(MOST_TOKENS)
  return {
    create(subject: string): string {
      const token = Buffer.from(drawBytes(TOKEN_BYTES)).toString('base64url')
      tokens.set(digest(token), { subject: digest(subject), until: clock() + lifeMs })
      return token
    },
    /** Whether the token was created for `subject`, has not expired, and was not used before. */
    take(token: string, subject: string): boolean {
      const key = digest(token)
      const found = tokens.get(key)
      tokens.delete(key)
      return found !== undefined && found.subject === digest(subject) && found.until > clock()
    },
  }
}

/** Tokens are stored by digest, so that the time of a lookup reveals nothing about a token. */
export function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64')
}
